import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Box } from "../src/core/ports.ts";
import { MAX_RULES_LENGTH, NestedIgnore } from "../src/policy/paths/ignore-rules.ts";
import { claimIndex } from "../src/search/index-folders.ts";
import { openEmbeddedStore } from "../src/search/stores/open-store.ts";
import { type Cutting, CuttingHere } from "../src/search/files/cutting.ts";
import { type IndexOptions, OpenedIndex } from "../src/search/open-index.ts";
import { ground } from "./boxes.ts";
import { type Figure, type Measured, paired, timed } from "./figure.ts";
import { sourceTree } from "./source-tree.ts";

/** Measures an index of 10,000 files of some 6 KB, read through a real box. */

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
  thread: pathToFileURL(path.join(import.meta.dirname, "../dist/cut-worker.cjs")),
  named: null,
  openServer: () => Promise.resolve(null),
  openStore: ({ folder, identity }) => Promise.resolve(openEmbeddedStore(folder, identity)),
  warn: () => undefined,
};

/** Milliseconds of each kind of work, measured in turn. */
interface Indexed {
  readonly whole: readonly number[];
  readonly hashed: readonly number[];
  readonly one: readonly number[];
  readonly look: readonly number[];
  readonly walk: readonly number[];
}

const WHOLES = 3;
const CHANGES = 9;

/** Measures once for all figures: writing the tree takes longest. */
function measuredOnce(): () => Promise<Indexed> {
  const held: { measured?: Promise<Indexed> } = {};
  return () => (held.measured ??= measured());
}

async function measured(): Promise<Indexed> {
  await using place = await ground();
  await using box = await place.startBox();
  const { workspace } = box;
  await sourceTree(workspace, FILES);
  const states = path.dirname(workspace);
  const found = { whole: [], hashed: [], one: [], look: [], walk: [] } as Record<keyof Indexed, number[]>;
  const made: string[] = [];
  try {
    for (let run = 0; run < WHOLES; run += 1) {
      const state = await mkdtemp(path.join(states, "state-"));
      made.push(state);
      found.whole.push(await timed(() => updated(state, box)));
      found.hashed.push(await timed(() => walk(workspace, hash)));
    }
    // As in a run, where later calls find the parser loaded.
    await using kept = new CuttingHere();
    const [state = ""] = made;
    const folder = path.join(workspace, "part0/unit1");
    for (let run = 0; run < CHANGES; run += 1) {
      // Files that are too recent are not recognized by their stamps.
      await new Promise((resolve) => void setTimeout(resolve, 200));
      await updated(state, box);
      found.look.push(await timed(() => checkFresh(state, workspace)));
      found.walk.push(await timed(() => walk(workspace, lstatSync)));
      const [name = ""] = readdirSync(folder);
      const file = path.join(folder, name);
      await writeFile(file, `${await readFile(file, "utf8")}\n// ${run}\n`);
      found.one.push(await timed(() => updated(state, box, kept)));
    }
    return found;
  } finally {
    for (const state of made) await rm(state, { recursive: true, force: true });
  }
}

const hash = (file: string): unknown => createHash("sha256").update(readFileSync(file)).digest();

async function updated(state: string, box: Box, kept?: Cutting): Promise<void> {
  const place = claimIndex(state, box.workspace);
  await using index = await OpenedIndex.write(MEANS, place, { patienceMs: 0, signal: never });
  await index.update(box, kept === undefined ? {} : { kept }, never);
}

async function checkFresh(state: string, workspace: string): Promise<void> {
  const index = await OpenedIndex.read(MEANS, claimIndex(state, workspace), never);
  await using held = index ?? missing();
  if (!(await held.isFresh(never))) throw new Error("the index is not fresh");
}

const missing = (): never => {
  throw new Error("there is no index");
};

/** Visits every file below a folder. */
function walk(folder: string, visit: (file: string) => unknown): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) walk(file, visit);
    else visit(file);
  }
}

const all = measuredOnce();

const figure = (
  name: string,
  against: string,
  hold: number,
  measure: (found: Indexed) => Measured,
): Figure => ({ name, unit: "ms", against, hold, measure: async () => measure(await all()) });

/** Repeats `values` cyclically to `count` entries. */
const among = (values: readonly number[], count: number): readonly number[] =>
  Array.from({ length: count }, (_, at) => values[at % values.length] ?? Number.NaN);

export const INDEXING: readonly Figure[] = [
  figure("index.ten-thousand", "reading and hashing the files", 60, ({ whole, hashed }) =>
    paired(whole, hashed),
  ),
  figure("index.one-change", "the whole index", 0.01, ({ one, whole }) =>
    paired(one, among(whole, one.length)),
  ),
  figure("index.look", "names and metadata of the files", 4, ({ look, walk: bare }) => paired(look, bare)),
];
