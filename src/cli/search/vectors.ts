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

/** What a search waits for the vectors of what has changed. */
const SOME_MS = 3000;

/** What of an index is needed to ask it with vectors. */
type Embedded = Pick<HeldIndex, "facts" | "store">;

/** The vectors of one search: what makes them is looked for once, and not asked again after it has failed. */
export class SearchVectors implements Disposable {
  readonly #wanted: VectorsWanted;
  #found: Vectors | undefined;
  #failure: string | null = null;

  constructor(wanted: VectorsWanted) {
    this.#wanted = wanted;
  }

  /** Where an index has vectors, what is new in it gets some too; what is not done in time, `harness index` does. */
  async embedSome(index: Embedded, signal: AbortSignal): Promise<void> {
    if (index.facts.model === null) return;
    const vectors = await this.#find(signal);
    if (vectors.kind === "none" || vectors.model.id !== index.facts.model) return;
    const { name } = vectors.model;
    const late = AbortSignal.timeout(SOME_MS);
    const outcome = await embedIn(index, vectors, () => undefined, AbortSignal.any([signal, late]));
    signal.throwIfAborted();
    if (outcome.kind === "whole" || outcome.asked > 0) return;
    this.#failure = late.aborted ? `${name} gave no vector within ${SOME_MS / 1000} s` : outcome.reason;
  }

  /** The vector of a question, where the index has some to compare it with. */
  async of(index: Embedded, text: string, signal: AbortSignal): Promise<Float32Array | null> {
    const { model: id, dimension } = index.facts;
    if (id === null || dimension === null) return null;
    if (this.#failure !== null) return this.#wordsAlone(this.#failure);
    const found = await this.#find(signal);
    if (found.kind === "none") return this.#wordsAlone(found.reason);
    if (found.model.id !== id)
      return this.#wordsAlone(`the vectors are of ${id}; harness index makes new ones`);
    const { queryVector } = await import("../../search/embed/query.ts");
    return await queryVector(found.model, text, { dimension, signal, warn: this.#wanted.note });
  }

  [Symbol.dispose](): void {
    this.#found?.[Symbol.dispose]();
  }

  async #find(signal: AbortSignal): Promise<Vectors> {
    return (this.#found ??= await vectorsFor(this.#wanted, signal));
  }

  #wordsAlone(why: string): null {
    this.#wanted.note(`searching by words alone: ${why}`);
    return null;
  }
}
