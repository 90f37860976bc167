// slow: it grants networks on a remote engine; granted-network.engine.test.ts has them here
/** Boxes of an engine that is reached over a network: no socket of this machine is in them. */
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { boxFolders } from "../../../src/boxes/box-record.ts";
import { type Connection, parseGrant } from "../../../src/core/network.ts";
import { folderForMounts } from "../../../src/docker/box/account.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import type { NetworkRequest } from "../../../src/docker/egress/box-network.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { type OverNetwork, overNetwork } from "../../fixtures/engine-over-network.ts";
import { skip as noEngine } from "../../fixtures/engine.ts";
import { type HttpsStub, httpsStub, noCertificates } from "../../fixtures/https-stub.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { boxesOver } from "../../fixtures/standing-boxes.ts";
import { openBox, type Opened } from "../box/open-box.ts";

const skip = noEngine || noCertificates;
const HOST = "api.test";
const MINUTE = 60_000;

interface Far extends AsyncDisposable {
  readonly place: Scratch;
  readonly heard: readonly Connection[];
  readonly request: (more?: Partial<NetworkRequest>) => NetworkRequest;
  readonly open: (wanted: Partial<BoxRequest>) => Promise<Opened>;
}

async function farPlace(): Promise<Far> {
  await using stack = new AsyncDisposableStack();
  const server: HttpsStub = stack.use(
    await httpsStub([HOST], (request, response) => {
      response.end(`you are ${request.headers.authorization ?? "nobody"}, ${request.url ?? ""}\n`);
    }),
  );
  const far: OverNetwork = stack.use(await overNetwork());
  const place = stack.use(await scratch({ "w/a.txt": "a\n" }));
  const heard: Connection[] = [];
  const kept = stack.move();
  return {
    place,
    heard,
    request: (more = {}) => ({
      grants: [parseGrant(`${HOST}:private`)],
      trust: () => Promise.resolve(server.authority),
      roots: server.authority,
      ...server.found,
      onConnection: (connection) => void heard.push(connection),
      ...more,
    }),
    open: (wanted) => openBox(place, { isolation: "copy", ...wanted }, { engine: far.engine }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const GET = `curl -sS --max-time 30 https://${HOST}`;
const code = (line: string): string => `${line} >/dev/null 2>&1 || echo $?`;

/** Folders of networks that are not mounted, of this process. */
async function folders(place: Scratch): Promise<readonly string[]> {
  const mounts = await folderForMounts(process.getuid?.() ?? 0, place.at("state"));
  const all = await boxFolders(path.join(mounts, "far"));
  return all.filter(({ owner }) => owner?.pid === process.pid).map(({ id }) => id);
}

for (const isolation of ["copy", "bind"] as const)
  test(`a box of a remote engine reaches only what was granted (${isolation})`, { skip }, async () => {
    await using far = await farPlace();
    {
      await using opened = await far.open({ network: far.request(), isolation });
      const { box, sh } = opened;
      assert.equal(await sh(`${GET}/hello`), "you are nobody, /hello\n");
      assert.equal((await folders(far.place)).length, 1);
      const [id = ""] = await boxesOver(box.workspace);
      const { HostConfig, NetworkSettings } = await engine.api.getContainer(id).inspect();
      const mounts = (HostConfig.Mounts ?? []).map(({ Target }) => Target);
      assert.deepEqual([mounts.includes("/run/harness"), HostConfig.NetworkMode], [false, "none"]);
      assert.deepEqual(Object.keys(NetworkSettings.Networks), ["none"]);
      const refused = { words: ["curl", "-sS", "https://other.test/"], timeoutMs: 30_000 };
      const { blocked_connections: blocked } = await box.exec(
        { ...refused, keep: { head: 4096, tail: 0 } },
        AbortSignal.timeout(60_000),
      );
      assert.deepEqual(
        blocked?.map(({ host, rule }) => [host, rule]),
        [["other.test", "not-granted"]],
      );
      assert.equal(await sh(code("curl -sS --noproxy '*' -m 3 https://198.51.100.7/")), "7\n");
      assert.deepEqual(opened.warnings, []);
    }
    assert.deepEqual(
      far.heard.map(({ host, verdict }) => `${verdict} ${host}`),
      [`allowed ${HOST}`, "denied other.test"],
    );
    assert.deepEqual(await folders(far.place), []);
  });

test("a secret is inserted on this side and never reaches the engine", { skip }, async () => {
  const SECRET = { name: "TOKEN", placeholder: "PLACEHOLDER-1", value: "the-real-one-7", hosts: [HOST] };
  await using far = await farPlace();
  const grants = [parseGrant(`${HOST}:read:private`)];
  await using opened = await far.open({ network: far.request({ grants, secrets: [SECRET] }) });
  const { box, sh } = opened;
  const curl = `${GET}/me -H 'Authorization: Bearer PLACEHOLDER-1'`;
  assert.equal(await sh(curl), "you are Bearer PLACEHOLDER-1, /me\n");
  assert.match(await sh(`${curl} -X DELETE`), /DELETE is not granted for api\.test/);
  const [id = ""] = await boxesOver(box.workspace);
  assert.doesNotMatch(JSON.stringify(await engine.api.getContainer(id).inspect()), /the-real-one-7/);
  assert.doesNotMatch(await sh("env; cat /run/harness/ca.pem /run/harness/apt.conf"), /the-real-one-7/);
});

test(
  "a grant during a run applies until it is withdrawn, and before it there is no network at all",
  { skip },
  async () => {
    await using far = await farPlace();
    await using opened = await far.open({ network: far.request({ grants: [] }), mode: "read-only" });
    const { box, sh } = opened;
    assert.equal(
      await sh("env | grep -ci proxy || true; ls /run/harness 2>&1 | grep -c 'No such'"),
      "0\n1\n",
    );
    const withdraw = await box.network?.grant([parseGrant(`${HOST}:private`)], { SAID: "yes" });
    assert.equal(await sh(`${GET}/x; echo $SAID`), "you are nobody, /x\nyes\n");
    withdraw?.();
    assert.match(await sh(`https_proxy=http://127.0.0.1:3128 ${GET}/y 2>&1 || true`), /403/);
  },
);

const much = (): Promise<string> => Promise.resolve("x".repeat(400_000));

test("a small box has room for the settings of its tools", { skip }, async () => {
  await using far = await farPlace();
  const limits = { memory: 64 * 2 ** 20, cpus: null, pids: 64 };
  await using opened = await far.open({ network: far.request({ trust: much }), limits });
  assert.equal(await opened.sh("wc -c < /run/harness/ca.pem"), "400000\n");
});

const KEPT: Partial<BoxRequest> = { keep: "session-1", parks: MINUTE };
const COUNTING = `while :; do ${GET}/job >>/tmp/heard 2>&1; sleep 0.2; done`;

/** Parks a box in which a job asks again and again. */
async function parked(far: Far): Promise<void> {
  await using opened = await far.open({ ...KEPT, network: far.request() });
  const { box, sh } = opened;
  box.start({ words: ["bash", "-c", COUNTING], timeoutMs: 0, keep: { head: 64, tail: 64 }, name: "j1" });
  assert.equal(await sh(`${GET}/one`), "you are nobody, /one\n");
  const handle = await box.park?.();
  await handle?.freeze();
}

test(
  "a frozen remote box continues with a new proxy on this side, and its jobs reach the same hosts",
  { skip },
  async () => {
    await using far = await farPlace();
    await parked(far);
    assert.deepEqual(await folders(far.place), [], "nothing listens for it, and nothing waits");
    {
      const again = { ...KEPT, takesUp: Date.now() + MINUTE, network: far.request() };
      await using taken = await far.open(again);
      assert.deepEqual(taken.warnings, []);
      assert.ok(taken.box.kept?.has("j1"));
      assert.equal(await taken.sh(`${GET}/two`), "you are nobody, /two\n");
      const heard = (): Promise<string> => taken.sh("grep -c nobody /tmp/heard");
      const first = Number(await heard());
      for (let looks = 0; Number(await heard()) <= first; looks += 1) {
        assert.ok(looks < 100, "the job reaches nothing any more");
        await sleep(100);
      }
      assert.match(await taken.sh("curl -sS https://other.test/ 2>&1 || true"), /403/);
    }
    assert.deepEqual(await folders(far.place), []);
  },
);

test("with nothing granted any more a new box continues, with the reason", { skip }, async () => {
  await using far = await farPlace();
  await parked(far);
  await using taken = await far.open({ ...KEPT, takesUp: Date.now() + MINUTE });
  assert.match(taken.warnings.join("\n"), /it has a network, but none is granted now\. A new one continues/);
  assert.equal(taken.box.network, undefined);
});
