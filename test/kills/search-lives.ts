import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Catalog, type CatalogFacts, type CatalogFile } from "../../src/search/catalog.ts";
import { readEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { isSameStamp } from "../../src/search/files/box-files.ts";
import { meansInFile, never, placeOf, updated } from "../fixtures/index.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { countSeen, type Dice, killed, type Moment, type Tally } from "./killed.ts";

/*
 * Why the catalog is never ahead of the store. An update writes in this order:
 * 1. catalog: "not whole", which survives a power cut before step 2 begins
 * 2. store: removes missing files, then puts changed ones, batch by batch
 * 3. catalog: the rows of that batch, after its put or removal has ended
 * 4. store: flushed, so that it survives a power cut
 * 5. catalog: "whole"
 *
 * Each write is one transaction. A row has the hash of the very bytes that were cut, which are read once, and the stamp
 * that the file had before they were read: a later change of the file gives it another stamp.
 *
 * After a kill between any two steps, a row and the store differ only if 2 is done and 3 is not: then the store is
 * ahead. The row has the old stamp, while the file has another one or is gone, so the next update examines it; and as
 * the catalog says "not whole", that update also compares every row with the store. A row is written in 3 only when the
 * store has the same content, so no row with a file's present stamp can lack its chunks. After a power cut the catalog
 * may have kept 3 although the store lost 2; but then 4 and therefore 5 did not happen, "not whole" stands, and all
 * rows are compared. "Whole" (5) is recorded only after all of 2 has survived.
 */

export interface IndexState {
  readonly facts: CatalogFacts;
  readonly files: ReadonlyMap<string, CatalogFile>;
  /** Content hashes in the store, by path. */
  readonly held: ReadonlyMap<string, string>;
}

/** Rows that would never be read again, although the store lacks their content. */
export function aheadOfStore(workspace: string, { facts, files, held }: IndexState): readonly string[] {
  return [...files].flatMap(([at, row]) => {
    if (row.chunks === 0 || held.get(at) === row.hash) return [];
    return facts.whole || isAsRead(path.join(workspace, at), row) ? [at] : [];
  });
}

/** Files that only the store has and that nothing would look for. */
export const onlyInStore = ({ facts, files, held }: IndexState): readonly string[] =>
  facts.whole ? [...held.keys()].filter((at) => (files.get(at)?.chunks ?? 0) === 0) : [];

function isAsRead(file: string, { stamp, settled }: CatalogFile): boolean {
  const now = lstatSync(file, { throwIfNoEntry: false });
  return settled && now !== undefined && isSameStamp(now, stamp);
}

interface Index extends IndexState {
  /** Each chunk as path, lines and text. */
  readonly chunks: readonly string[];
}

/** Reads the index without having written it; undefined if there is no readable index yet. */
async function indexIn(place: Scratch): Promise<Index | undefined> {
  const { id, folder } = placeOf(place);
  using catalog = Catalog.read(folder);
  if (catalog === undefined || catalog.facts().store === null) return undefined;
  const identity = { index: id, vectors: { model: "nobody", dimension: 2 } };
  await using store = readEmbeddedStore(path.join(folder, "store"), identity);
  const chunks = await store.unembedded(1_000_000, never);
  return {
    facts: catalog.facts(),
    files: catalog.files(),
    held: await store.fileHashes(never),
    chunks: chunks.map((each) => `${each.path}:${each.start}-${each.end} ${each.text}`).toSorted(),
  };
}

const hashOf = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

/** Checks that the index matches every file, and equals an index made just now. */
async function assertFresh(place: Scratch): Promise<void> {
  const index = (await indexIn(place)) ?? assert.fail("there is no index");
  assert.equal(index.facts.whole, true);
  for (const [at, hash] of index.held) assert.equal(hash, hashOf(place.at("work", at)), at);
  assert.deepEqual([aheadOfStore(place.at("work"), index), onlyInStore(index)], [[], []]);
  await using other = await scratch();
  const at = (...parts: readonly string[]): string =>
    parts[0] === "work" ? place.at(...parts) : other.at(...parts);
  await updated({ at }, meansInFile());
  assert.deepEqual(index.chunks, (await indexIn({ ...other, at }))?.chunks);
}

const FOLDERS = 6;

const fileOf = (place: Scratch, number: number): string =>
  place.at("work", `d${number % FOLDERS}`, `f${number}.${number % 5 === 0 ? "md" : "ts"}`);

const textOf = (number: number, more: number): string =>
  Array.from(
    { length: 1 + ((number + more) % 4) },
    (_, at) => `export const v${number}x${more}x${at} = ${at};\n`,
  ).join("");

/** Changes the workspace: some files grow, some disappear, some move, some are added. */
function disturb(place: Scratch, dice: Dice, files: number): void {
  const changes = 1 + dice.below(dice.below(4) === 0 ? files : 12);
  for (let change = 0; change < changes; change += 1) {
    const number = dice.below(files);
    const file = fileOf(place, number);
    const there = lstatSync(file, { throwIfNoEntry: false }) !== undefined;
    if (!there) writeFileSync(file, textOf(number, dice.below(1000)));
    else
      [
        () => appendFileSync(file, `// disturbed ${dice.below(1000)}\n`),
        () => rmSync(file),
        () => renameSync(file, fileOf(place, dice.below(files))),
        () => writeFileSync(file, dice.below(2) === 0 ? "" : "\0\0"),
        () => writeFileSync(file, textOf(number, dice.below(1000))),
      ][dice.below(5)]?.();
  }
}

/** Enough for two batches. */
const FILES = 230;

/** One index whose writers are killed repeatedly, sometimes while it is made, sometimes while it is updated. */
export async function searchLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await scratch();
  const files = dice.below(2) === 0 ? FILES : 30;
  for (let folder = 0; folder < FOLDERS; folder += 1)
    mkdirSync(place.at("work", `d${folder}`), { recursive: true });
  for (let number = 0; number < files; number += 1) writeFileSync(fileOf(place, number), textOf(number, 0));
  for (let kill = 0; kill < kills; kill += 1) {
    const moment = dice.moment({ steps: dice.oneOf([18, 30]), ms: 500 });
    const { ended } = await killed("fixtures/update-writer.ts", [place.path], moment);
    if (!ended) tally.cut += 1;
    await lookAfter(place, { moment, tally });
    // Half of the time another process, also killed, continues over other files.
    if (dice.below(2) === 0) {
      await updated(place, meansInFile());
      await assertFresh(place);
    }
    disturb(place, dice, files);
  }
}

async function lookAfter(
  place: Scratch,
  { moment, tally }: { readonly moment: Moment; readonly tally: Tally },
): Promise<void> {
  const index = await indexIn(place);
  if (index === undefined) return countSeen(tally, "no index yet");
  const told = JSON.stringify(moment);
  assert.deepEqual(aheadOfStore(place.at("work"), index), [], `ahead of the store, ${told}`);
  assert.deepEqual(onlyInStore(index), [], `only in the store, ${told}`);
  if (index.facts.whole) return countSeen(tally, "whole");
  const other = [...index.files].filter(
    ([at, { chunks, hash }]) => chunks > 0 && index.held.get(at) !== hash,
  );
  countSeen(tally, other.length === 0 ? "not whole, alike" : "not whole, the store is ahead");
}

const FEW = 8;
const MAX_STEPS = 60;

/** The same update repeatedly, killed before its first change, its second, … until one reaches its end. */
export async function killedBeforeEach(): Promise<readonly string[]> {
  const saw: string[] = [];
  for (let at = 1; at < MAX_STEPS && saw.at(-1) !== "ended"; at += 1) {
    await using place = await scratch();
    for (let folder = 0; folder < FOLDERS; folder += 1)
      mkdirSync(place.at("work", `d${folder}`), { recursive: true });
    for (let number = 0; number < FEW; number += 1) writeFileSync(fileOf(place, number), textOf(number, 0));
    // Waits until all files can be recognized by their stamps.
    await sleep(150);
    await updated(place, meansInFile());
    appendFileSync(fileOf(place, 1), "// grown\n");
    rmSync(fileOf(place, 2));
    renameSync(fileOf(place, 3), fileOf(place, FEW));
    const tally: Tally = { cut: 0, seen: new Map() };
    const moment = { kind: "step", at, half: false } as const;
    const { ended } = await killed("fixtures/update-writer.ts", [place.path], moment);
    await lookAfter(place, { moment, tally });
    saw.push(ended ? "ended" : ([...tally.seen.keys()][0] ?? ""));
    await updated(place, meansInFile());
    await assertFresh(place);
  }
  return saw;
}
