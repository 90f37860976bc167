import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Catalog, type CatalogFacts } from "../../src/search/catalog.ts";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import type { VectorShare } from "../../src/search/index-vectors.ts";
import type { SearchHit } from "../../src/search/rank-hits.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { aheadOfStore, onlyInStore } from "../kills/search-lives.ts";
import { harness, type Ran, type RunStart } from "./run-command.ts";

/** The answer of `harness search --json`. */
export interface SearchAnswer {
  readonly results: readonly SearchHit[];
  readonly store: string;
  readonly stale: boolean;
  readonly vectors: VectorShare;
}

/** Progress that a busy machine prints; the tests of the progress line itself check it. */
const PROGRESS = /^indexing(?: …|: ended after .*)\n/gm;

/** `stderr` holds remarks about the answer. */
export async function search(
  place: Scratch,
  query: string,
  start: RunStart & { readonly flags?: readonly string[] } = {},
): Promise<SearchAnswer & { readonly stderr: string }> {
  const ran = await harness(place, ["search", "--json", ...(start.flags ?? []), query], start);
  assert.equal(ran.code, 0, ran.stderr + ran.stdout);
  return { ...(JSON.parse(ran.stdout) as SearchAnswer), stderr: ran.stderr.replaceAll(PROGRESS, "") };
}

/** Paths only, best first. */
export const paths = ({ results }: SearchAnswer): readonly string[] => results.map((hit) => hit.path);

export async function indexed(
  place: Scratch,
  flags: readonly string[] = [],
  start: RunStart = {},
): Promise<Ran> {
  const ran = await harness(place, ["index", "--json", "--no-embed", ...flags], start);
  assert.equal(ran.code, 0, ran.stderr + ran.stdout);
  return ran;
}

export interface Index {
  readonly folder: string;
  readonly facts: CatalogFacts;
  /** Each chunk as path, lines and hash of its text. */
  readonly chunks: readonly string[];
  /** Paths in the catalog, with the reason why each was skipped. */
  readonly files: Readonly<Record<string, string | null>>;
}

const never = new AbortController().signal;

const STATE = ".local/state/harness/search";

/** Whether the kill came late enough to leave an index. */
export function hasIndex(place: Scratch): boolean {
  try {
    const root = place.at(STATE);
    const names = readdirSync(root, { recursive: true, encoding: "utf8" });
    return ["workspace.json", "catalog.db", "store/index.db"].every((each) =>
      names.some((name) => name.endsWith(`/${each}`)),
    );
  } catch {
    return false;
  }
}

/** The index of a workspace on disk; there is at most one. */
export async function indexOf(place: Scratch, workspace = place.at("work")): Promise<Index> {
  const root = place.at(STATE);
  const records = readdirSync(root).flatMap((name) => recordOf(path.join(root, name)));
  const mine = records.filter((each) => each.workspace === workspace);
  assert.equal(mine.length, 1, JSON.stringify(records));
  const folder = path.join(root, mine[0]?.id ?? "");
  const identity = { index: path.basename(folder), vectors: { model: "nobody", dimension: 2 } };
  await using store = openEmbeddedStore(path.join(folder, "store"), identity);
  const chunks = await store.unembedded(1_000_000, never);
  const held = await store.fileHashes(never);
  using catalog = Catalog.read(folder) ?? assert.fail(`no catalog in ${folder}`);
  const files = catalog.files();
  const facts = catalog.facts();
  assert.deepEqual(aheadOfStore(workspace, { facts, files, held }), [], "the catalog is ahead of the store");
  assert.deepEqual(onlyInStore({ facts, files, held }), [], "only in the store");
  return {
    folder,
    facts,
    chunks: chunks.map((each) => `${each.path}:${each.start}-${each.end} ${each.hash}`).toSorted(),
    files: Object.fromEntries([...files].map(([at, { skip }]) => [at, skip])),
  };
}

function recordOf(folder: string): readonly { readonly id: string; readonly workspace: string }[] {
  try {
    return [JSON.parse(readFileSync(path.join(folder, "workspace.json"), "utf8")) as never];
  } catch {
    return [];
  }
}
