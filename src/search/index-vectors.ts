import { WEIGHTS } from "./weights.ts";

/** How many vectors an index has, and how much they help to find something in it. */

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

/** How vectors affect the ranking: a weight that was measured for another way does not apply to this one. */
export const WAY = "second look at found pieces";

/** How much vectors helped an index to answer questions from its own history. */
export interface VectorWorth {
  /** The way in which they were measured; earlier versions used another one and named none. */
  readonly way: string;
  /** The model that was measured. */
  readonly model: string;
  /** The weight of vectors in the ranking (`dense` of the weights): 0 leaves them out. */
  readonly weight: number;
  readonly questions: number;
  /** The size of the measured index: the result says little about a much larger one. */
  readonly chunks: number;
  /** Mean reciprocal rank of the first right file among ten, by words alone and with that weight. */
  readonly words: number;
  readonly vectors: number;
}

interface Measured {
  readonly model: string | null;
  readonly worth: VectorWorth | null;
}

/** The measurement for the current model and way, if there is one. */
export const worthIn = ({ model, worth }: Measured): VectorWorth | null =>
  worth?.model === model && worth.way === WAY ? worth : null;

/** The weight of vectors in an index with these facts. */
export const weightIn = (facts: Measured): number => worthIn(facts)?.weight ?? WEIGHTS.dense;

/** Whether to measure: for the first time, or because the index was much smaller or larger. */
export function isDue(facts: Measured, chunks: number): boolean {
  const worth = worthIn(facts);
  return worth === null || Math.abs(chunks - worth.chunks) * 4 > worth.chunks;
}
