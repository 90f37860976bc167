import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import test from "node:test";
import { setTimeout } from "node:timers/promises";
import { changesOfReturned } from "../../src/boxes/workspace/session-layer.ts";
import { layerOf } from "../../src/boxes/workspace/layer-record.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { type Fault, statusOf } from "../fakes/kubernetes-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { type StubPlace, stubPlace } from "./stub-pods.ts";

const exec = (box: OwnedBox, line: string) => box.exec(asking(["bash", "-c", line]), NEVER);

const nothingLeft = ({ api }: StubPlace): void => {
  assert.deepEqual([api.named("pods"), api.named("networkpolicies")], [[], []]);
};

/** Ends with 6 and says so, and leaves nothing in the cluster. */
async function refused(place: StubPlace, words: RegExp, patienceMs?: number): Promise<void> {
  await assert.rejects(place.open({}, patienceMs), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.equal(thrown.exit, EXIT.sandbox);
    assert.match(thrown.message, words);
    return true;
  });
  nothingLeft(place);
  assert.deepEqual(await readdir(place.place.at("project")), ["a.txt"]);
}

test(
  "a session's changes in a pod come back as its layer, and continue in the next pod",
  { skip },
  async () => {
    await using place = await stubPlace("none", { "a.txt": "one\n", "gone.txt": "x" });
    const keep = "session1";
    const change = async (line: string): Promise<void> => {
      await using box = await place.open({ keep });
      assert.equal((await exec(box, line)).exit_code, 0);
    };
    await change("echo two >> a.txt; rm gone.txt; ln -s a.txt link");
    await change("cat a.txt > b.txt; chmod 755 b.txt");
    const layer = await layerOf(place.place.at("state"), keep);
    assert.ok(layer !== undefined);
    const { changes } = await changesOfReturned(layer);
    assert.deepEqual(
      changes.map(({ path, what, kind }) => `${what} ${kind} ${path}`),
      ["modified file a.txt", "added file b.txt", "deleted file gone.txt", "added link link"],
    );
    assert.equal(await readFile(`${layer.folder}/tree/b.txt`, "utf8"), "one\ntwo\n");
    assert.equal(await place.place.read("project/a.txt"), "one\n");
    nothingLeft(place);
  },
);

test(
  "folders that the image provides are in place and writable, and neither they nor the host's files there come back",
  { skip },
  async () => {
    await using place = await stubPlace("none", { "a.txt": "one\n", "deps/mine.txt": "the host's" });
    const from = "/usr/local/lib/harness/bin";
    const project = place.place.at("project");
    const brought = ["deps", "made/here"].map((name) => ({ from, to: `${project}/${name}` }));
    const wants = { ...podWants(image), brought: [...brought, { from, to: "/var/cache/harness" }] };
    const keep = "session1";
    const change = async (line: string): Promise<string> => {
      await using box = await place.open({ keep, wants, env: { FLAVOUR: "x" } });
      const { exit_code, stdout } = await exec(box, line);
      assert.equal(exit_code, 0);
      return Buffer.from(stdout.head).toString();
    };
    const all = `for at in deps made/here /var/cache/harness; do diff -r ${from} $at && touch $at/new; done`;
    assert.equal(await change(`set -e; ${all}; echo two >> a.txt; echo "$FLAVOUR"`), "x\n");
    const again = await change("ls deps/new /var/cache/harness/new made/here/new 2>&1; cat a.txt");
    assert.equal(again.match(/No such file/g)?.length, 3);
    assert.match(again, /one\ntwo\n$/);
    const layer = await layerOf(place.place.at("state"), keep);
    assert.ok(layer !== undefined);
    const { changes } = await changesOfReturned(layer);
    assert.deepEqual(
      changes.map(({ path, what }) => `${what} ${path}`),
      ["modified a.txt"],
    );
  },
);

test("folders that the image provides are there in a read-only box, too", { skip }, async () => {
  await using place = await stubPlace("none");
  const from = "/usr/local/lib/harness/bin";
  const to = place.place.at("project/deps");
  const wants = { ...podWants(image), brought: [{ from, to }] };
  await using box = await place.open({ mode: "read-only", wants });
  const { exit_code } = await exec(box, `diff -r ${from} deps && ! touch deps/new`);
  assert.equal(exit_code, 0);
});

test("a folder that the image lacks is named, and there is no box", { skip }, async () => {
  await using place = await stubPlace("none");
  const to = place.place.at("project/deps");
  const wants = { ...podWants(image), brought: [{ from: "/no/such/folder", to }] };
  await assert.rejects(
    place.open({ wants }),
    /deps could not be copied from the image: find: .*no\/such\/folder/,
  );
  nothingLeft(place);
});

test("a network is proven open, then shut, before any file is in the box", { skip }, async () => {
  await using place = await stubPlace("enforced");
  await using box = await place.open();
  const [pod = ""] = place.api.named("pods");
  assert.deepEqual(place.api.named("networkpolicies"), [pod]);
  const { stdout } = await exec(box, 'tail -n +3 /proc/net/dev | cut -d: -f1; ls; printf %s "$HARNESS_API"');
  const [device, file, api] = Buffer.from(stdout.head).toString().split("\n");
  assert.deepEqual([device?.trim(), file], ["lo", "a.txt"]);
  assert.match(api ?? "", /^\d+\.\d+\.\d+\.\d+ 443$/);
});

test("a cluster in which nothing enforces policies gets no box", { skip }, async () => {
  await using place = await stubPlace("open");
  await refused(place, /its network is not shut: .*nothing in the cluster enforces network policies/, 1500);
});

test("a policy of the namespace that would open a box is named", { skip }, async () => {
  await using place = await stubPlace("enforced");
  await place.api.addPolicy({
    metadata: { name: "all-out" },
    spec: { podSelector: {}, egress: [{}] },
  });
  await assert.rejects(place.open(), /the network policy all-out of the namespace allows it/);
  assert.deepEqual(place.api.named("pods"), []);
});

test("a read-only box is filled by another container once its network is shut", { skip }, async () => {
  await using place = await stubPlace("enforced");
  await using box = await place.open({ mode: "read-only" });
  const { exit_code, stdout } = await exec(box, "cat a.txt; echo x > b.txt");
  assert.notEqual(exit_code, 0);
  assert.equal(Buffer.from(stdout.head).toString(), "one\n");
  const [written] = [await box.write("a.txt", Buffer.from("x"))];
  assert.notEqual(written.kind, "ok");
});

test("an addition by a webhook is named, and nothing runs", { skip }, async () => {
  await using place = await stubPlace("none");
  place.api.mutate = ({ spec: { containers } }) => {
    const [box] = containers;
    if (box !== undefined) containers.push({ ...box, name: "sidecar" });
  };
  await refused(place, /not as planned, according to the cluster.*\n.*spec\.containers\[1\]: was added/);
});

const once = (fits: RegExp, status: number, body: unknown, more: Partial<Fault> = {}): Fault => ({
  fits,
  times: 1,
  status,
  body,
  ...more,
});
const EXPIRED = statusOf(410, "Expired", "too old resource version: 1 (1810)");

const PASSING: readonly (readonly [string, Fault])[] = [
  ["a server that is busy (429)", once(/^POST .*\/pods$/, 429, statusOf(429, "TooManyRequests", "later"))],
  [
    "a server that is overloaded (503)",
    once(/^GET .*\/pods\/[^?]*$/, 503, statusOf(503, "ServiceUnavailable", "")),
  ],
  ["a watch that has expired (410)", once(/watch=1/, 410, EXPIRED)],
  [
    "a watch that expires while it is read",
    once(/watch=1/, 200, { type: "ERROR", object: EXPIRED }, { streamed: true }),
  ],
];

for (const [what, fault] of PASSING)
  test(`${what} is waited out`, { skip }, async () => {
    await using place = await stubPlace("none");
    place.api.faults.push(fault);
    await using box = await place.open();
    assert.equal((await exec(box, "true")).exit_code, 0);
    assert.equal(fault.times, 0);
  });

const QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0';
const RBAC =
  'pods is forbidden: User "me" cannot create resource "pods" in API group "" in the namespace "team"';
const REFUSALS: readonly (readonly [RegExp, string, RegExp])[] = [
  [/: quota: .*exceeded quota/, QUOTA, /^POST .*\/pods$/],
  [/: not authorised: .*cannot create/, RBAC, /^POST .*\/pods$/],
  [/: not authorised: /, "networkpolicies is forbidden", /^POST .*\/networkpolicies$/],
  [/: webhook refusal: /, 'admission webhook "w" denied the request: no', /^POST .*\/pods$/],
];

for (const [words, message, fits] of REFUSALS)
  test(`${message.slice(0, 40)} … is reported as ${words.source}`, { skip }, async () => {
    await using place = await stubPlace("none");
    place.api.faults.push(once(fits, 403, statusOf(403, "Forbidden", message)));
    await refused(place, words);
  });

const SPENT =
  'pods "x" is forbidden: exceeded quota: q, requested: limits.memory=512Mi,pods=1, used: limits.memory=3Gi,pods=2, limited: limits.memory=3200Mi,pods=2';

test(
  "a quota that others have used up is reported once and waited for, but only for the set time",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    const full = once(/^POST .*\/pods$/, 403, statusOf(403, "Forbidden", SPENT));
    place.api.faults.push({ ...full, times: 2 });
    {
      await using box = await place.open();
      assert.equal((await exec(box, "true")).exit_code, 0);
    }
    assert.equal(place.said.filter((text) => /quota has no room/.test(text)).length, 1);
    place.api.faults.push({ ...full, times: Infinity });
    const wants = { ...podWants(image), scheduleMs: 100 };
    await assert.rejects(place.open({ wants }), { exit: EXIT.sandbox, message: /: quota: .*exceeded quota/ });
    nothingLeft(place);
  },
);

test("an image that cannot be pulled is reported as such", { skip }, async () => {
  await using place = await stubPlace("none");
  const wants = podWants("harness-test-no-such-image:1");
  await assert.rejects(place.open({ wants }), /image cannot be pulled/);
  nothingLeft(place);
});

test(
  "an API server that is briefly gone is waited for, and one that stays away is named",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    place.api.away(true);
    const opening = place.open();
    const back = setTimeout(500).then(() => place.api.away(false));
    await using box = await opening;
    await back;
    assert.equal((await exec(box, "true")).exit_code, 0);
    place.api.away(true);
    await assert.rejects(place.open({}, 300), /no cluster answers at http:\/\/127\.0\.0\.1/);
    place.api.away(false);
  },
);

test("a tree that arrives only half makes no box, and nothing is left of it", { skip }, async () => {
  const large = { "a.txt": "y".repeat(2_000_000) };
  await using place = await stubPlace("none", large);
  place.api.cutAttachAfter = 700_000;
  await refused(place, /the box was lost|could not be copied/);
});

test(
  "a tree that comes back only half leaves the earlier state, and reports what is lost",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    const keep = "session1";
    {
      await using box = await place.open({ keep });
      await exec(box, "echo first > b.txt");
    }
    const box = await place.open({ keep });
    await exec(box, "head -c 3000000 /dev/urandom > large; echo second > b.txt");
    place.api.cutSentAfter(1_000_000);
    await box[Symbol.asyncDispose]();
    assert.match(place.said.join("\n"), /lost with the pod: what the box changed since it began/);
    const layer = await layerOf(place.place.at("state"), keep);
    assert.ok(layer !== undefined);
    assert.deepEqual(
      (await changesOfReturned(layer)).changes.map(({ path }) => path),
      ["b.txt"],
    );
    assert.equal(await readFile(`${layer.folder}/tree/b.txt`, "utf8"), "first\n");
    nothingLeft(place);
  },
);

test("a lost box is reported with the cluster's reason", { skip }, async () => {
  await using place = await stubPlace("none");
  await using box = await place.open();
  const lost = assert.rejects(
    exec(box, "sleep 60"),
    /the box was lost: .*evicted: The node was low on resource/s,
  );
  await place.api.evict(place.api.named("pods")[0] ?? "", {
    reason: "Evicted",
    message: "The node was low on resource: memory.",
  });
  await lost;
});

test(
  "an API server that disappears while a command runs ends it with a message, and the rest is removed when it is back",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    const box = await place.open({ keep: "session1" });
    const running = exec(box, "echo two >> a.txt; sleep 60");
    place.api.away(true);
    await assert.rejects(
      running,
      /the box was lost: .*connection lost: .* API server at \S+ does not answer/s,
    );
    place.api.away(false);
    await box[Symbol.asyncDispose]();
    assert.match(place.said.join("\n"), /lost with the pod: .*: the box was lost: .*connection lost/s);
    nothingLeft(place);
  },
);

const FULL = "0/3 nodes are available: 3 Insufficient memory.";

test(
  "the scheduler's message is reported at once, and a box begins when there is room",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    place.api.noRoom(FULL);
    const opening = place.open();
    while (place.said.length === 0) await setTimeout(20);
    assert.match(place.said.join(), /no node has room for the box yet: 0\/3 nodes are available/);
    const [pod = ""] = place.api.named("pods");
    place.api.place(pod, FULL);
    place.api.place(pod, undefined);
    await using box = await opening;
    assert.equal((await exec(box, "true")).exit_code, 0);
    assert.equal(place.said.filter((text) => text.includes("no node has room")).length, 1);
  },
);

test(
  "a pod that fits on no node is given up after its own time limit, with the scheduler's message",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    place.api.noRoom(FULL);
    const wants = { ...podWants("any:1"), scheduleMs: 50 };
    await assert.rejects(place.open({ wants }), /no pod as a box: unschedulable: 0\/3 nodes are available/);
    nothingLeft(place);
  },
);
