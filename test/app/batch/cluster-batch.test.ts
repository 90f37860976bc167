import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { Interrupted } from "../../../src/core/errors.ts";
import { batchTotals } from "../../../src/render/batch-results.ts";
import { type PodPlay, startFakeCluster } from "../../fakes/kubernetes-jobs.ts";
import { coordinate, rowsFor, said } from "../../fixtures/cluster-batch.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";

const ROWS = rowsFor(4);

const idsKept = async (place: Scratch): Promise<readonly string[]> =>
  (await readFile(place.at("out/results.jsonl"), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly id: string }).id);

const once = (ran: readonly string[]): readonly string[] => ran.toSorted((a, b) => a.localeCompare(b));

test("each row runs once as an index of one Job, and its result is stored as its pod reported it", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  const { end, results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
  assert.deepEqual(once(cluster.ran), ["0/0", "1/0", "2/0", "3/0"]);
  assert.equal(cluster.jobs.size, 1);
  assert.deepEqual(once(results.map(({ session }) => String(session))), [
    "session1",
    "session2",
    "session3",
    "session4",
  ]);
  assert.deepEqual(results[0]?.changes, { added: [], modified: ["a"], deleted: [], ignored: 0 });
  assert.deepEqual((await idsKept(place)).toSorted(), ROWS.map(({ id }) => id).toSorted());
  const totals = batchTotals(end);
  assert.deepEqual([totals.exit_code, totals.done, totals.usage.requests], [0, 4, 8]);
  const [map] = cluster.maps.values();
  const [job] = cluster.jobs.values();
  assert.equal(map?.metadata?.ownerReferences?.[0]?.uid, job?.metadata?.uid);
});

interface Ending {
  readonly name: string;
  readonly plays: readonly PodPlay[];
  readonly cause: string | null;
  readonly code: number;
  readonly tries: number;
}

const ENDINGS: readonly Ending[] = [
  { name: "a refusal", plays: [said(ROWS[0], 4, { cause: "refused" })], cause: "refused", code: 4, tries: 1 },
  {
    name: "a check that failed",
    plays: [said(ROWS[0], 1, { cause: "check" })],
    cause: "check",
    code: 1,
    tries: 1,
  },
  { name: "a budget", plays: [said(ROWS[0], 3, { cause: "budget" })], cause: "budget", code: 3, tries: 1 },
  {
    name: "a run that could not begin",
    plays: [said(ROWS[0], 2, { cause: "usage" })],
    cause: "usage",
    code: 2,
    tries: 1,
  },
  {
    name: "an unavailable model",
    plays: [said(ROWS[0], 5, { cause: "model" })],
    cause: "model",
    code: 5,
    tries: 3,
  },
  { name: "no box", plays: [said(ROWS[0], 6, { cause: "sandbox" })], cause: "sandbox", code: 6, tries: 3 },
  {
    name: "a model that comes back",
    plays: [said(ROWS[0], 5, { cause: "model" }), said(ROWS[0])],
    cause: null,
    code: 0,
    tries: 2,
  },
  {
    name: "a loop out of memory",
    plays: [{ code: 137, reason: "OOMKilled" }],
    cause: "memory",
    code: 137,
    tries: 3,
  },
  {
    name: "a run that was ended for the memory of its pod, which its loop outlived",
    plays: [{ ...said(ROWS[0], 137, { cause: "killed" }), reason: "OOMKilled" }],
    cause: "memory",
    code: 137,
    tries: 3,
  },
  {
    name: "a pod that somebody deletes, whose loop ends in order",
    plays: [said(ROWS[0], 143, { cause: "interrupted", reason: "its pod was terminated" }), said(ROWS[0])],
    cause: null,
    code: 0,
    tries: 2,
  },
  {
    name: "an evicted pod whose loop ends in order",
    plays: [{ ...said(ROWS[0], 143, { cause: "interrupted" }), podReason: "Evicted" }],
    cause: "evicted",
    code: 143,
    tries: 3,
  },
  {
    name: "a pod that somebody deletes with no time to end",
    plays: [{ code: 137 }, said(ROWS[0])],
    cause: null,
    code: 0,
    tries: 2,
  },
  { name: "a loop that is killed each time", plays: [{ code: 137 }], cause: "killed", code: 137, tries: 3 },
  {
    name: "a pod that ran for too long",
    plays: [{ code: 143, podReason: "DeadlineExceeded" }],
    cause: "deadline",
    code: 143,
    tries: 3,
  },
  {
    name: "a drained node, five times",
    plays: [...Array.from({ length: 5 }, () => ({ code: 143, disrupted: true })), said(ROWS[0])],
    cause: null,
    code: 0,
    tries: 6,
  },
  {
    name: "an eviction without a condition",
    plays: [{ code: 143, podReason: "Evicted" }],
    cause: "evicted",
    code: 143,
    tries: 3,
  },
  {
    name: "a missing repository",
    plays: [{ container: "clone", code: 2, message: "https://git.example/owner/r0: not found" }],
    cause: "repo",
    code: 2,
    tries: 1,
  },
  {
    name: "an unreachable host",
    plays: [{ container: "clone", code: 1, message: "Could not resolve host" }],
    cause: "repo",
    code: 2,
    tries: 3,
  },
  {
    name: "words of another row",
    plays: [said(ROWS[1])],
    cause: null,
    code: 0,
    tries: 1,
  },
];

for (const { name, plays, cause, code, tries } of ENDINGS)
  test(`${name} is reported as ${cause ?? "done"} after ${tries} pods`, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster((index, attempt) =>
      index === 0 ? (plays[attempt] ?? plays.at(-1) ?? {}) : said(ROWS[index]),
    );
    const { end, results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
    const first = results.find(({ row }) => row === 1);
    assert.deepEqual([first?.cause, first?.exit_code], [cause, code]);
    assert.equal(cluster.ran.filter((each) => each.startsWith("0/")).length, tries);
    assert.equal(cluster.ran.length, tries + 3);
    assert.deepEqual([results.length, batchTotals(end).exit_code], [4, cause === null ? 0 : 1]);
    if (name.startsWith("words")) assert.equal(first?.session, null);
  });

test("rows that have ended are reported by their last pod, whatever the pods are called", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index, attempt) => {
    const ends = [said(ROWS[index], 5, { cause: "model" }), said(ROWS[index], 6, { cause: "sandbox" })];
    return ends[attempt] ?? { code: 137, reason: "OOMKilled" };
  });
  await coordinate({ cluster, rows: ROWS, folder: place.at("first") });
  const { results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
  assert.deepEqual(
    results.map(({ cause }) => cause),
    ROWS.map(() => "memory"),
  );
  assert.equal(cluster.ran.length, 12);
});

test("rows whose pods were cleaned up are reported from the status of the Job", async () => {
  await using place = await scratch();
  const plays = [said(ROWS[0]), said(ROWS[1], 1, { cause: "check" })];
  await using cluster = await startFakeCluster((index) => plays[index] ?? said(ROWS[index]));
  const first = await coordinate({ cluster, rows: ROWS, folder: place.at("first") });
  assert.equal(first.results.length, 4);
  cluster.deletePod(0);
  cluster.deletePod(1);
  const { results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
  const told = results
    .toSorted((a, b) => a.row - b.row)
    .map(({ row, cause, exit_code }) => [row, cause, exit_code]);
  assert.deepEqual(told, [
    [1, null, 0],
    [2, "lost", 1],
    [3, null, 0],
    [4, null, 0],
  ]);
  assert.equal(cluster.ran.length, 4);
});

test("an API server outage, ended watches and expired watches lose nothing", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  cluster.faults.expired = 3;
  cluster.faults.watchEnds = 1;
  const { end, results, warned } = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    onWarn: (text) => {
      if (text.startsWith("created")) {
        // A server that is down does not answer, and its pods keep running.
        setTimeout(() => (cluster.faults.down = true), 20);
        setTimeout(() => gate.resolve(), 40);
      }
      if (text.startsWith("the cluster does not answer")) setTimeout(() => (cluster.faults.down = false), 60);
    },
  });
  assert.deepEqual([results.length, batchTotals(end).exit_code, cluster.ran.length], [4, 0, 4]);
  assert.ok(
    warned.some((text) => text.startsWith("the cluster does not answer")),
    warned.join("\n"),
  );
  assert.ok(warned.includes("the cluster answers again"), warned.join("\n"));
});

test("an API server that stays away ends the batch with 6, and --resume continues with what ran meanwhile", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  await assert.rejects(
    coordinate({
      cluster,
      rows: ROWS,
      folder: place.at("out"),
      onWarn: (text) => {
        if (text.startsWith("created")) setTimeout(() => (cluster.faults.down = true), 20);
      },
    }),
    { exit: 6, message: /does not answer/, remedy: /--resume/ },
  );
  gate.resolve();
  cluster.faults.down = false;
  const { results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
  assert.deepEqual([results.length, cluster.ran.length], [4, 4]);
});

for (const [quota, ran] of [
  ["jobs", 0],
  ["configmaps", 0],
  ["pods", 0],
] as const)
  test(`a quota of ${quota} is reported as such, nothing runs, and --resume continues once there is room`, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster((index) => said(ROWS[index]));
    cluster.faults.quota = quota;
    await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), {
      exit: 6,
      message: /quota of the namespace is used up/,
      remedy: /--resume/,
    });
    assert.equal(cluster.ran.length, ran);
    cluster.faults.quota = undefined;
    const { results } = await coordinate({
      cluster,
      rows: ROWS,
      folder: place.at("out"),
      resume: true,
      onWarn: (text) => {
        // As the controller tries again by itself.
        if (text.startsWith("found") && quota === "pods") cluster.retry();
      },
    });
    assert.deepEqual([results.length, cluster.ran.length], [4, 4]);
  });

test("an image that cannot be pulled is reported at once, and ends the watch after a while with 6", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster(() => ({
    waits: {
      reason: "ImagePullBackOff",
      message: 'Back-off pulling image "registry.example/harness-loop:1"',
    },
  }));
  const warned: string[] = [];
  await assert.rejects(
    coordinate({ cluster, rows: ROWS, folder: place.at("out"), onWarn: (text) => void warned.push(text) }),
    { exit: 6, message: /an image cannot be pulled: Back-off pulling/, remedy: /--resume/ },
  );
  assert.equal(warned.filter((text) => text.startsWith("an image")).length, 1);
});

test("a cluster that drops fields of the Job is refused before anything is created", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster();
  cluster.faults.drops = ["completionMode", "backoffLimitPerIndex", "podFailurePolicy", "suspend"];
  await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), {
    exit: 6,
    message: /without completionMode, backoffLimitPerIndex/,
  });
  assert.deepEqual([cluster.jobs.size, cluster.maps.size], [0, 0]);
});

test("a namespace without the loops' service account is refused with the command for an administrator", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster();
  cluster.faults.hasAccount = false;
  await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), {
    exit: 2,
    remedy: /--print-manifests \| kubectl apply -l dev.harness.part=rights/,
  });
  assert.equal(cluster.jobs.size, 0);
});

test("when two coordinators start the same batch at once, one creates it and the other is refused", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  const both = ["a", "b"].map((name) => coordinate({ cluster, rows: ROWS, folder: place.at(name) }));
  const refused = await Promise.race(
    both.map((each) =>
      each.then(
        () => assert.fail("none was refused"),
        (thrown: unknown) => thrown,
      ),
    ),
  );
  assert.match(String(refused), /already exists in the namespace team/);
  gate.resolve();
  const settled = await Promise.allSettled(both);
  assert.deepEqual(settled.map((each) => each.status).toSorted(), ["fulfilled", "rejected"]);
  assert.deepEqual([cluster.jobs.size, cluster.ran.length], [1, 4]);
});

test("a coordinator whose batch is created by another between its first look and its trial gets the same refusal", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  const looked = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  cluster.faults.hold = ({ nth, when }) => {
    if (nth !== 2 || when !== "before") return undefined;
    looked.resolve();
    return made.promise;
  };
  const late = coordinate({ cluster, rows: ROWS, folder: place.at("late") });
  await looked.promise;
  const first = coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("first"),
    onWarn: (text) => void (text.startsWith("created") && made.resolve()),
  });
  await assert.rejects(late, /already exists in the namespace team/);
  assert.equal((await first).results.length, 4);
});

test("a second coordinator with --resume only watches: both report every row, and each row ran once", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  const second: Promise<unknown>[] = [];
  const first = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("a"),
    onWarn: (text) => {
      if (!text.startsWith("created")) return;
      second.push(
        coordinate({
          cluster,
          rows: ROWS,
          folder: place.at("b"),
          resume: true,
          onWarn: (said) => void (said.startsWith("found") && gate.resolve()),
        }),
      );
    },
  });
  const [other] = (await Promise.all(second)) as readonly (typeof first)[];
  assert.deepEqual([first.results.length, other?.results.length, cluster.ran.length], [4, 4, 4]);
});

test("Ctrl-C ends only the watch: the Job continues, and --resume reports the rest", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  const stop = new AbortController();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  const { end, warned } = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    signal: stop.signal,
    onWarn: (text) => void (text.startsWith("created") && stop.abort(new Interrupted("SIGINT"))),
  });
  assert.equal(batchTotals(end).exit_code, 130);
  assert.ok(warned.some((text) => text.includes("continues in the cluster")));
  gate.resolve();
  const again = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
  assert.deepEqual([again.results.length, cluster.ran.length, batchTotals(again.end).exit_code], [4, 4, 0]);
});

test("a deleted Job ends the watch, and --resume recreates it for the remaining rows", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) =>
    index === 0 ? said(ROWS[0]) : { ...said(ROWS[index]), until: gate.promise },
  );
  const { end, results } = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    onWarn: (text) => {
      if (text.startsWith("created"))
        setTimeout(() => cluster.deleteJob([...cluster.jobs.keys()][0] ?? ""), 100);
    },
  });
  assert.equal(batchTotals(end).exit_code, 1);
  assert.equal(batchTotals(end).not_started, 4 - results.length);
  // Its pods are cleaned away later, and say nothing of the next one's.
  cluster.maps.clear();
  gate.resolve();
  const again = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
  assert.equal(results.length + again.results.length, 4);
});

test("with a Kueue queue, the Job names the queue, and the queue starts it", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  const { SETTINGS } = await import("../../fixtures/cluster-batch.ts");
  const settings = { ...SETTINGS, kubernetes: { ...SETTINGS.kubernetes, queue: "agents" } };
  const { results, warned } = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    plan: { settings },
    onWarn: (text) => {
      if (text !== "the batch waits in its queue") return;
      const [name = "", job] = [...cluster.jobs][0] ?? [];
      assert.equal(job?.metadata?.labels?.["kueue.x-k8s.io/queue-name"], "agents");
      assert.equal(job?.spec?.suspend, true);
      cluster.admit(name);
    },
  });
  assert.equal(results.length, 4);
  assert.equal(warned.filter((text) => text.includes("queue")).length, 1);
});
