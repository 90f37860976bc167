import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { rank } from "../../src/search/rank-hits.ts";
import { roleOf } from "../../src/search/ranked-query.ts";
import type { StoredFile } from "../../src/search/search-store.ts";
import { byBm25, byGrep, type Contestant } from "./baselines.ts";
import { IDENTITY } from "./figures.ts";

/** Results requested from each contestant; they are reduced to files afterwards. */
const LIMIT = 40;
const CANDIDATES = 300;
const FILES_AT_ONCE = 100;

export interface Asker {
  readonly name: string;
  readonly find: (query: string) => Promise<readonly string[]>;
}

/** Harness itself: the embedded store without vectors, with its ranking. */
export async function harnessAsker(
  folder: string,
  files: readonly StoredFile[],
): Promise<Asker & AsyncDisposable> {
  const never = new AbortController().signal;
  const store = openEmbeddedStore(folder, IDENTITY);
  for (let at = 0; at < files.length; at += FILES_AT_ONCE)
    await store.put(files.slice(at, at + FILES_AT_ONCE), never);
  return {
    name: "harness",
    find: async (text) => {
      const candidates = await store.candidates({ text, vector: null }, CANDIDATES, never);
      return rank(candidates, text, LIMIT).map(({ path }) => path);
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/** The other contestants, over the same files as a whole. */
export function otherAskers(
  contents: ReadonlyMap<string, string>,
  files: readonly StoredFile[],
): readonly Asker[] {
  const texts = files.map(({ path }) => ({ path, text: contents.get(path) ?? "", role: roleOf(path) }));
  return [byGrep(texts), ...byBm25(texts)].map(({ name, find }: Contestant) => ({
    name,
    find: (query) => Promise.resolve(find(query, LIMIT)),
  }));
}
