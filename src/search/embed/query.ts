import { HarnessError, reasonOf } from "../../core/errors.ts";
import { checkedVectors } from "./checked.ts";
import { inTime } from "./in-time.ts";
import { type EmbeddingModel, queryText } from "./model.ts";

/** A model that is not in memory is loaded first; a search is not worth more than this. */
const QUESTION_MS = 4000;

export interface QuestionOptions {
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  readonly timeoutMs?: number;
}

/** Null, with one warning, where there is none in time: the search then goes by words alone. Only an abort rejects. */
export async function queryVector(
  model: EmbeddingModel,
  text: string,
  { dimension, signal, warn, timeoutMs = QUESTION_MS }: QuestionOptions,
): Promise<Float32Array | null> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const asked = inTime(model, [queryText(model, text)], AbortSignal.any([signal, late]));
    const [vector] = checkedVectors(await asked, 1, dimension);
    return vector ?? null;
  } catch (thrown) {
    signal.throwIfAborted();
    const why = late.aborted ? `${model.name} gave no vector within ${timeoutMs / 1000} s` : whyOf(thrown);
    warn(`searching by words alone: ${why}`);
    return null;
  }
}

const whyOf = (thrown: unknown): string =>
  thrown instanceof HarnessError && thrown.remedy !== ""
    ? `${thrown.message} (${thrown.remedy})`
    : reasonOf(thrown);
