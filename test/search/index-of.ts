import type { EmbedOptions } from "../../src/search/embed-all.ts";
import { openVectorCache, type VectorCache } from "../../src/search/embed-model.ts";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { file, NEVER } from "./stores/words.ts";

export const DIMENSION = 64;
export const OPTIONS: EmbedOptions = { dimension: DIMENSION, signal: NEVER };

export const openIndex = (folder: string, model = "fake/plain", dimension = DIMENSION): SearchStore =>
  openEmbeddedStore(folder, { index: "a1", vectors: { model, dimension } });

/** Fills a store with files of three chunks each, all different. */
export async function fill(store: SearchStore, files: number): Promise<void> {
  await store.put(
    Array.from({ length: files }, (_, at) =>
      file(`src/f${at}.ts`, `alpha ${at}`, `beta ${at} zebra`, `gamma ${at}`),
    ),
    NEVER,
  );
}

export function cacheIn(folder: string, said: string[] = []): VectorCache {
  return openVectorCache(folder, { warn: (text) => void said.push(text) });
}
