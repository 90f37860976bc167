import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import path from "node:path";
import { openEmbeddedStore } from "../../src/search/embedded/open-embedded.ts";
import { rank } from "../../src/search/rank/rank-hits.ts";
import type { SearchStore, StoredFile } from "../../src/search/search-store.ts";
import { scratch } from "../../test/fixtures/scratch.ts";
import type { Figure, Pair } from "../figure.ts";
import { generatedFile, generatedFiles, generatedQueries, Prose } from "./generated.ts";

export const IDENTITY = { index: "bench", vectors: null } as const;
const NEVER = new AbortController().signal;
const CANDIDATES = 300;
const RESULTS = 10;
/** As the pipeline hands them over. */
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

/** From the question to what is shown. */
export async function ask(store: SearchStore, text: string): Promise<number> {
  const start = performance.now();
  rank(await store.candidates({ text, vector: null }, CANDIDATES, NEVER), text, RESULTS);
  return performance.now() - start;
}

const middle = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;

/** The baselines are the figures to hold themselves. */
async function query(chunks: number, baseline: number): Promise<Pair> {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await fill(store, chunks);
  const times: number[] = [];
  for (const text of generatedQueries(60)) times.push(await ask(store, text));
  return { value: middle(times), baseline };
}

async function indexing(chunks: number, baseline: number): Promise<Pair> {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  const start = performance.now();
  await fill(store, chunks);
  return { value: performance.now() - start, baseline };
}

/** One file of ten chunks is other than it was; the worst of many, as some of them make parts be merged. */
async function change(chunks: number, baseline: number): Promise<Pair> {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await fill(store, chunks);
  const prose = new Prose(3);
  const times: number[] = [];
  for (let turn = 0; turn < 40; turn += 1) {
    const start = performance.now();
    await store.put([generatedFile("src/changed.ts", chunks + turn, prose)], NEVER);
    times.push(performance.now() - start);
  }
  return { value: middle(times), baseline };
}

/** Of the text that is indexed. */
async function size(chunks: number, share: number): Promise<Pair> {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await fill(store, chunks);
  }
  let letters = 0;
  for (const file of generatedFiles(chunks)) for (const { text } of file.chunks) letters += text.length;
  return {
    value: statSync(place.at("index", "index.db")).size / 2 ** 20,
    baseline: (letters * share) / 2 ** 20,
  };
}

const ASKER = path.join(import.meta.dirname, "asker.ts");
const TRIES = 7;

async function filled(chunks: number, work: (folder: string) => Pair): Promise<Pair> {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await fill(store, chunks);
  }
  return work(place.at("index"));
}

const said = (folder: string, asked: "first" | "memory"): number =>
  Number(execFileSync(process.execPath, [ASKER, folder, asked], { encoding: "utf8" }));

function emptyProgram(): number {
  const start = performance.now();
  execFileSync(process.execPath, ["-e", ""]);
  return performance.now() - start;
}

/** What a process takes from opening the index to its first answer, beside what an empty program takes in all. */
function firstAnswer(folder: string): Pair {
  const tries = Array.from({ length: TRIES }, () => ({
    value: said(folder, "first"),
    baseline: emptyProgram(),
  }));
  return {
    value: middle(tries.map(({ value }) => value)),
    baseline: middle(tries.map(({ baseline }) => baseline)),
  };
}

export const SEARCH: readonly Figure[] = [
  { name: "search.query.20k", unit: "ms", hold: 1, measure: () => query(20_000, 15) },
  { name: "search.query.100k", unit: "ms", hold: 1, measure: () => query(100_000, 60) },
  { name: "search.put.20k", unit: "ms", hold: 1, measure: () => indexing(20_000, 15_000) },
  { name: "search.change.20k", unit: "ms", hold: 1, measure: () => change(20_000, 150) },
  { name: "search.size.20k", unit: "MiB", hold: 1, measure: () => size(20_000, 1) },
  { name: "search.first.20k", unit: "ms", hold: 3, measure: () => filled(20_000, firstAnswer) },
  {
    name: "search.memory.100k",
    unit: "MiB",
    hold: 1,
    measure: () => filled(100_000, (folder) => ({ value: said(folder, "memory"), baseline: 400 })),
  },
];
