import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { rank } from "../../src/search/rank-hits.ts";
import type { SearchStore, StoredFile } from "../../src/search/search-store.ts";
import { scratch } from "../../test/fixtures/scratch.ts";
import {
  EMPTY,
  emptyPeak,
  emptyProgram,
  type Figure,
  inTurn,
  type Measured,
  paired,
  timed,
} from "../figure.ts";
import { generatedFile, generatedFiles, generatedQueries, Prose } from "./generated.ts";

export const IDENTITY = { index: "bench", vectors: null } as const;
const NEVER = new AbortController().signal;
const CANDIDATES = 300;
const RESULTS = 10;
/** As many files as the pipeline hands over at once. */
const FILES_AT_ONCE = 100;

async function fill(store: SearchStore, chunks: number): Promise<void> {
  let batch: StoredFile[] = [];
  for (const file of generatedFiles(chunks)) {
    batch.push(file);
    if (batch.length < FILES_AT_ONCE) continue;
    await store.put(batch, NEVER);
    batch = [];
  }
  await store.put(batch, NEVER);
}

/** Milliseconds from the question to the displayed result. */
export async function ask(store: SearchStore, text: string): Promise<number> {
  const start = performance.now();
  rank(await store.candidates({ text, vector: null }, CANDIDATES, NEVER), text, RESULTS);
  return performance.now() - start;
}

/** Searches every chunk, already in memory, for all words of the question. */
function lookedThrough(texts: readonly string[], question: string): number {
  const words = question.toLowerCase().split(/\W+/);
  let found = 0;
  for (const text of texts) {
    const lower = text.toLowerCase();
    if (words.some((word) => word !== "" && lower.includes(word))) found += 1;
  }
  return found;
}

const textsOf = (chunks: number): readonly string[] =>
  Array.from(generatedFiles(chunks)).flatMap(({ chunks: of }) => of.map(({ text }) => text));

async function query(chunks: number): Promise<Measured> {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await fill(store, chunks);
  const texts = textsOf(chunks);
  const values: number[] = [];
  const baselines: number[] = [];
  for (const text of generatedQueries(60)) {
    values.push(await ask(store, text));
    baselines.push(await timed(() => lookedThrough(texts, text)));
  }
  return paired(values, baselines);
}

/** Milliseconds to insert the same texts into a plain full-text table of SQLite, in one transaction. */
async function plainly(texts: readonly string[]): Promise<number> {
  await using place = await scratch();
  using database = new DatabaseSync(place.at("plain.db"));
  database.exec("PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE chunks USING fts5(text)");
  const insert = database.prepare("INSERT INTO chunks VALUES (?)");
  return timed(() => {
    database.exec("BEGIN");
    for (const text of texts) insert.run(text);
    database.exec("COMMIT");
  });
}

async function filledIn(chunks: number): Promise<number> {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  return await timed(() => fill(store, chunks));
}

/** One file of ten chunks has changed; the median of many changes, as some of them cause segments to be merged. */
async function change(chunks: number): Promise<Measured> {
  const values: number[] = [];
  const baselines: number[] = [];
  for (let run = 0; run < 3; run += 1) {
    await using place = await scratch();
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    const whole = await timed(() => fill(store, chunks));
    const prose = new Prose(3);
    for (let turn = 0; turn < 14; turn += 1) {
      const file = generatedFile("src/changed.ts", chunks + turn, prose);
      values.push(await timed(() => store.put([file], NEVER)));
      baselines.push(whole);
    }
  }
  return paired(values, baselines);
}

/** The size of the index file, compared with the bytes of the indexed text. */
async function size(chunks: number): Promise<Measured> {
  const values: number[] = [];
  const baselines: number[] = [];
  for (const count of [chunks / 4, chunks / 2, chunks]) {
    await using place = await scratch();
    {
      await using store = openEmbeddedStore(place.at("index"), IDENTITY);
      await fill(store, count);
    }
    values.push(statSync(place.at("index", "index.db")).size / 2 ** 20);
    baselines.push(textsOf(count).reduce((sum, { length }) => sum + length, 0) / 2 ** 20);
  }
  return paired(values, baselines, 1);
}

const ASKER = path.join(import.meta.dirname, "asker.ts");
const TRIES = 9;

async function withFilledIndex(
  chunks: number,
  work: (folder: string) => Promise<Measured>,
): Promise<Measured> {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await fill(store, chunks);
  }
  return work(place.at("index"));
}

const askInProcess = (folder: string, asked: "first" | "memory"): Promise<number> =>
  Promise.resolve(Number(execFileSync(process.execPath, [ASKER, folder, asked], { encoding: "utf8" })));

const SCAN = "looking for the words in every text in memory";

export const SEARCH: readonly Figure[] = [
  { name: "search.query.20k", unit: "ms", against: SCAN, hold: 1, measure: () => query(20_000) },
  { name: "search.query.100k", unit: "ms", against: SCAN, hold: 1, measure: () => query(100_000) },
  {
    name: "search.put.20k",
    unit: "ms",
    against: "the same texts into a plain full-text table",
    hold: 5,
    measure: () => {
      const texts = textsOf(20_000);
      return inTurn(
        3,
        () => filledIn(20_000),
        () => plainly(texts),
      );
    },
  },
  {
    name: "search.change.20k",
    unit: "ms",
    against: "the whole index",
    hold: 0.01,
    measure: () => change(20_000),
  },
  { name: "search.size.20k", unit: "MiB", against: "the text", hold: 1, measure: () => size(20_000) },
  // From opening the index to the first answer of a process.
  {
    name: "search.first.20k",
    unit: "ms",
    against: EMPTY,
    hold: 3,
    measure: () =>
      withFilledIndex(20_000, (folder) =>
        inTurn(
          TRIES,
          () => askInProcess(folder, "first"),
          () => Promise.resolve(emptyProgram()),
        ),
      ),
  },
  {
    name: "search.memory.100k",
    unit: "MiB",
    against: EMPTY,
    hold: 9,
    measure: () =>
      withFilledIndex(100_000, (folder) => inTurn(3, () => askInProcess(folder, "memory"), emptyPeak)),
  },
];
