import type { Settings } from "../../config/schema.ts";
import type { EmbedOutcome, EmbedProgress } from "../../search/embed/outcome.ts";
import type { HeldIndex } from "../../search/index/held.ts";
import type { FoundEmbedder } from "../embedder-seat.ts";

/** What makes vectors, or why nothing does. */
export type Vectors = FoundEmbedder & Disposable;

export interface VectorsWanted {
  readonly settings: Settings;
  /** Who set each of them: a model that nobody named is asked only where it runs on this machine. */
  readonly origins: Readonly<Record<string, string>>;
  readonly note: (text: string) => void;
}

/** Looked for, and asked for the length of its vectors; never rejects. */
export async function vectorsFor(
  { settings, origins, note }: VectorsWanted,
  signal: AbortSignal,
): Promise<Vectors> {
  const { embedderSeat } = await import("../embedder-seat.ts");
  const seat = embedderSeat(settings, { origins, warn: note });
  const found = await seat.find(signal);
  return { ...found, [Symbol.dispose]: () => seat[Symbol.dispose]() };
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
  using found = await vectorsFor(wanted, signal);
  if (found.kind === "none") return wordsAlone(wanted, found.reason);
  if (found.model.id !== id)
    return wordsAlone(wanted, `the vectors are of ${id}; harness index makes new ones`);
  const { queryVector } = await import("../../search/embed/query.ts");
  return await queryVector(found.model, text, { dimension, signal, warn: wanted.note });
}

function wordsAlone({ note }: VectorsWanted, why: string): null {
  note(`searching by words alone: ${why}`);
  return null;
}
