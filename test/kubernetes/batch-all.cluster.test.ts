import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { rowResultForm } from "../../src/render/batch-results.ts";
import { batchOf, replies } from "../e2e/batch.ts";
import type { AskedChat } from "../e2e/run-command.ts";
import { startImageRegistry } from "../fakes/image-registry.ts";
import { runProgram } from "../fixtures/cli.ts";
import { ownImage } from "../fixtures/own-image.ts";
import { shuffled } from "../fixtures/property.ts";
import { skewedClock } from "../fixtures/skewed-clock.ts";
import {
  again,
  drained,
  indexOf,
  isBox,
  loopsIn,
  phase,
  pods,
  starve,
  tooOld,
  type UnderWay,
  untilPrinted,
} from "./batch-faults.ts";
import {
  type BatchPlace,
  batchPlace,
  keptOf,
  noBatches,
  sharedTeam,
  type Started,
  tasksOf,
} from "./batch-place.ts";
import { look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";

/** One batch meets every fault: each row gets one result, and no row with a result is run again. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

const SLOW = "sleep 25; echo two >> notes.txt";
/** Rows, by line number. */
const HIT = [2, 3, 4, 5] as const;
const NO_IMAGE = 6;
const NO_CHECK = 7;
const NO_REPO = 8;
const LAST = 9;
const BIG_BYTES = 48 * 2 ** 20;

const rowIn = ({ messages }: AskedChat): number =>
  Number(/Row (\d+)\. /.exec(messages.map(({ content }) => content).join("\n"))?.[1]);

/** The watching processes, and the rows whose results were reported so far. */
class Watchers {
  readonly all: Started[] = [];
  /** Rows for which the model was asked, each with whether its result had been reported before. */
  readonly asked: { readonly row: number; readonly told: boolean }[] = [];

  /** Notes which row asks, and answers as usual. */
  readonly reply = (chat: AskedChat): ReturnType<typeof replies> => {
    const row = rowIn(chat);
    this.asked.push({ row, told: this.told().has(row) });
    return replies(chat);
  };

  told(): ReadonlySet<number> {
    const lines = this.all.flatMap(({ said }) => said.stdout.split("\n"));
    return new Set(
      lines.flatMap((line) => /"type":"row\.finished","row":(\d+),/.exec(line)?.[1] ?? []).map(Number),
    );
  }

  /** By one of those who watch, whoever that is by then. */
  async heard(words: RegExp): Promise<void> {
    for (
      const patience = AbortSignal.timeout(240_000);
      !this.all.some(({ said }) => words.test(said.stderr));
    ) {
      assert.ok(!patience.aborted, `nobody said ${words}`);
      await sleep(100);
    }
  }

  start(started: Started): Started {
    this.all.push(started);
    return started;
  }

  /** The row's loop and its box, while its command is under way. */
  async underWay(place: BatchPlace, row: number): Promise<UnderWay> {
    const of = (each: UnderWay): boolean => indexOf(each.loop) === String(row - 1);
    const now = await pods(
      place,
      (all) => loopsIn(all).some(of) && this.asked.some((one) => one.row === row),
    );
    return loopsIn(now).find(of) ?? assert.fail();
  }
}

type Fault = (place: BatchPlace, way: UnderWay, watchers: Watchers) => Promise<unknown>;

const FAULTS: readonly Fault[] = [
  ({ space }, { loop }) => api.must("DELETE", `${space.pods}/${loop.metadata.name}`),
  ({ space }, { loop }) =>
    api.must("DELETE", `${space.pods}/${loop.metadata.name}`, { gracePeriodSeconds: 0 }),
  async (_, { loop }) => starve(cluster, loop),
  (place, { loop, box }, watchers) => drained(place, [loop, box], () => watchers.heard(/no node has room: /)),
];

/** The namespace has no room for another pod until a pod was refused. */
async function fullQuota({ space }: BatchPlace): Promise<void> {
  const quotas = `/api/v1/namespaces/${space.name}/resourcequotas`;
  await api.must("POST", quotas, { metadata: { name: "q" }, spec: { hard: { pods: "0" } } });
  await api.until(
    `/api/v1/namespaces/${space.name}/events`,
    ({ body }) => JSON.stringify(body["items"] ?? []).includes("exceeded quota: q"),
    120_000,
  );
  await sleep(3000);
  await again(() => api.must("DELETE", `${quotas}/q`));
}

/** Waits until half of a row's tree has arrived in its box, judging by the node's disk. */
async function halfThere(row: number, place: BatchPlace): Promise<void> {
  const folder = path.join(cluster.folder, "var-lib/kubelet/pods");
  const boxes = async (): Promise<readonly string[]> => {
    const all = await api.list(place.space.pods);
    const loop = all.find(
      (pod) => indexOf(pod) === String(row - 1) && look(pod, "status", "phase") === "Running",
    );
    return all
      .filter((pod) => look(pod, "metadata", "ownerReferences", 0, "name") === loop?.metadata.name)
      .map(({ metadata }) => metadata.uid ?? "");
  };
  const patience = AbortSignal.timeout(300_000);
  for (let uids = await boxes(); ;) {
    const half = uids.some((uid) => {
      const volume = path.join(folder, uid, "volumes/kubernetes.io~empty-dir/workspace");
      const bytes = bytesIn(volume);
      return bytes > 2 ** 20 && bytes < BIG_BYTES * 0.8;
    });
    if (half) return;
    assert.ok(!patience.aborted, `no tree of row ${row} was seen on its way`);
    if (uids.length === 0) {
      await sleep(100);
      uids = await boxes();
    } else await sleep(5);
  }
}

function bytesIn(folder: string): number {
  try {
    return readdirSync(folder)
      .filter((name) => /big/.test(name))
      .reduce((sum, name) => sum + statSync(path.join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}

/** The API server is killed, gone for a minute, and then knows no earlier watch. */
async function awayForAMinute(place: BatchPlace, watching: readonly Started[]): Promise<void> {
  const { metadata } = await api.must("GET", place.space.pods);
  await halfThere(LAST, place);
  await cluster.kill("api");
  try {
    for (const each of watching) await untilPrinted(each, /the cluster does not answer/);
    await sleep(60_000);
  } finally {
    await cluster.start("api");
  }
  for (const each of watching) await untilPrinted(each, /the cluster answers again/);
  await tooOld(place, metadata.resourceVersion);
}

/** An environment that was pushed to a registry that is gone. */
async function lostEnvironment(
  place: BatchPlace,
  url: string,
): Promise<{ readonly remove: () => Promise<void> }> {
  const { place: home } = place;
  const start = { home: home.path, cwd: home.at("project") };
  await using registry = await startImageRegistry(`/var/tmp/harness-registry-${process.pid}`);
  await using base = await ownImage();
  const recipe = { image: base.name, system: [{ run: "touch /usr/local/own" }] };
  await home.write(".config/harness/environments/own.json", JSON.stringify(recipe));
  await home.write("project/.git/HEAD", "ref: refs/heads/main\n");
  await home.write("project/.git/config", `[remote "origin"]\n\turl = ${url}\n`);
  const file = ".config/harness/config.json";
  const config = JSON.parse(await home.read(file)) as { kubernetes: object };
  const kubernetes = { ...config.kubernetes, registry: `${registry.host}/team/env` };
  await home.write(file, JSON.stringify({ ...config, kubernetes }));
  const built = await runProgram("bin/harness", ["env", "build", "--env", "own"], start);
  assert.equal(built.code, 0, built.stderr);
  return {
    remove: async () => {
      const { code, stderr } = await runProgram("bin/harness", ["env", "rm", "--all"], start);
      assert.equal(code, 0, stderr);
    },
  };
}

async function tasks(place: BatchPlace): Promise<string> {
  const all = await team();
  const big = { "notes.txt": "one\n", "big.txt": "0123456789abcde\n".repeat(BIG_BYTES / 16) };
  const url = (name: string, files?: Readonly<Record<string, string>>): string =>
    all.repository(`${place.space.name}-${name}`, files ?? { "notes.txt": "one\n" });
  const rows: readonly object[] = [1, ...HIT, NO_IMAGE, NO_CHECK, NO_REPO, LAST].map((row) => ({
    prompt: `Row ${row}. Change the notes. do: ${row === NO_CHECK ? "true" : SLOW}`,
    ...(row === NO_IMAGE ? { env: "own", repo: url("env") } : {}),
    ...(row === NO_CHECK ? { check: "false", limits: { max_turns: 4 } } : {}),
    ...(row === NO_REPO ? { repo: url("gone").replace(/gone\.git$/, "never.git") } : {}),
    ...(row === LAST ? { repo: url("big", big) } : {}),
  }));
  return tasksOf(all, place, rows);
}

async function endOf(started: Started): Promise<readonly (readonly [number, number, string | null])[]> {
  const ran = await started.ended;
  assert.equal(ran.code, 1, ran.stderr);
  const { rows } = batchOf(ran);
  return rows
    .map(({ row, exit_code, cause }) => [row, exit_code, cause] as const)
    .toSorted(([a], [b]) => a - b);
}

test("a batch that meets every fault at once has one result for each row", { skip }, async () => {
  const watchers = new Watchers();
  // The loops' clocks are 14 hours apart.
  const secret = skewedClock("Number(process.env.JOB_COMPLETION_INDEX) % 2 === 0 ? 7 : -7");
  await using place = await batchPlace(await team(), watchers.reply, {}, { secret });
  const file = await tasks(place);
  const envUrl = /"repo":"([^"]*-env\.git)"/.exec(readFileSync(file, "utf8"))?.[1] ?? "";
  const environment = await lostEnvironment(place, envUrl);
  try {
    const words = (out: string): readonly string[] => [file, "--out", place.place.at(out), "--jobs", "4"];
    const first = watchers.start(place.start(...words("one")));
    const faults = shuffled(FAULTS).map(async (fault, at) => {
      const row = HIT[at] ?? assert.fail();
      // The API server may be away by then, or the loop another one.
      await again(async () => fault(place, await watchers.underWay(place, row), watchers));
    });
    await watchers.underWay(place, 1);
    first.child.kill("SIGKILL");
    await first.ended;
    // Two processes with clocks 12 hours apart continue to watch.
    const two = [6, -6].map((hours) =>
      watchers.start(
        place.startWith(skewedClock(String(hours)), ...words(hours > 0 ? "one" : "two"), "--resume"),
      ),
    );
    await Promise.all([fullQuota(place), ...faults, awayForAMinute(place, two)]);
    const [mine, other] = await Promise.all(two.map(endOf));
    const done = [1, ...HIT, LAST].map((row) => [row, 0, null] as const);
    // If the git host was away in the last attempt, that is the reported reason.
    const noImage = mine?.find(([row]) => row === NO_IMAGE)?.[2] === "repo" ? "repo" : "sandbox";
    assert.ok(watchers.all.some(({ said }) => said.stderr.includes("image cannot be pulled")));
    const failed = [
      [NO_IMAGE, noImage === "repo" ? 2 : 6, noImage],
      [NO_CHECK, 1, "check"],
      [NO_REPO, 2, "repo"],
    ] as const;
    assert.deepEqual(
      mine,
      [...done, ...failed].toSorted(([a], [b]) => a - b),
    );
    assert.deepEqual(other, mine);
    await oneResultEach(place, watchers, words("three"));
    await nothingOfIt(place);
  } catch (thrown) {
    throw new Error(watchers.all.map(({ said }) => said.stderr).join("\n---\n"), { cause: thrown });
  } finally {
    await environment.remove();
  }
});

/** Results in the volume and on a second request are those reported, and no row with a reported result was run again. */
async function oneResultEach(place: BatchPlace, watchers: Watchers, words: readonly string[]): Promise<void> {
  const late = watchers.asked.filter(({ told }) => told);
  assert.deepEqual(late, [], "a model request was made for a row that had ended");
  for (const word of ["interrupted", "memory", "sandbox", "check", "repo"])
    assert.ok(
      watchers.all.some(({ said }) => said.stderr.includes(` has failed (${word})`)),
      `${word}: ${watchers.all.map(({ said }) => said.stderr).join("\n")}`,
    );
  const before = watchers.asked.length;
  const resumed = await place.run(...words, "--resume");
  const sessions = new Map(batchOf(resumed).rows.map(({ row, session }) => [row, session]));
  assert.equal(sessions.size, 9);
  assert.equal(watchers.asked.length, before);
  for (const row of [1, ...HIT, NO_CHECK, LAST]) {
    const lines = readFileSync((await keptOf(place.results, row)).get("results.jsonl") ?? "", "utf8");
    const kept = lines
      .trimEnd()
      .split("\n")
      .map((line) => rowResultForm.parse(JSON.parse(line)));
    assert.deepEqual(
      kept.map(({ session }) => session),
      [sessions.get(row)],
    );
  }
}

async function nothingOfIt(place: BatchPlace): Promise<void> {
  // A box whose loop was killed has ended, and is removed with the loop's pod.
  await pods(place, (now) => now.every((pod) => !isBox(pod) || phase(pod) !== "Running"));
  const { name } = place.space;
  const [job, ...others] = await place.jobs();
  assert.deepEqual(others, []);
  // The rest belongs to the Job or a pod, and is removed by the cluster's garbage collector, which may be slow after such a minute.
  const objects = [
    ...(await api.list(`/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies`)),
    ...(await api.list(`/api/v1/namespaces/${name}/configmaps`)),
    ...(await api.list(`/api/v1/namespaces/${name}/pods`)),
  ].filter(({ metadata }) => metadata.name.startsWith("harness-") && metadata.name !== "harness-loop");
  assert.ok(objects.length > 0);
  const owners = objects.map((object) => [
    object.metadata.name,
    look(object, "metadata", "ownerReferences", 0, "kind"),
  ]);
  assert.deepEqual(
    owners.filter(([, kind]) => kind !== "Job" && kind !== "Pod"),
    [],
    job?.metadata.name,
  );
}
