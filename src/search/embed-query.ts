import { HarnessError, reasonOf } from "../core/errors.ts";
import { checkedVectors, type EmbeddingModel, queryText } from "./embed-model.ts";
import { inTime } from "./index-failure.ts";

/** A model that is not in memory is loaded first; a search waits no longer than this. */
const QUESTION_MS = 4000;

export interface QuestionOptions {
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

/** The embedding of a question; without a vector the search uses words alone. */
export type QueryEmbedding =
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "none"; readonly reason: string };

/** Rejects only on abort. */
export async function queryVector(
  model: EmbeddingModel,
  text: string,
  { dimension, signal, timeoutMs = QUESTION_MS }: QuestionOptions,
): Promise<QueryEmbedding> {
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  try {
    const vectors = await inTime(() => model.embedder.embed([queryText(model, text)], either), either);
    const [vector] = checkedVectors(vectors, 1, dimension);
    return vector === undefined
      ? { kind: "none", reason: "the model returned no vector" }
      : { kind: "vector", vector };
  } catch (thrown) {
    signal.throwIfAborted();
    const reason = late.aborted ? `${model.name} gave no vector within ${timeoutMs / 1000} s` : whyOf(thrown);
    return { kind: "none", reason };
  }
}

const whyOf = (thrown: unknown): string =>
  thrown instanceof HarnessError && thrown.remedy !== ""
    ? `${thrown.message} (${thrown.remedy})`
    : reasonOf(thrown);
