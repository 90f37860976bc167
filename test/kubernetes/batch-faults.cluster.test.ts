import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { batchOf, replies } from "../e2e/batch.ts";
import { type KubeObject, look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";
import { cgroupOf } from "./cluster-parts.ts";
import { NODE } from "./cluster-places.ts";
import { type BatchPlace, batchPlace, type Started, tasksOf, type Team, teamOn } from "./batch-place.ts";

/** What befalls a batch in a real cluster: nothing is lost, nothing ends twice, and each cause has its own word. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const skip =
  (cluster.release === "1.20" && "its Jobs have no back-off for each index") ||
  (cluster.network !== "enforced" && `boxes want a network that is shut: it is ${cluster.network}`);

const shared: { team?: Promise<Team> } = {};
const team = (): Promise<Team> => (shared.team ??= teamOn(cluster));
after(async () => {
  await (await shared.team)?.[Symbol.asyncDispose]();
});

const INDEX = "batch.kubernetes.io/job-completion-index";
const indexOf = (pod: KubeObject): string | undefined => pod.metadata.labels?.[INDEX];
const isBox = (pod: KubeObject): boolean => pod.metadata.labels?.["dev.harness.pod"] !== undefined;
const phase = (pod: KubeObject): unknown => look(pod, "status", "phase");

/** The pods of the namespace once this is so of them. */
async function pods(
  { space }: BatchPlace,
  are: (pods: readonly KubeObject[]) => boolean,
): Promise<readonly KubeObject[]> {
  const found = await api.until(
    space.pods,
    ({ body }) => are((body["items"] ?? []) as KubeObject[]),
    120_000,
  );
  return found["items"] as KubeObject[];
}

/** The loop of the row and its box, while a command is under way in it. */
async function underWay(place: BatchPlace): Promise<{ readonly loop: KubeObject; readonly box: KubeObject }> {
  const before = place.model.asked().length;
  const all = await pods(
    place,
    (now) => now.some((pod) => isBox(pod) && phase(pod) === "Running") && place.model.asked().length > before,
  );
  const box = all.find((pod) => isBox(pod) && phase(pod) === "Running");
  const owner = look(box, "metadata", "ownerReferences", 0, "name");
  const loop = all.find(({ metadata }) => metadata.name === owner);
  assert.ok(box !== undefined && loop !== undefined, `a box has no loop: ${String(owner)}`);
  return { loop, box };
}

async function heard(started: Started, words: RegExp): Promise<void> {
  const patience = AbortSignal.timeout(120_000);
  while (!words.test(started.said.stderr)) {
    assert.ok(!patience.aborted && started.child.exitCode === null, started.said.stderr);
    await sleep(100);
  }
}

const SLOW = "sleep 12; echo two >> notes.txt";

/** Of each row what it came to; a batch whose rows all did. */
async function allDone(started: Started, rows = 1): Promise<ReturnType<typeof batchOf>> {
  const ran = await started.ended;
  assert.equal(ran.code, 0, `${ran.stderr}\n${ran.stdout}`);
  const told = batchOf(ran);
  assert.deepEqual([told.rows.length, told.whole.done], [rows, rows]);
  return told;
}

const nothingLeft = (place: BatchPlace): Promise<unknown> =>
  pods(place, (now) => now.every((pod) => !isBox(pod)));

test(
  "a coordinator that is killed hard leaves its Job, which --resume finds; no row runs twice",
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
    assert.match(again.stderr + again.stdout, /is in the namespace \S+ already/);
    const { rows } = await allDone(place.start(...words, "--resume"), 2);
    assert.deepEqual(
      rows.map(({ attempts }) => attempts),
      [0, 0],
    );
    assert.equal(place.model.asked().length, 4);
    assert.equal((await place.jobs()).length, 1);
  },
);

/** Until the namespace has what a coordinator makes one after the other. */
const MADE: readonly (readonly [what: string, path: string, is: (object: KubeObject) => boolean])[] = [
  ["its Job", "/apis/batch/v1/namespaces/NAME/jobs", () => true],
  [
    "its rows",
    "/api/v1/namespaces/NAME/configmaps",
    ({ metadata }) => metadata.name.startsWith("harness-batch-"),
  ],
  [
    "the word that lets it begin",
    "/apis/batch/v1/namespaces/NAME/jobs",
    (job) => look(job, "spec", "suspend") === false,
  ],
];

test(
  "one that is killed hard as soon as each of its things is there, again and again, loses nothing; no row runs twice",
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
    // What has ended is told again, and run no more.
    await allDone(place.start(tasks, "--out", place.place.at("another"), "--resume"));
    assert.equal(place.model.asked().length, 2);
  },
);

test("two that watch one batch are told the same", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = ["one", "two"].map((name) => place.start(tasks, "--out", place.place.at(name), "--resume"));
  const [one, two] = await Promise.all(started.map((each) => allDone(each)));
  assert.deepEqual(one?.rows, two?.rows);
  assert.equal((await place.jobs()).length, 1);
  assert.equal(place.model.asked().length, 2);
});

test(
  "a pod that somebody deletes is another try of its row, and its box goes with it",
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

test("a pod that is deleted with no time to end is another try of its row, too", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  const { loop } = await underWay(place);
  await api.must("DELETE", `${place.space.pods}/${loop.metadata.name}`, { gracePeriodSeconds: 0 });
  const { rows } = await allDone(started);
  assert.equal(rows[0]?.attempts, 1);
  await nothingLeft(place);
});

async function evict(place: BatchPlace, pod: KubeObject): Promise<void> {
  const { name } = pod.metadata;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
  await api.must("POST", `${place.space.pods}/${name}/eviction`, body);
}

test("a node that is drained is no try of a row, though none is left", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const tasks = await tasksOf(await team(), place, [SLOW]);
  const started = place.start(tasks, "--out", place.place.at("out"), "--retries", "0");
  const { loop, box } = await underWay(place);
  const node = `/api/v1/nodes/${NODE}`;
  await api.must("PATCH", node, { spec: { unschedulable: true } });
  try {
    await Promise.all([evict(place, loop), evict(place, box)]);
    await heard(started, /no node has room: /);
  } finally {
    await api.must("PATCH", node, { spec: { unschedulable: null } });
  }
  const { rows } = await allDone(started);
  assert.equal(rows[0]?.attempts, 0);
});

test(
  "a loop that is ended for its memory fails its row by that word, where no try is left",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const started = place.start(tasks, "--out", place.place.at("out"), "--retries", "0");
    const { loop } = await underWay(place);
    starve(loop);
    const ran = await started.ended;
    const { rows } = batchOf(ran);
    assert.deepEqual(
      [ran.code, rows.map(({ exit_code, cause }) => [exit_code, cause])],
      [1, [[137, "memory"]]],
    );
  },
);

/**
 * Its limit is what it has by now, and somebody in its group wants more: the kernel ends those whose score says so first,
 * which are the loop's own.
 */
function starve(loop: KubeObject): void {
  const group = `/sys/fs/cgroup/memory/${cgroupOf(cluster.name)}`;
  const statuses = look(loop, "status", "containerStatuses") as readonly object[];
  const id = String(look(statuses[0], "containerID")).replace("containerd://", "");
  const all: readonly string[] = readdirSync(group, { recursive: true, encoding: "utf8" });
  const folder = all.find((name) => name.endsWith(id));
  assert.ok(folder !== undefined, `no group of ${id}`);
  const at = path.join(group, folder);
  const used = Number(readFileSync(path.join(at, "memory.usage_in_bytes"), "utf8"));
  writeFileSync(path.join(at, "memory.limit_in_bytes"), String(used + 2 ** 24));
  const wants = "import time; x = bytearray(2 ** 29); time.sleep(2)";
  const line = `echo $$ > '${at}/cgroup.procs'; exec timeout 20 python3 -c '${wants}'`;
  spawn("sh", ["-c", line], { stdio: "ignore" });
}

test("a quota that has no room is told, and the batch goes on when it has", { skip }, async () => {
  await using place = await batchPlace(await team(), replies);
  const quotas = `/api/v1/namespaces/${place.space.name}/resourcequotas`;
  await api.must("POST", quotas, { metadata: { name: "q" }, spec: { hard: { pods: "0" } } });
  await api.until(`${quotas}/q`, ({ body }) => look(body, "status", "hard", "pods") === "0");
  const tasks = await tasksOf(await team(), place, ["echo two >> notes.txt"]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  await heard(started, /a quota of the namespace has no room: .*exceeded quota: q/);
  // Room for the loop, and not for its box: which waits for it.
  await api.must("PATCH", `${quotas}/q`, { spec: { hard: { pods: "1" } } });
  await pods(place, (now) => now.some((pod) => indexOf(pod) === "0" && phase(pod) === "Running"));
  await sleep(3000);
  await api.must("PATCH", `${quotas}/q`, { spec: { hard: { pods: "4" } } });
  await allDone(started);
});

test("an image that is not to be had is told; Ctrl-C ends the watching alone", { skip }, async () => {
  const settings = { kubernetes: { loop_image: "registry.invalid/harness-loop:1" } };
  await using place = await batchPlace(await team(), replies, settings);
  const tasks = await tasksOf(await team(), place, ["true"]);
  const started = place.start(tasks, "--out", place.place.at("out"));
  await heard(started, /an image is not to be had: /);
  started.child.kill("SIGINT");
  assert.equal((await started.ended).code, 130);
  assert.match(started.said.stderr, /the batch goes on in the cluster/);
  assert.equal((await place.jobs()).length, 1);
});

test(
  "an API server that is gone for a minute, and knows no watch of before, costs a try at most, and the row ends",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [SLOW]);
    const started = place.start(tasks, "--out", place.place.at("out"));
    await underWay(place);
    const { metadata } = await api.must("GET", place.space.pods);
    await cluster.kill("api");
    try {
      await heard(started, /the cluster does not answer/);
      await sleep(60_000);
    } finally {
      await cluster.start("api");
    }
    await heard(started, /the cluster answers again/);
    // As a watch that goes on where it was is told.
    const from = metadata.resourceVersion ?? "";
    const said: string[] = [];
    for await (const { type, object } of api.watch(
      `${place.space.pods}?watch=1&resourceVersion=${from}&timeoutSeconds=1`,
      AbortSignal.timeout(30_000),
    ))
      said.push(`${type} ${String(look(object, "code"))}`);
    assert.deepEqual(said, ["ERROR 410"]);
    await allDone(started);
  },
);
