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
