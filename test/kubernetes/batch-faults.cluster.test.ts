import assert from "node:assert/strict";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { batchOf, replies } from "../e2e/batch.ts";
import { type KubeObject, look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";
import {
  drained,
  indexOf,
  nothingLeft,
  phase,
  pods,
  starve,
  tooOld,
  underWay,
  untilPrinted,
} from "./batch-faults.ts";
import { batchPlace, noBatches, sharedTeam, type Started, tasksOf } from "./batch-place.ts";

/** Faults of a batch in a real cluster: nothing is lost, nothing ends twice, and each cause has its own name. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

const SLOW = "sleep 12; echo two >> notes.txt";

/** The results of a batch whose rows were all done. */
async function allDone(started: Started, rows = 1): Promise<ReturnType<typeof batchOf>> {
  const ran = await started.ended;
  assert.equal(ran.code, 0, `${ran.stderr}\n${ran.stdout}`);
  const told = batchOf(ran);
  assert.deepEqual([told.rows.length, told.whole.done], [rows, rows]);
  return told;
}

test(
  "a coordinator that is killed leaves its Job, which --resume finds; no row runs twice",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW, SLOW]);
    const words = [tasks, "--out", place.place.at("out"), "--jobs", "2"];
    const first = place.start(...words);
    await underWay(place);
    first.child.kill("SIGKILL");
    await first.ended;
    const again = await place.start(...words).ended;
    assert.equal(again.code, 2, again.stderr);
    assert.match(again.stderr + again.stdout, /already exists in the namespace /);
    const { rows } = await allDone(place.start(...words, "--resume"), 2);
    assert.deepEqual(
      rows.map(({ attempts }) => attempts),
      [0, 0],
    );
    assert.equal(place.model.asked().length, 4);
    assert.equal((await place.jobs()).length, 1);
  },
);

/** The objects that a coordinator creates one after the other. */
const MADE: readonly (readonly [what: string, path: string, is: (object: KubeObject) => boolean])[] = [
  ["its Job", "/apis/batch/v1/namespaces/NAME/jobs", () => true],
  [
    "its rows",
    "/api/v1/namespaces/NAME/configmaps",
    ({ metadata }) => metadata.name.startsWith("harness-batch-"),
  ],
  [
    "the permission to begin",
    "/apis/batch/v1/namespaces/NAME/jobs",
    (job) => look(job, "spec", "suspend") === false,
  ],
];

test(
  "a coordinator that is killed after each object it creates loses nothing; no row runs twice",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const words = [tasks, "--out", place.place.at("out"), "--resume"];
    for (const [what, at, is] of MADE) {
      const started = place.start(...words);
      await api.until(at.replace("NAME", place.space.name), ({ body }) =>
        ((body["items"] ?? []) as KubeObject[]).some(is),
      );
      started.child.kill("SIGKILL");
      assert.equal((await started.ended).code, null, what);
    }
    const watching = place.start(...words);
    await underWay(place);
    watching.child.kill("SIGKILL");
    await watching.ended;
    const { rows } = await allDone(place.start(...words));
    assert.deepEqual([rows[0]?.attempts, place.model.asked().length], [0, 2]);
    assert.equal((await place.jobs()).length, 1);
    // Finished rows are reported again, and not run.
    await allDone(place.start(tasks, "--out", place.place.at("another"), "--resume"));
    assert.equal(place.model.asked().length, 2);
  },
);

test("two watchers of one batch receive the same results", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = ["one", "two"].map((name) => place.start(tasks, "--out", place.place.at(name), "--resume"));
  const [one, two] = await Promise.all(started.map((each) => allDone(each)));
  assert.deepEqual(one?.rows, two?.rows);
  assert.equal((await place.jobs()).length, 1);
  assert.equal(place.model.asked().length, 2);
});

test(
  "a pod that somebody deletes costs its row one attempt, and its box goes with it",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const started = place.start(tasks, "--out", place.place.at("out"));
    const { loop, box } = await underWay(place);
    await api.must("DELETE", `${place.space.pods}/${loop.metadata.name}`);
    const { rows } = await allDone(started);
    assert.equal(rows[0]?.attempts, 1);
    await nothingLeft(place);
    assert.equal((await api.ask("GET", `${place.space.pods}/${box.metadata.name}`)).status, 404);
    const left = await api.list(`/apis/networking.k8s.io/v1/namespaces/${place.space.name}/networkpolicies`);
    assert.deepEqual(
      left.map(({ metadata }) => metadata.name),
      ["harness-loop"],
    );
  },
);

test("a pod that is deleted without a grace period costs its row one attempt, too", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  const { loop } = await underWay(place);
  await api.must("DELETE", `${place.space.pods}/${loop.metadata.name}`, { gracePeriodSeconds: 0 });
  const { rows } = await allDone(started);
  assert.equal(rows[0]?.attempts, 1);
  await nothingLeft(place);
});

test("a drained node costs a row no attempt, even when no retry is left", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = place.start(tasks, "--out", place.place.at("out"), "--retries", "0");
  const { loop, box } = await underWay(place);
  await drained(place, [loop, box], () => untilPrinted(started, /no node has room: /));
  const { rows } = await allDone(started);
  assert.equal(rows[0]?.attempts, 0);
});

test(
  "a loop that runs out of memory fails its row with that reason when no attempt is left",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const started = place.start(tasks, "--out", place.place.at("out"), "--retries", "0");
    const { loop } = await underWay(place);
    starve(cluster, loop);
    const ran = await started.ended;
    const { rows } = batchOf(ran);
    assert.deepEqual(
      [ran.code, rows.map(({ exit_code, cause }) => [exit_code, cause])],
      [1, [[137, "memory"]]],
    );
  },
);

test("an exhausted quota is reported, and the batch continues when there is room", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const quotas = `/api/v1/namespaces/${place.space.name}/resourcequotas`;
  await api.must("POST", quotas, { metadata: { name: "q" }, spec: { hard: { pods: "0" } } });
  await api.until(`${quotas}/q`, ({ body }) => look(body, "status", "hard", "pods") === "0");
  const tasks = await tasksOf(await team(), place, ["echo two >> notes.txt"]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  await untilPrinted(started, /a quota of the namespace is used up: .*exceeded quota: q/);
  // There is room for the loop, but not for its box, which waits.
  await api.must("PATCH", `${quotas}/q`, { spec: { hard: { pods: "1" } } });
  await pods(place, (now) => now.some((pod) => indexOf(pod) === "0" && phase(pod) === "Running"));
  await sleep(3000);
  await api.must("PATCH", `${quotas}/q`, { spec: { hard: { pods: "4" } } });
  await allDone(started);
});

test("an image that cannot be pulled is reported; Ctrl-C ends only the watching", { skip }, async () => {
  const settings = { kubernetes: { loop_image: "registry.invalid/harness-loop:1" } };
  await using place = await batchPlace(await team(), replies, settings);
  const tasks = await tasksOf(await team(), place, ["true"]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  await untilPrinted(started, /an image cannot be pulled: /);
  started.child.kill("SIGINT");
  assert.equal((await started.ended).code, 130);
  assert.match(started.said.stderr, /the batch continues in the cluster/);
  assert.equal((await place.jobs()).length, 1);
});

test(
  "an API server that is gone for a minute and forgets its watches costs at most one attempt, and the row ends",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const started = place.start(tasks, "--out", place.place.at("out"));
    await underWay(place);
    const { metadata } = await api.must("GET", place.space.pods);
    await cluster.kill("api");
    try {
      await untilPrinted(started, /the cluster does not answer/);
      await sleep(60_000);
    } finally {
      await cluster.start("api");
    }
    await untilPrinted(started, /the cluster answers again/);
    await tooOld(place, metadata.resourceVersion);
    await allDone(started);
  },
);
