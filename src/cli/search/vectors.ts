import path from "node:path";
import { placesFrom } from "../../config/places.ts";
import type { Settings } from "../../config/schema.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import type { VectorCache } from "../../search/embed/cache.ts";
import type { EmbeddingModel } from "../../search/embed/model.ts";
import type { EmbedOutcome, EmbedProgress } from "../../search/embed/outcome.ts";
import type { HeldIndex } from "../../search/index/held.ts";

/** What makes vectors, or why nothing does. */
export type Vectors =
  | (Disposable & {
      readonly kind: "found";
      readonly model: EmbeddingModel;
      readonly dimension: number;
      readonly cache: VectorCache;
    })
  | (Disposable & { readonly kind: "none"; readonly reason: string; readonly remedy: string });

export interface VectorsWanted {
  readonly settings: Settings;
  /** Who set each of them: a model that nobody named is asked only where it runs on this machine. */
  readonly origins: Readonly<Record<string, string>>;
  readonly note: (text: string) => void;
}

/** Looked for, and asked for the length of its vectors; never rejects but by an abort. */
export async function vectorsFor(
  { settings, origins, note }: VectorsWanted,
  signal: AbortSignal,
): Promise<Vectors> {
  const { embedderSeat } = await import("../embedder-seat.ts");
  const found = await embedderSeat(settings, origins).find(signal);
  if (found.kind === "none") return noVectors(found.reason, found.remedy);
  const [{ openVectorCache }, { dimensionOf }] = await Promise.all([
    import("../../search/embed/cache.ts"),
    import("../../search/embed/query.ts"),
  ]);
  const { model } = found;
  const cache = openVectorCache(path.join(placesFrom(process.env).cache, "vectors"), { warn: note });
  try {
    const dimension = await dimensionOf(model, cache, signal);
    return { kind: "found", model, dimension, cache, [Symbol.dispose]: () => cache[Symbol.dispose]() };
  } catch (thrown) {
    cache[Symbol.dispose]();
    signal.throwIfAborted();
    return noVectors(reasonOf(thrown), thrown instanceof HarnessError ? thrown.remedy : "");
  }
}

export const noVectors = (reason: string, remedy: string): Vectors => ({
  kind: "none",
  reason,
  remedy,
  [Symbol.dispose]: () => undefined,
});

/** What the vectors of an index are, as its store is opened. */
export const identityOf = (vectors: Vectors): { readonly model: string; readonly dimension: number } | null =>
  vectors.kind === "none" ? null : { model: vectors.model.id, dimension: vectors.dimension };

/** Gives the chunks of an index their vectors, as far as it comes in the time. */
export async function embedIn(
  index: HeldIndex,
  vectors: Vectors,
  onProgress: (progress: EmbedProgress) => void,
  signal: AbortSignal,
): Promise<EmbedOutcome> {
  if (vectors.kind === "none") {
    const { embedded, chunks } = await index.store.counts(signal);
    const { reason, remedy } = vectors;
    return { kind: "partial", embedded, chunks, reused: 0, asked: 0, reason, remedy };
  }
  const { embedAll } = await import("../../search/embed/embed-all.ts");
  const { model, cache, dimension } = vectors;
  return embedAll(index.store, model, cache, { dimension, signal, onProgress });
}

/** What a search waits for the vectors of what has changed. */
const SOME_MS = 3000;

/** Where an index has vectors, what is new in it gets some too; what is not done in time, `harness index` does. */
export async function embedSome(index: HeldIndex, wanted: VectorsWanted, signal: AbortSignal): Promise<void> {
  if (index.facts.model === null) return;
  using vectors = await vectorsFor(wanted, signal);
  if (vectors.kind === "none" || vectors.model.id !== index.facts.model) return;
  await embedIn(index, vectors, () => undefined, AbortSignal.any([signal, AbortSignal.timeout(SOME_MS)]));
  signal.throwIfAborted();
}

/** The vector of a question, where the index has some to compare it with. */
export async function vectorOf(
  index: HeldIndex,
  text: string,
  wanted: VectorsWanted,
  signal: AbortSignal,
): Promise<Float32Array | null> {
  const { model: id, dimension } = index.facts;
  if (id === null || dimension === null) return null;
  const { embedderSeat } = await import("../embedder-seat.ts");
  const found = await embedderSeat(wanted.settings, wanted.origins).find(signal);
  if (found.kind === "none") return wordsAlone(wanted, found.reason);
  if (found.model.id !== id)
    return wordsAlone(wanted, `the vectors are of ${id}; harness index makes new ones`);
  const { queryVector } = await import("../../search/embed/query.ts");
  return queryVector(found.model, text, { dimension, signal, warn: wanted.note });
}

function wordsAlone({ note }: VectorsWanted, why: string): null {
  note(`searching by words alone: ${why}`);
  return null;
}
