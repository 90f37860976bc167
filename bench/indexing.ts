import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { lstatSync, readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Box } from "../src/core/ports.ts";
import { MAX_RULES_LENGTH, NestedIgnore } from "../src/policy/paths/ignore-rules.ts";
import { claimIndex } from "../src/search/embedded/catalog-workspace.ts";
import { openEmbeddedStore } from "../src/search/embedded/open-embedded.ts";
import { type Cutting, CuttingHere } from "../src/search/index/cutting.ts";
import { OpenedIndex } from "../src/search/index/open-index.ts";
import type { IndexOptions } from "../src/search/index/index-means.ts";
import { ground } from "./boxes.ts";
import type { Figure, Pair } from "./figure.ts";
import { sourceTree } from "./source-tree.ts";

/** An index of 10,000 files of some 6 KB, read through a real box. */

const FILES = 10_000;
const never = new AbortController().signal;

const MEANS: IndexOptions = {
  rules: {
    ignored: NestedIgnore.none(),
    mostOfList: MAX_RULES_LENGTH,
    secret: () => false,
    guarded: () => false,
  },
  trust: "untrusted",
  thread: pathToFileURL(path.join(import.meta.dirname, "../dist/cut-worker.js")),
  named: null,
  openServer: () => Promise.resolve(null),
  openStore: ({ folder, identity }) => Promise.resolve(openEmbeddedStore(folder, identity)),
  warn: () => undefined,
};

interface Indexed {
  readonly wholeMs: number;
  readonly oneMs: number;
  readonly lookMs: number;
  readonly bareLookMs: number;
}

/** Measured once for all its figures: the tree takes longest to write. */
function once(): () => Promise<Indexed> {
  const held: { measured?: Promise<Indexed> } = {};
  return () => (held.measured ??= measured());
}

async function measured(): Promise<Indexed> {
  await using place = await ground();
  await using box = await place.startBox();
  const { workspace } = box;
  await sourceTree(workspace, FILES);
  const state = await mkdtemp(path.join(path.dirname(workspace), "state-"));
  try {
    // As in a run, whose next call finds the parser loaded.
    await using kept = new CuttingHere();
    const wholeMs = await timed(() => updated(state, box));
    const file = path.join(workspace, "part0/unit1");
    const ones: number[] = [];
    const looks: number[] = [];
    const bare: number[] = [];
    for (let run = 0; run < 7; run += 1) {
      // Files as young as the look at them are not known by their stamps.
      await new Promise((resolve) => void setTimeout(resolve, 200));
      await updated(state, box);
      looks.push(await timed(() => looked(state, workspace)));
      bare.push(await timed(() => Promise.resolve(walk(workspace))));
      const [name = ""] = readdirSync(file);
      await writeFile(path.join(file, name), `${await readFile(path.join(file, name), "utf8")}\n// ${run}\n`);
      ones.push(await timed(() => updated(state, box, kept)));
    }
    return { wholeMs, oneMs: median(ones), lookMs: median(looks), bareLookMs: median(bare) };
  } finally {
    await rm(state, { recursive: true, force: true });
  }
}

async function updated(state: string, box: Box, kept?: Cutting): Promise<void> {
  const place = claimIndex(state, box.workspace);
  await using index = await OpenedIndex.write(MEANS, place, { patienceMs: 0, signal: never });
  await index.update(box, kept === undefined ? {} : { kept }, never);
}

async function looked(state: string, workspace: string): Promise<void> {
  const index = await OpenedIndex.read(MEANS, claimIndex(state, workspace), never);
  await using held = index ?? missing();
  if (!(await held.isFresh(never))) throw new Error("the index is not fresh");
}

const missing = (): never => {
  throw new Error("there is no index");
};

/** The least that a look at names and metadata can be. */
function walk(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) walk(file);
    else lstatSync(file);
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const all = once();

const figure = (name: string, hold: number, measure: (found: Indexed) => Pair): Figure => ({
  name,
  unit: "ms",
  hold,
  measure: async () => measure(await all()),
});

export const INDEXING: readonly Figure[] = [
  figure("index.ten-thousand", 1, ({ wholeMs }) => ({ value: wholeMs, baseline: 15_000 })),
  figure("index.one-change", 1, ({ oneMs }) => ({ value: oneMs, baseline: 150 })),
  figure("index.look", 1, ({ lookMs }) => ({ value: lookMs, baseline: 150 })),
  figure("index.look-against-walk", 4, ({ lookMs, bareLookMs }) => ({ value: lookMs, baseline: bareLookMs })),
];
