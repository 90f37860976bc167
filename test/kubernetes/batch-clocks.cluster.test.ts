import assert from "node:assert/strict";
import test, { after } from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { skewedClock } from "../fixtures/skewed-clock.ts";
import { attached, type Cluster } from "./cluster.ts";
import { batchPlace, noBatches, sharedTeam, tasksOf } from "./batch-place.ts";

/** Loops and a coordinator whose clocks are hours apart, on a real cluster. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

/** The first row by a clock that is ahead, the second by one that is behind, and so on. */
const SKEWED = skewedClock("Number(process.env.JOB_COMPLETION_INDEX) % 2 === 0 ? 7 : -7");
const SLEEP_S = 15;
const task = `date -u; sleep ${SLEEP_S}; echo two >> notes.txt`;

for (const hours of [-5, 5])
  test(
    `--max-time holds for a batch whose loops' clocks are 14 hours apart, watched ${hours} hours off the cluster's time`,
    { skip },
    async () => {
      await using place = await batchPlace(await team(), replies, {}, { secret: SKEWED });
      const tasks = await tasksOf(await team(), place, [task, task, task, task, task, task]);
      // Two rows at once; the last two begin when the two before them have slept.
      const words = [tasks, "--out", place.place.at("out"), "--jobs", "2", "--max-time", `${2 * SLEEP_S}s`];
      const ran = await place.startWith(skewedClock(String(hours)), ...words).ended;
      const { rows } = batchOf(ran);
      const told = rows.toSorted((a, b) => a.row - b.row);
      assert.equal(told.length, 6, ran.stderr);
      // By the loops' own clocks the second row would have begun after the end, or the last one before it.
      for (const early of told.slice(0, 2)) assert.deepEqual([early.exit_code, early.cause], [0, null]);
      for (const late of told.slice(4)) assert.deepEqual([late.exit_code, late.cause], [3, "budget"]);
      for (const { duration_ms } of told) assert.ok(duration_ms < 600_000, String(duration_ms));
    },
  );
