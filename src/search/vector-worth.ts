import { WEIGHTS } from "./rank/weights.ts";

/** How vectors count in the order: a weight that was measured for another way says nothing of this one. */
export const WAY = "second look";

/** What the vectors of an index brought on its own history. */
export interface VectorWorth {
  /** In which they were measured; earlier versions had another one, and named none. */
  readonly way: string;
  /** Of the model that was measured. */
  readonly model: string;
  /** What they weigh in the order (`dense` of the weights): 0 leaves them out. */
  readonly weight: number;
  readonly questions: number;
  /** How large the index was: of one that is much larger it says little. */
  readonly chunks: number;
  /** Mean reciprocal rank of the first right file among ten, by words alone and at that weight. */
  readonly words: number;
  readonly vectors: number;
}

interface Measured {
  readonly model: string | null;
  readonly worth: VectorWorth | null;
}

/** What was measured for these vectors as they count now. */
export const worthIn = ({ model, worth }: Measured): VectorWorth | null =>
  worth?.model === model && worth.way === WAY ? worth : null;

/** What vectors weigh in an index with these facts. */
export const weightIn = (facts: Measured): number => worthIn(facts)?.weight ?? WEIGHTS.dense;

/** A first measure, or one of an index that was much smaller or larger. */
export function isDue(facts: Measured, chunks: number): boolean {
  const worth = worthIn(facts);
  return worth === null || Math.abs(chunks - worth.chunks) * 4 > worth.chunks;
}
