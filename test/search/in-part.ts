/** Updates that report which folders they listed, compared with a fresh index. */
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import type { TestContext } from "node:test";
import type { CatalogFile } from "../../src/search/catalog.ts";
import { claimIndex } from "../../src/search/index-folders.ts";
import { OpenedIndex } from "../../src/search/open-index.ts";
import type { Updated } from "../../src/search/update-index.ts";
import { hostBox } from "../fakes/host-box.ts";
import type { SearchMemory } from "../fakes/search-store.ts";
import { chunksIn, kept, meansOver, never } from "../fixtures/index.ts";
import type { Scratch } from "../fixtures/scratch.ts";

export const FILES = {
  "work/a.ts": "export const a = 1;\n",
  "work/one/b.ts": "export const b = 1;\n",
  "work/one/deep/c.ts": "export const c = 1;\n",
  "work/two/d.ts": "export const d = 1;\n",
  "work/two/.gitignore": "*.log\n",
};

/** Makes files old enough at once to be recognized by their stamps: tests never write the same length twice. */
export const later = (t: TestContext): void =>
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 3_600_000 });

export interface PartialUpdate extends Updated {
  /** Listed folders, each alone or with everything below; the whole workspace is a dot with everything below. */
  readonly listed: readonly string[];
  readonly catalog: readonly (readonly [string, CatalogFile])[];
}

export interface Updating {
  readonly memory: SearchMemory;
  readonly state?: string;
  /** Runs just before the box lists. */
  readonly meanwhile?: () => Promise<unknown>;
}

export async function updated(
  place: Scratch,
  { memory, state = "state", meanwhile }: Updating,
): Promise<PartialUpdate> {
  const box = hostBox(place.at("work"));
  const listed: string[] = [];
  const exec: typeof box.exec = async (request, signal) => {
    const [program, ...words] = request.words;
    if (program === "find") {
      if (listed.length === 0) await meanwhile?.();
      const deep = words[words.indexOf("-maxdepth") + 1] !== "1";
      const starts = words.slice(0, words.indexOf("-mindepth"));
      listed.push(...starts.map((start) => (deep ? `${start}/**` : start)));
    }
    return box.exec(request, signal);
  };
  const at = claimIndex(place.at(state), place.at("work"));
  await using index = await OpenedIndex.write(meansOver(memory), at, { patienceMs: 0, signal: never });
  const done = await index.update({ ...box, exec }, { kept }, never);
  return { ...done, listed, catalog: [...index.catalog.files()].toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}

/** Checks that the index equals a freshly made one. */
export async function assertLikeFresh(
  place: Scratch,
  memory: SearchMemory,
  told: PartialUpdate,
): Promise<void> {
  const anew: SearchMemory = new Map();
  const fresh = await updated(place, { memory: anew, state: "anew" });
  await rm(place.at("anew"), { recursive: true });
  assert.deepEqual(chunksIn(memory), chunksIn(anew));
  assert.deepEqual(told.catalog, fresh.catalog);
  const { files, chunks, skipped } = told;
  assert.deepEqual({ files, chunks, skipped }, pick(fresh));
}

const pick = ({ files, chunks, skipped }: Updated): Pick<Updated, "files" | "chunks" | "skipped"> => ({
  files,
  chunks,
  skipped,
});
