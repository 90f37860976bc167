import { EXIT, HarnessError } from "../core/errors.ts";
import type { EmbeddingModel } from "./embed-model.ts";
import type { VectorCache } from "./embedding-cache.ts";
import { inTime } from "./index-failure.ts";

/** How far the vectors of an index have come. */
export interface EmbedProgress {
  /** Chunks that have a vector, those of earlier runs too. */
  readonly done: number;
  readonly total: number;
  /** That the model embedded, in this run; null before the first. */
  readonly perSecond: number | null;
  readonly remainingMs: number | null;
}

export interface EmbedOutcome {
  /** partial: the model is the cause; what is embedded stays, and a search finds the rest by words. */
  readonly kind: "whole" | "partial" | "cancelled";
  /** Chunks of the index that have a vector by now, of how many. */
  readonly embedded: number;
  readonly chunks: number;
  /** In this run: from the cache, and by the model. */
  readonly reused: number;
  readonly asked: number;
  /** Empty when it is whole. */
  readonly reason: string;
  readonly remedy: string;
}

/** What there is to say of an index by the number of its vectors. */
export const vectorsLine = (embedded: number, chunks: number): string =>
  embedded === chunks ? `${chunks} chunks, all with vectors` : `${embedded} of ${chunks} chunks have vectors`;

/** How much of an index is found by its meaning too. */
export interface VectorShare {
  readonly embedded: number;
  readonly chunks: number;
  /** From 0 to 1; 1 where there is nothing to embed. */
  readonly share: number;
  /** What gives the rest its vectors; empty where nothing lacks one. */
  readonly next: string;
}

export const vectorShare = (embedded: number, chunks: number): VectorShare => ({
  embedded,
  chunks,
  share: chunks === 0 ? 1 : Math.floor((embedded / chunks) * 1000) / 1000,
  next: embedded < chunks ? "harness index" : "",
});

const REMEDY = "check that embed_model is a model for embeddings";

/** One vector for each text, of that many numbers, each with a direction; anything else is a failure of the embedder. */
export function checkedVectors(
  vectors: readonly Float32Array[],
  texts: number,
  dimension: number,
): readonly Float32Array[] {
  if (vectors.length !== texts) throw wrong(`${vectors.length} vectors came for ${texts} texts`);
  for (const vector of vectors) {
    if (vector.length !== dimension)
      throw wrong(`a vector has ${vector.length} numbers, those of this model have ${dimension}`);
    if (!vector.every(Number.isFinite)) throw wrong("a vector holds something that is no number");
    if (vector.every((number) => number === 0)) throw wrong("a vector is all zeros");
  }
  return vectors;
}

const wrong = (reason: string): HarnessError => new HarnessError(EXIT.model, `embeddings: ${reason}`, REMEDY);

/** What indexing waits for, which may have to load the model. */
const PROBE_MS = 60_000;
const PROBE = "search";

/** How many numbers the model's vectors have: the cache may know, else the model is asked. */
export async function dimensionOf(
  model: EmbeddingModel,
  cache: VectorCache,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const known = cache.dimension(model.id);
  if (known !== undefined) return known;
  const dimension = await probedDimension(model, signal, timeoutMs);
  cache.learn(model.id, dimension);
  return dimension;
}

/** Asks the model itself. */
export async function probedDimension(
  model: EmbeddingModel,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const vectors = await inTime(() => model.embedder.embed([PROBE], limit), limit);
  const dimension = vectors[0]?.length ?? 0;
  checkedVectors(vectors, 1, dimension);
  return dimension;
}
