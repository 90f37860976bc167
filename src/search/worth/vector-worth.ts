import { WEIGHTS } from "../rank/weights.ts";

/** What the vectors of an index brought on its own history. */
export interface VectorWorth {
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

/** What vectors weigh in an index with these facts. */
export const weightIn = ({
  model,
  worth,
}: {
  readonly model: string | null;
  readonly worth: VectorWorth | null;
}): number => (worth === null || worth.model !== model ? WEIGHTS.dense : worth.weight);

/** A first measure, or one of an index that was much smaller or larger. */
export const isDue = (worth: VectorWorth | null, model: string, chunks: number): boolean =>
  worth === null || worth.model !== model || Math.abs(chunks - worth.chunks) * 4 > worth.chunks;
