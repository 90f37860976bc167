import { WEIGHTS } from "./rank/weights.ts";

/** How vectors affect the ranking: a weight that was measured for another way does not apply to this one. */
export const WAY = "second look";

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
