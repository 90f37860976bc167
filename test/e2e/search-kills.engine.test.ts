// slow: it kills at many moments, each with an index
import assert from "node:assert/strict";
import { appendFile, readdir, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { sourceTree } from "../../bench/source-tree.ts";
import { skip } from "../fixtures/engine.ts";
import { many } from "../fixtures/property.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import { hasIndex, indexed, indexOf } from "./index-of.ts";
import { startOf } from "../kills/engine-lives.ts";
import { harness } from "./run-command.ts";

const KILLS = many(6);
const FILES = 500;
const STATE = ".local/state/harness/search";

test("an index killed at any moment is continued and ends up like a fresh one", { skip }, async (t) => {
  await using place = await household();
  await sourceTree(place.at("work"), FILES);
  await giveAway(place.at("work"));
  const started = performance.now();
  await indexed(place);
  const wholeMs = performance.now() - started;
  const seen: number[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    // Half of them in the middle of a first index, half where files have changed and gone.
    const first = kill < KILLS / 2;
    if (kill === KILLS / 2) await indexed(place);
    if (!first) await disturb(place.at("work"), kill);
    else if (kill % 2 === 0) await rm(place.at(STATE), { recursive: true, force: true });
    const part = ((kill * 7919) % 97) / 97;
    const killAfterMs = first ? wholeMs * (0.15 + 0.55 * part) : wholeMs * (0.1 + 0.3 * part);
    // Some of them by number, which come in the middle however long it takes.
    const byNumber = { kind: "step", at: first ? 36 : 4 + kill, half: false } as const;
    const start = kill % (first ? 4 : 2) === 0 ? startOf(byNumber) : { killAfterMs };
    await harness(place, ["index", "--quiet", "--no-embed"], start);
    if (!hasIndex(place)) continue;
    const { files, facts } = await indexOf(place);
    seen.push(facts.whole ? -1 : Object.keys(files).length);
  }
  t.diagnostic(`files in the catalog after each kill, -1 where it was whole: ${seen.join(" ")}`);
  assert.ok(
    seen.some((count) => count > 0 && count < FILES),
    "no kill came in the middle",
  );
  await indexed(place);
  const { chunks, facts } = await indexOf(place);
  assert.equal(facts.whole, true);
  await rm(place.at(STATE), { recursive: true });
  await indexed(place);
  assert.deepEqual((await indexOf(place)).chunks, chunks);
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

/** Some files grow, some go. */
async function disturb(work: string, nth: number): Promise<void> {
  const inside = path.join(work, "part0", `unit${nth}`);
  const names = await readdir(inside);
  for (const [at, name] of names.entries())
    if (at % 3 === 0) await rm(path.join(inside, name));
    else if (at % 3 === 1) await appendFile(path.join(inside, name), `\n// disturbed ${nth}\n`);
}
