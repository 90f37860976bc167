import { EXIT, HarnessError } from "../core/errors.ts";
import type { EmbeddingModel } from "./embed-model.ts";
import type { VectorCache } from "./embedding-cache.ts";
import { inTime } from "./index-failure.ts";

/** How many chunks of an index have vectors so far. */
export interface EmbedProgress {
  /** Chunks that have a vector, including those from earlier runs. */
  readonly done: number;
  readonly total: number;
  /** Chunks per second that the model embedded in this run; null before the first. */
  readonly perSecond: number | null;
  readonly remainingMs: number | null;
}

export interface EmbedOutcome {
  /** `partial`: the model failed; finished vectors stay, and a search finds the rest by words. */
  readonly kind: "whole" | "partial" | "cancelled";
  /** Chunks of the index that have a vector now, and all chunks of the index. */
  readonly embedded: number;
  readonly chunks: number;
  /** Vectors of this run: from the cache, and from the model. */
  readonly reused: number;
  readonly asked: number;
  /** Empty if the outcome is whole. */
  readonly reason: string;
  readonly remedy: string;
}

/** Describes an index by the number of its vectors. */
export const vectorsLine = (embedded: number, chunks: number): string =>
  embedded === chunks ? `${chunks} chunks, all with vectors` : `${embedded} of ${chunks} chunks have vectors`;

/** How much of an index can also be found by meaning. */
export interface VectorShare {
  readonly embedded: number;
  readonly chunks: number;
  /** From 0 to 1; 1 if there is nothing to embed. */
  readonly share: number;
  /** The command that embeds the rest; empty if no chunk lacks a vector. */
  readonly next: string;
}

export const vectorShare = (embedded: number, chunks: number): VectorShare => ({
  embedded,
  chunks,
  share: chunks === 0 ? 1 : Math.floor((embedded / chunks) * 1000) / 1000,
  next: embedded < chunks ? "harness index" : "",
});

const REMEDY = "check that embed_model is a model for embeddings";

/**
 * Requires one vector per text, each with `dimension` numbers and a direction; anything else is a failure of the
 * embedder.
 */
export function checkedVectors(
  vectors: readonly Float32Array[],
  texts: number,
  dimension: number,
): readonly Float32Array[] {
  if (vectors.length !== texts)
    throw wrong(`the model returned ${vectors.length} vectors for ${texts} texts`);
  for (const vector of vectors) {
    if (vector.length !== dimension)
      throw wrong(`a vector has ${vector.length} dimensions, but this model's vectors have ${dimension}`);
    if (!vector.every(Number.isFinite)) throw wrong("a vector contains a value that is not a finite number");
    if (vector.every((number) => number === 0)) throw wrong("a vector is all zeros");
  }
  return vectors;
}

const wrong = (reason: string): HarnessError => new HarnessError(EXIT.model, `embeddings: ${reason}`, REMEDY);

/** Indexing waits this long for the model, which may have to be loaded. */
const PROBE_MS = 60_000;
const PROBE = "search";

/** The length of the model's vectors: known to the cache, or else asked of the model. */
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

/** The length of the model's vectors, always asked of the model. */
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
