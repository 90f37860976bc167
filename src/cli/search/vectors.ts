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

/** Looked for, and asked for the length of its vectors. Only an abort rejects. */
export async function vectorsFor(
  { settings, origins, note }: VectorsWanted,
  signal: AbortSignal,
): Promise<Vectors> {
  const { embedderSeat } = await import("../embedder-seat.ts");
  using stack = new DisposableStack();
  const seat = stack.use(embedderSeat(settings, { origins, warn: note }));
  const found = await seat.find(signal);
  stack.move();
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
  index: Pick<HeldIndex, "store">,
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
