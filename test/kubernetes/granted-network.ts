import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { IncomingMessage, RequestListener } from "node:http";
import test from "node:test";
import { thisProcess } from "../../src/boxes/box-record.ts";
import { type Connection, parseGrant } from "../../src/core/network.ts";
import type { ExecResult, OwnedBox } from "../../src/core/ports.ts";
import { farNetworkFolder, type NetworkRequest, openNetwork } from "../../src/docker/egress/box-network.ts";
import type { PodRequest } from "../../src/kubernetes/start-pod-box.ts";
import { type HttpsStub, httpsStub, noCertificates } from "../fixtures/https-stub.ts";
import type { PodPlace } from "./pod-place.ts";

/** What a pod reaches whose network is proven shut, or which has only a loopback: only what comes through the relay. */

export interface Networked {
  /** Why there can be no such pods, or false. */
  readonly skip: string | false;
  /**
   * A place of one of two kinds, if available: `none`: pods have only a loopback; `enforced`: they have a network, and
   * it is shut.
   */
  readonly newPlace: (kind: "none" | "enforced") => Promise<PodPlace>;
  /** The network devices that a pod of the kind `enforced` has by itself. */
  readonly devices: readonly string[];
}

const HOST = "api.test";

const sha = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

const DOWN = randomBytes(24 * 2 ** 20);

/** Reports the caller, sends large data, and reports received data. */
const answer: RequestListener = (request, response) => {
  const { url = "", method } = request;
  if (url === "/down") response.end(DOWN);
  else if (method === "PUT") void bodyOf(request).then((body) => response.end(sha(body)));
  else if (url === "/cut") response.write("begun", () => response.destroy());
  else if (url !== "/held") response.end(`you are ${request.headers.authorization ?? "nobody"}, ${url}\n`);
};

export interface OpenedNetwork extends AsyncDisposable {
  readonly place: PodPlace;
  readonly server: HttpsStub;
  readonly heard: Connection[];
  readonly folder: string;
  readonly wanted: Pick<PodRequest, "network">;
}

export async function openedAt(
  { newPlace }: Pick<Networked, "newPlace">,
  more: Partial<NetworkRequest> = {},
  kind: "none" | "enforced" = "none",
): Promise<OpenedNetwork> {
  const server = await httpsStub([HOST], answer);
  const place = await newPlace(kind);
  const heard: Connection[] = [];
  const folder = farNetworkFolder(place.place.at("state"), "0123456789abcdef");
  const request: NetworkRequest = {
    grants: [parseGrant(`${HOST}:private`)],
    trust: () => Promise.resolve(server.authority),
    roots: server.authority,
    ...server.found,
    limits: { bytesUp: 2 ** 30 },
    onConnection: (connection) => void heard.push(connection),
    ...more,
  };
  const network = async () => (await openNetwork(request, { folder, owner: await thisProcess() })).opened;
  const close = async (): Promise<void> => {
    await place[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  };
  return { place, server, heard, folder, wanted: { network }, [Symbol.asyncDispose]: close };
}

interface LineResult {
  readonly out: string;
  readonly result: ExecResult;
}

export async function sh(box: OwnedBox, line: string, timeoutMs = 60_000): Promise<LineResult> {
  const request = { words: ["bash", "-c", line], timeoutMs, keep: { head: 2 ** 16, tail: 0 } };
  const result = await box.exec(request, AbortSignal.timeout(90_000));
  return { out: Buffer.concat([result.stdout.head, result.stderr.head]).toString("utf8"), result };
}

const GET = `curl -sS --max-time 30 https://${HOST}`;
export const hello = async (box: OwnedBox): Promise<void> =>
  assert.equal((await sh(box, `${GET}/hello`)).out, "you are nobody, /hello\n");
/** A command for the box that finds the process id of our program with this name. */
const pidOf = (name: string): string => `grep -lax ${name} /proc/[0-9]*/comm | cut -d/ -f3`;

export function grantedNetworkCases(kind: Networked): void {
  const all = { ...kind, skip: kind.skip || noCertificates };
  reachCases(all);
  streamCases(all);
  commandCases(all);
  grantCases(all);
}

function reachCases(kind: Networked): void {
  const { skip } = kind;
  test(
    "a pod whose network is shut reaches only what was granted, and each attempt is in the ledger",
    { skip },
    async () => {
      await using all = await openedAt(kind, {}, "enforced");
      await using box = await all.place.open(all.wanted);
      await hello(box);
      const { out, result } = await sh(
        box,
        "curl -sS https://other.test/; curl -sS --noproxy '*' -m 3 https://198.51.100.7/",
      );
      assert.match(out, /403/);
      assert.match(out, /Could ?n.t connect|Failed to connect|unreachable|timed out/i);
      assert.deepEqual(
        result.blocked_connections?.map(({ host, rule }) => [host, rule]),
        [["other.test", "not-granted"]],
      );
      const [pod = ""] = await all.place.named("pods");
      const policies = await all.place.named("networkpolicies");
      assert.deepEqual(policies, [pod], "no policy but the one that denies all");
      const devices = await sh(box, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort");
      assert.deepEqual(devices.out.trim().split("\n"), kind.devices);
      assert.deepEqual(
        all.heard
          .filter(({ rule }) => rule !== "connections")
          .map(({ host, verdict }) => `${verdict} ${host}`),
        [`allowed ${HOST}`, "denied other.test"],
      );
    },
  );

  test("a secret is inserted on this side and is never in the pod", { skip }, async () => {
    const SECRET = { name: "TOKEN", placeholder: "PLACEHOLDER-1", value: "the-real-one-7", hosts: [HOST] };
    await using all = await openedAt(kind, {
      grants: [parseGrant(`${HOST}:read:private`)],
      secrets: [SECRET],
    });
    await using box = await all.place.open(all.wanted);
    const curl = `${GET}/me -H 'Authorization: Bearer PLACEHOLDER-1'`;
    // The answer is masked, too: the server received the real secret.
    assert.equal((await sh(box, curl)).out, "you are Bearer PLACEHOLDER-1, /me\n");
    assert.match((await sh(box, `${curl} -X DELETE`)).out, /DELETE is not granted for api\.test/);
    const { out } = await sh(
      box,
      "env; cat /proc/self/environ; cat /run/harness/* 2>/dev/null | tr -d '\\0'",
    );
    assert.match(out, /HTTPS_PROXY=/);
    assert.doesNotMatch(out, /the-real-one-7/);
  });

  test("a read-only box has granted access, too", { skip }, async () => {
    await using all = await openedAt(kind);
    await using box = await all.place.open({ ...all.wanted, mode: "read-only" });
    await hello(box);
  });
}

function streamCases(kind: Networked): void {
  const { skip } = kind;
  test(
    "many parallel connections and large transfers arrive byte for byte, even if a reader is slow",
    { skip },
    async () => {
      await using all = await openedAt(kind);
      await using box = await all.place.open(all.wanted);
      const asked = `for i in $(seq 40); do ${GET}/n$i & done; wait`;
      const { out } = await sh(box, asked);
      const each = Array.from({ length: 40 }, (_, index) => `you are nobody, /n${index + 1}`);
      assert.deepEqual(out.trim().split("\n").toSorted(), each.toSorted());
      const sum = "sha256sum";
      const [down, slow] = await Promise.all([
        sh(box, `${GET}/down | ${sum}`),
        sh(box, `${GET}/down | (sleep 0.5; cat) | ${sum}`),
      ]);
      assert.deepEqual(
        [down, slow].map((each) => each.out.slice(0, 64)),
        [sha(DOWN), sha(DOWN)],
      );
      const up = await sh(box, `head -c ${20 * 2 ** 20} /dev/urandom > big; ${sum} big; ${GET}/up -T big`);
      const [, made = "", got] = /^([0-9a-f]{64}) .*\n([0-9a-f]{64})$/.exec(up.out.trim()) ?? [];
      assert.equal(got, made, up.out);
      assert.notEqual(made, "");
    },
  );

  test("a stream that either side aborts ends, and the others continue", { skip }, async () => {
    await using all = await openedAt(kind);
    await using box = await all.place.open(all.wanted);
    const cut = await sh(box, `${GET}/cut; echo " $?"`);
    assert.match(cut.out, / (?:18|56|92)\n/);
    const left = await sh(box, `timeout 1 ${GET}/held; echo $?; ${GET}/after`);
    assert.equal(left.out, "124\nyou are nobody, /after\n");
    await hello(box);
  });
}

function commandCases(kind: Networked): void {
  const { skip } = kind;
  test(
    "the relay is not counted as a process of a command, and does not remain at its end",
    { skip },
    async () => {
      await using all = await openedAt(kind);
      await using box = await all.place.open(all.wanted);
      await using plain = await all.place.open();
      const [one, other] = [await sh(box, "sleep 0.4"), await sh(plain, "sleep 0.4")];
      assert.deepEqual([one.result.leftovers, one.result.killed], [0, false]);
      assert.equal(one.result.peak.pids, other.result.peak.pids);
      const left = await sh(box, "(setsid sleep 100 & sleep 100 &) ; echo done");
      assert.deepEqual([left.out, left.result.leftovers >= 2], ["done\n", true]);
      await hello(box);
      assert.equal((await sh(box, "(setsid sleep 100 &); sleep 100", 300)).result.timed_out, true);
      await hello(box);
    },
  );

  test("a fork bomb is ended at once, and granted access returns", { skip }, async () => {
    await using all = await openedAt(kind);
    await using box = await all.place.open(all.wanted);
    const bomb = await sh(box, "ulimit -u 400; b() { b | b & }; b; sleep 100", 1500);
    assert.equal(bomb.result.timed_out, true);
    await hello(box);
  });

  test(
    "the relay is restarted after a command kills it, and no command can impersonate it",
    { skip },
    async () => {
      await using all = await openedAt(kind);
      await using box = await all.place.open(all.wanted);
      for (const signal of ["KILL", "TERM"]) {
        assert.equal((await sh(box, `kill -${signal} $(${pidOf("relay")}) && echo ended`)).out, "ended\n");
        await hello(box);
      }
      assert.deepEqual(all.place.said, []);
      const opens = await sh(
        box,
        `for p in $(${pidOf("relay")}); do echo x > /proc/$p/fd/1 && echo OPENED; done`,
      );
      assert.match(opens.out, /Permission denied/);
      assert.doesNotMatch(opens.out, /OPENED/);
      await hello(box);
    },
  );
}

function grantCases(kind: Networked): void {
  const { skip } = kind;
  test("a grant in the middle of a run holds until it is withdrawn", { skip }, async () => {
    await using all = await openedAt(kind, { grants: [] });
    await using box = await all.place.open(all.wanted);
    assert.equal(
      (await sh(box, `env | grep -ci proxy; ls /run/harness; ${pidOf("relay")}`)).out,
      "0\nls: cannot access '/run/harness': No such file or directory\n",
    );
    const withdraw = await box.network?.grant(
      [parseGrant(`${HOST}:private`)],
      { SAID: "yes" },
      { "tool/settings": "one\n" },
    );
    await hello(box);
    assert.equal((await sh(box, "cat /run/harness/tool/settings; echo $SAID")).out, "one\nyes\n");
    // Inspected connections need the proxy's own authority: the box's certificates are rewritten.
    const reading = await box.network?.grant([parseGrant(`read.test:read:private`)]);
    assert.match((await sh(box, "grep -c BEGIN /run/harness/ca.pem")).out, /^2\n/);
    withdraw?.();
    reading?.();
    assert.equal((await sh(box, "env | grep -ci proxy")).out, "0\n");
    assert.match((await sh(box, `https_proxy=http://127.0.0.1:3128 ${GET}/x`)).out, /403/);
  });

  test(
    "a pod without grants has no port and no relay; nothing is left of one that had them",
    { skip },
    async () => {
      await using all = await openedAt(kind);
      {
        await using box = await all.place.open(all.wanted);
        await hello(box);
        assert.ok(existsSync(all.folder));
      }
      assert.equal(existsSync(all.folder), false);
      assert.deepEqual(await readdir(all.place.place.at("state/far/boxes")), []);
      await using box = await all.place.open();
      assert.equal(box.network, undefined);
      assert.equal(
        (
          await sh(
            box,
            `${pidOf("'\\(relay\\|bridge\\)'")}; curl -sS http://127.0.0.1:3128 2>/dev/null; echo $?`,
          )
        ).out,
        "7\n",
      );
    },
  );
}
