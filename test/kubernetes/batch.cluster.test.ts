import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { after } from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { batchOf, replies } from "../e2e/batch.ts";
import { look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";
import { batchPlace, keptOf, noBatches, sharedTeam, tasksOf } from "./batch-place.ts";

/** A batch as a Job of a real cluster, from the command to the patches in its volume. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");

const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

const byRow = (of: ReturnType<typeof batchOf>): readonly unknown[] =>
  of.rows.toSorted((a, b) => a.row - b.row).map(({ row, exit_code, cause }) => [row, exit_code, cause]);

test(
  "rows run as a Job: results come back, and the rest lies in the volume and can be read at home",
  { skip },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, [
      "echo two >> notes.txt",
      { prompt: "Change the notes. do: echo three >> notes.txt", check: "false" },
      { repo: "https://10.213.0.1:9/gone.git", prompt: "x" },
    ]);
    const out = place.place.at("out");
    const ran = await place.run(tasks, "--out", out, "--jobs", "2");
    const told = batchOf(ran);
    assert.deepEqual(
      [ran.code, byRow(told)],
      [
        1,
        [
          [1, 0, null],
          [2, 1, "check"],
          [3, 2, "repo"],
        ],
      ],
      ran.stderr,
    );
    const first = told.rows.find(({ row }) => row === 1);
    assert.deepEqual(first?.changes?.modified, ["notes.txt"]);
    const kept = await keptOf(place.results, 1);
    assert.match(await readFile(kept.get("patch") ?? "", "utf8"), /^\+two$/m);
    assert.match(await readFile(kept.get("audit.jsonl") ?? "", "utf8"), /notes\.txt/);
    const bundle = kept.get("bundle.tar") ?? "";
    const shown = await runProgram("bin/harness", ["replay", "--bundle", bundle], { home: place.place.path });
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /notes\.txt/);
    const [job] = await place.jobs();
    assert.equal(look(job, "status", "completedIndexes"), "0");
  },
);
