import assert from "node:assert/strict";
import { readdir, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import type { BatchRow } from "../../../src/app/batch/batch-rows.ts";
import { type CommonClock, rowName, rowsInFolder } from "../../../src/app/batch/batch-folder.ts";
import { rowsFor } from "../../fixtures/cluster-batch.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";

/** Loops of one batch over one volume. */

const { signal } = new AbortController();
const ROWS = rowsFor(3);
const HOUR_MS = 3_600_000;

/** As each loop does it, in a pod of its own. */
async function underWay(place: Scratch, row: BatchRow, clock: CommonClock): Promise<number> {
  const kept = rowsInFolder(place.at("out"), clock);
  await using _ = await kept.open(row, signal);
  return kept.underWay(row, signal);
}

test("the age of a batch is measured by the clock that all loops share, whatever the files say", async () => {
  await using place = await scratch();
  const [first, second, third] = ROWS;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const common = { now: Date.parse("2026-11-24T12:00:00Z") };
  const clock: CommonClock = () => Promise.resolve(common.now);
  assert.equal(await underWay(place, first, clock), 0);
  common.now += HOUR_MS;
  assert.equal(await underWay(place, second, clock), HOUR_MS);
  // Of nodes, or of a server of files, whose clocks are hours away.
  for (const [at, name] of (await readdir(place.at("out"))).entries()) {
    const away = new Date(Date.now() + (at === 0 ? 9 : -9) * HOUR_MS);
    for (const file of await readdir(place.at("out", name)))
      await utimes(place.at("out", name, file), away, away);
  }
  common.now += HOUR_MS;
  assert.equal(await underWay(place, third, clock), 2 * HOUR_MS);
  // Another pod of the first row, which had started before.
  assert.equal(await underWay(place, first, clock), 2 * HOUR_MS);
});

test("a start time truncated by a kill is ignored and rewritten", async () => {
  await using place = await scratch();
  const [row, other] = ROWS;
  assert.ok(row !== undefined && other !== undefined);
  const common = { now: Date.parse("2026-11-24T12:00:00Z") };
  const clock: CommonClock = () => Promise.resolve(common.now);
  await underWay(place, row, clock);
  const at = place.at("out", rowName(row));
  await writeFile(path.join(at, "begun"), "17");
  await writeFile(path.join(at, ".begun"), "");
  common.now += HOUR_MS;
  assert.equal(await underWay(place, other, clock), 0);
  assert.equal(await underWay(place, row, clock), 0);
  common.now += HOUR_MS;
  assert.equal(await underWay(place, row, clock), HOUR_MS);
});
