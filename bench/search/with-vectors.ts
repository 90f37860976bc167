import { embedAll } from "../../src/search/embed-all.ts";
import {
  type EmbeddingModel,
  openVectorCache,
  probedDimension,
  queryText,
} from "../../src/search/embed-model.ts";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { rank } from "../../src/search/rank-hits.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { StoredFile } from "../../src/search/search-store.ts";
import { measuredWorth } from "../../src/search/measure-worth.ts";
import type { Asker } from "./contestants.ts";
import type { CommitQuery } from "./queries.ts";

const LIMIT = 40;
const CANDIDATES = 300;
const HISTORY = 100;

export interface Embedding {
  readonly model: EmbeddingModel;
  /** Folder that keeps vectors between runs. */
  readonly cache: string;
  /** Questions from commits before the index, which decide the weight of vectors. */
  readonly past: readonly CommitQuery[];
}

/** Harness with vectors, at fixed weights and at the weight that the history decides. */
export async function embedded(
  folder: string,
  files: readonly StoredFile[],
  { model, cache: cacheFolder, past }: Embedding,
): Promise<AsyncDisposable & { readonly askers: readonly Asker[]; readonly worth: object | null }> {
  const { signal } = new AbortController();
  const dimension = await probedDimension(model, signal);
  await using stack = new AsyncDisposableStack();
  const vectors = { model: model.id, dimension };
  const store = stack.use(openEmbeddedStore(folder, { index: "bench", vectors }));
  await store.put(files, signal);
  using cache = openVectorCache(cacheFolder, { warn: () => undefined });
  const outcome = await embedAll(store, model, cache, { dimension, signal });
  if (outcome.kind !== "whole") throw new Error(outcome.reason);
  const vectorOf = async (text: string): Promise<Float32Array> => {
    const [vector] = await model.embedder.embed([queryText(model, text)], signal);
    if (vector === undefined) throw new Error("no vector came");
    return vector;
  };
  const history = past
    .slice(0, HISTORY)
    .map(({ short, answers }) => ({ question: short, answers: new Set(answers) }));
  const worth = await measuredWorth(store, history, { model: model.id, vectorOf, signal });
  const asker = (name: string, dense: number): Asker => ({
    name,
    find: async (text) => {
      const vector = dense === 0 ? null : await vectorOf(text);
      const candidates = await store.candidates({ text, vector }, CANDIDATES, signal);
      return rank(candidates, text, LIMIT, { ...WEIGHTS, dense }).map(({ path }) => path);
    },
  });
  const askers = [
    asker("vectors at 0.15", 0.15),
    asker("vectors at 0.3", 0.3),
    asker("vectors as the history says", worth?.weight ?? WEIGHTS.dense),
  ];
  const kept = stack.move();
  return { askers, worth, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
