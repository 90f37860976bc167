// slow: it kills a batch again and again until it ends
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { flushCompileCache } from "node:module";
import path from "node:path";
import test from "node:test";
import { batchTotals } from "../../../src/render/batch-results.ts";
import { type FakeCluster, type PodPlay, startFakeCluster } from "../../fakes/kubernetes-jobs.ts";
import { coordinate, type Coordinated, rowsFor, said } from "../../fixtures/cluster-batch.ts";
import { shuffled } from "../../fixtures/property.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { skewedClock } from "../../fixtures/skewed-clock.ts";

/** All that may befall a batch befalls one: each row has one result, and nothing is run that had one. */

const COORDINATOR = path.join(import.meta.dirname, "..", "..", "fixtures", "cluster-coordinator.ts");
const ROWS = rowsFor(9);

flushCompileCache();

interface Lot {
  /** Of a row, what its pods come to before the last one. */
  readonly before: readonly PodPlay[];
  /** And that one; left out: it ends well. */
  readonly last?: (row: number) => PodPlay;
  readonly cause: string | null;
}

const OOM: PodPlay = { code: 137, reason: "OOMKilled" };

const LOTS: readonly Lot[] = [
  { before: [], cause: null },
  // Deleted, with time to end and without.
  { before: [{ code: 143 }], cause: null },
  { before: [{ code: 137 }], cause: null },
  { before: [OOM, OOM], last: () => OOM, cause: "memory" },
  { before: [OOM], cause: null },
  { before: Array.from({ length: 4 }, () => ({ code: 143, disrupted: true })), cause: null },
  // An image of its box that is not to be had, and a box that was lost while its tree was on its way.
  {
    before: [6, 6].map((code) => ({ code })),
    last: (row) => said(ROWS[row], 6, { cause: "sandbox" }),
    cause: "sandbox",
  },
  { before: [{ code: 6 }], cause: null },
  { before: [], last: (row) => said(ROWS[row], 1, { cause: "check" }), cause: "check" },
];

/** A coordinator of its own process and clock, which is killed hard at its nth request. */
async function killedAt(nth: number, cluster: FakeCluster, place: Scratch): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const killed = Promise.withResolvers<void>();
  const from = cluster.asked.length;
  cluster.faults.hold = (at) => {
    if (at.nth !== from + nth || at.when !== "after") return undefined;
    reached.resolve();
    return killed.promise;
  };
  const config = await place.write("kubeconfig", cluster.config);
  const child = spawn(process.execPath, [COORDINATOR, config, place.at("one"), String(ROWS.length)], {
    env: { ...process.env, ...skewedClock("9") },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  await Promise.race([reached.promise, ended]);
  child.kill("SIGKILL");
  assert.deepEqual(await ended, [null, "SIGKILL"]);
  cluster.faults.hold = () => undefined;
  killed.resolve();
}

const sorted = (all: readonly string[]): readonly string[] => all.toSorted((a, b) => a.localeCompare(b));

const told = ({ results }: Coordinated): readonly (readonly [number, string | null])[] =>
  results.map(({ row, cause }) => [row, cause] as const).toSorted(([a], [b]) => a - b);

test(
  "every row of a batch gets exactly one result although all known faults happen to it",
  { timeout: 60_000 },
  async () => {
    await using place = await scratch();
    const lots = shuffled(LOTS);
    const gate = Promise.withResolvers<void>();
    let pods = 0;
    await using cluster = await startFakeCluster((index, attempt) => {
      const { before, last } = lots[index] ?? assert.fail();
      // It is away in the middle of all that, once.
      if ((pods += 1) === 8) cluster.faults.down = true;
      const play = before[attempt] ?? last?.(index) ?? said(ROWS[index]);
      // The first one runs on until all has befallen who watches.
      return index === 0 ? { ...play, until: gate.promise } : play;
    });
    cluster.faults.quota = "pods";
    for (const nth of [3, 6]) await killedAt(nth, cluster, place);
    assert.deepEqual(cluster.ran, []);
    cluster.faults.expired = 3;
    cluster.faults.watchEnds = 2;
    const events: string[] = [];
    const happen = (text: string): void => {
      events.push(text);
      if (text.startsWith("a quota of the namespace")) {
        cluster.faults.quota = undefined;
        cluster.retry();
      }
      if (text.startsWith("the cluster does not answer")) setTimeout(() => (cluster.faults.down = false), 50);
      if (text.startsWith("the cluster answers again")) gate.resolve();
    };
    const [one, two] = await Promise.all(
      ["one", "two"].map((name) =>
        coordinate({ cluster, rows: ROWS, folder: place.at(name), resume: true, onWarn: happen }),
      ),
    );
    assert.ok(one !== undefined && two !== undefined);
    const expected = lots.map(({ cause }, index) => [index + 1, cause] as const);
    assert.deepEqual([told(one), told(two)], [expected, expected]);
    assert.deepEqual([batchTotals(one.end).done, cluster.jobs.size], [6, 1]);
    const planned = lots.flatMap(({ before }, index) =>
      Array.from({ length: before.length + 1 }, (_, attempt) => `${index}/${attempt}`),
    );
    assert.deepEqual(sorted(cluster.ran), sorted(planned));
    for (const word of ["a quota of the namespace is used up", "the cluster does not answer"])
      assert.ok(
        events.some((text) => text.startsWith(word)),
        word,
      );
    const again = await coordinate({ cluster, rows: ROWS, folder: place.at("three"), resume: true });
    assert.deepEqual([told(again), cluster.ran.length], [expected, planned.length]);
  },
);
