// slow: it fills and empties pools of pods; pods.engine.test.ts has a run
import assert from "node:assert/strict";
import test from "node:test";
import { clusterHealth } from "../../src/kubernetes/cluster-health.ts";
import { clusterOf } from "../../src/kubernetes/cluster.ts";
import { listPods, podNamed, removeBoxPod } from "../../src/kubernetes/own-pods.ts";
import type { PodRequest } from "../../src/kubernetes/start-pod-box.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import type { WarmPool } from "../fakes/warm-pool.ts";
import { image, skip } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { poolFor } from "../fixtures/warm-pool.ts";
import { openedAt } from "./granted-network.ts";
import { type StubPlace, stubPlace } from "./stub-pods.ts";

/** Boxes out of a warm pool, against an API that plays its controllers. */

const POOL = "boxes";
const WANTS: PodRequest["wants"] = { ...podWants(image), warmPool: POOL };

interface Pooled {
  readonly replicas?: number;
  readonly memory?: number;
  readonly network?: boolean;
}

async function pooled(place: StubPlace, wish: Pooled = {}): Promise<WarmPool> {
  const objects = poolFor({ place, image, namespace: "team", pool: POOL, replicas: 1, ...wish });
  const pool = place.api.installPool(objects);
  await pool.ready();
  return pool;
}

const posted = ({ api }: StubPlace): readonly string[] =>
  api.heard.flatMap((each) => /^POST .*\/namespaces\/team\/(\w+)$/.exec(each)?.[1] ?? []);

const nothingLeft = ({ api }: StubPlace): void =>
  assert.deepEqual([api.pool?.all(), api.named("pods"), api.named("networkpolicies")], [[], [], []]);

test(
  "a box is a waiting pod: its network is proven shut, it runs commands, and it goes with its claim",
  { skip },
  async () => {
    await using place = await stubPlace("enforced");
    const pool = await pooled(place);
    const [waits = ""] = await pool.ready();
    {
      await using box = await place.open({ wants: WANTS });
      assert.deepEqual(place.api.named("pods"), [waits]);
      const line = "tail -n +3 /proc/net/dev | cut -d: -f1; cat a.txt";
      const { exit_code, stdout } = await box.exec(asking(["bash", "-c", line]), NEVER);
      const words = Buffer.from(stdout.head).toString().split(/\s+/).filter(Boolean);
      assert.deepEqual([exit_code, words], [0, ["lo", "one"]]);
      const [claim] = pool.all();
      assert.deepEqual(place.api.named("networkpolicies"), [claim?.metadata.name]);
      const { shutdownTime = "", shutdownPolicy } = claim?.spec.lifecycle ?? {};
      assert.equal(shutdownPolicy, "Delete");
      const left = Date.parse(shutdownTime) - Date.now();
      assert.ok(left > WANTS.deadlineMs && left <= WANTS.deadlineMs + WANTS.startMs, String(left));
    }
    assert.deepEqual(place.said, []);
    assert.ok(!posted(place).includes("pods") && !posted(place).includes("sandboxes"));
    nothingLeft(place);
  },
);

/** Why the box has its own pod, with the message, and whether a claim was made. */
const OWN: readonly (readonly [
  string,
  Pooled,
  (place: StubPlace, waits: string) => unknown,
  RegExp | undefined,
  boolean,
])[] = [
  ["none waits", { replicas: 0 }, () => undefined, undefined, false],
  [
    "the user may not read the pool",
    {},
    ({ api }) =>
      api.faults.push({
        fits: /sandboxwarmpools/,
        times: 1,
        status: 403,
        body: { reason: "Forbidden", message: "sandboxwarmpools is forbidden" },
      }),
    /sandboxwarmpools is forbidden/,
    false,
  ],
  [
    "the user may not make a claim",
    {},
    ({ api }) =>
      api.faults.push({
        fits: /^POST .*sandboxclaims/,
        times: 1,
        status: 403,
        body: { reason: "Forbidden", message: "sandboxclaims is forbidden" },
      }),
    /sandboxclaims is forbidden/,
    true,
  ],
  [
    "the pool's pods have other limits",
    { memory: 2 ** 28 },
    () => undefined,
    /not match the plan for this box: .*memory/,
    true,
  ],
  [
    "the pool's pod has waited longer than a box may take",
    {},
    ({ api }) => (api.clockAhead = WANTS.deadlineMs + 60_000),
    /has waited too long/,
    true,
  ],
  [
    "somebody has left a file in its pod",
    {},
    ({ api }, waits) => api.intrude(waits, "echo x > /tmp/left"),
    /its pod was used before: \/tmp\/left is left over/,
    true,
  ],
  [
    "somebody has left a process in its pod",
    {},
    ({ api }, waits) => api.intrude(waits, "sleep 600 >/dev/null 2>&1 &"),
    /its pod was used before: the process sleep is left over/,
    true,
  ],
];

for (const [what, wish, prepare, told, isClaimed] of OWN)
  test(`the box gets its own pod where ${what}`, { skip }, async () => {
    await using place = await stubPlace("enforced");
    const pool = await pooled(place, wish);
    const [waits = ""] = await pool.ready();
    await prepare(place, waits);
    {
      await using box = await place.open({ wants: WANTS });
      const { exit_code } = await box.exec(asking(["sh", "-c", "cat a.txt; ! ls /tmp | grep left"]), NEVER);
      assert.equal(exit_code, 0);
      assert.equal(place.api.sandboxes?.all().length, 1);
      assert.deepEqual(pool.all(), [], "no claim is left");
    }
    assert.equal(posted(place).includes("sandboxclaims"), isClaimed);
    if (told === undefined) assert.deepEqual(place.said, []);
    else {
      assert.equal(place.said.length, 1, place.said.join("\n"));
      assert.match(place.said[0] ?? "", told);
    }
  });

test("a box from a pool can be granted hosts", { skip }, async () => {
  await using opened = await openedAt({ newPlace: (kind) => stubPlace(kind) }, {}, "enforced");
  const place = opened.place as StubPlace;
  await pooled(place, { network: true });
  await using box = await place.open({ ...opened.wanted, wants: WANTS });
  assert.deepEqual([place.said, posted(place).includes("sandboxes")], [[], false]);
  const { stdout } = await box.exec(asking(["curl", "-sS", "https://api.test/x"]), NEVER);
  assert.equal(Buffer.from(stdout.head).toString(), "you are nobody, /x\n");
});

test("a read-only box never comes from a pool, nor does one for another folder", { skip }, async () => {
  await using place = await stubPlace("none");
  const pool = await pooled(place);
  await using box = await place.open({ wants: WANTS, mode: "read-only" });
  assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
  assert.deepEqual([pool.all(), posted(place).includes("sandboxclaims")], [[], false]);
});

test("doctor reports whether a pod of the pool waits, and whether it may be claimed", { skip }, async () => {
  await using place = await stubPlace("none");
  const user = { env: { KUBECONFIG: place.place.at("kubeconfig") }, home: place.place.at("home") };
  const told = async (replicas: number): Promise<readonly string[]> => {
    await pooled(place, { replicas });
    const cluster = await clusterOf({ context: null, namespace: null }, user);
    const wants = { runtimeClass: null, sandboxResource: "auto", warmPool: POOL } as const;
    const found = await clusterHealth(cluster, wants);
    const named = found.filter(({ id }) => id === "warm_pool" || id === "rights");
    return named.map(({ id, state, detail }) => `${id} ${state}: ${detail}`);
  };
  const [rights, waits] = await told(1);
  assert.match(rights ?? "", /^rights ok: all \d+ that a box needs/);
  assert.equal(waits, "warm_pool ok: boxes has waiting pods");
  place.api.denied.add("create sandboxclaims");
  const [missing, none] = await told(0);
  assert.match(missing ?? "", /^rights fail: rights missing in team: create sandboxclaims$/);
  assert.equal(none, "warm_pool warn: boxes has no waiting pods: boxes get pods of their own");
});

test("a box from a pool is listed by its claim, and removed with it by name", { skip }, async () => {
  await using place = await stubPlace("none");
  await pooled(place);
  await using box = await place.open({ wants: WANTS });
  assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
  const user = { env: { KUBECONFIG: place.place.at("kubeconfig") }, home: place.place.at("home") };
  const cluster = await clusterOf({ context: null, namespace: null }, user);
  const mine = { uid: process.getuid?.() ?? 0, stateDir: place.place.at("state") };
  const [listed, ...others] = await listPods(cluster, mine);
  assert.deepEqual([others, listed?.state, listed?.workspace], [[], "running", place.place.at("project")]);
  assert.equal(await removeBoxPod(cluster, podNamed(listed?.id ?? "")), true);
  nothingLeft(place);
  assert.equal(await removeBoxPod(cluster, podNamed(listed?.id ?? "")), false);
});
