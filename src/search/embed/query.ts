import { HarnessError, reasonOf } from "../../core/errors.ts";
import type { VectorCache } from "./cache.ts";
import { checkedVectors } from "./checked.ts";
import { type EmbeddingModel, queryText } from "./model.ts";

/** A model that is not in memory is loaded first; a search is not worth more than this. */
const QUESTION_MS = 4000;
/** What indexing waits for, which may have to load the model. */
const PROBE_MS = 60_000;
const PROBE = "search";

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
    const asked = inTime(model, queryText(model, text), AbortSignal.any([signal, late]));
    const [vector] = checkedVectors(await asked, 1, dimension);
    return vector ?? null;
  } catch (thrown) {
    signal.throwIfAborted();
    const why = late.aborted ? `${model.name} gave no vector within ${timeoutMs / 1000} s` : whyOf(thrown);
    warn(`searching by words alone: ${why}`);
    return null;
  }
}

/** How many numbers the model's vectors have: the cache may know, else the model is asked. */
export async function dimensionOf(
  model: EmbeddingModel,
  cache: VectorCache,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const known = cache.dimension(model.id);
  if (known !== undefined) return known;
  const dimension = await probedDimension(model, signal, timeoutMs);
  cache.learn(model.id, dimension);
  return dimension;
}

/** Asks the model itself. */
export async function probedDimension(
  model: EmbeddingModel,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const vectors = await inTime(model, PROBE, limit);
  const dimension = vectors[0]?.length ?? 0;
  checkedVectors(vectors, 1, dimension);
  return dimension;
}

/** Also of an embedder that does not heed its signal. */
async function inTime(
  { embedder }: EmbeddingModel,
  text: string,
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const { promise: left, reject: leave } = Promise.withResolvers<never>();
  const ended = (): void => leave(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", ended, { once: true });
  try {
    return await Promise.race([embedder.embed([text], signal), left]);
  } finally {
    signal.removeEventListener("abort", ended);
  }
}

const whyOf = (thrown: unknown): string =>
  thrown instanceof HarnessError && thrown.remedy !== ""
    ? `${thrown.message} (${thrown.remedy})`
    : reasonOf(thrown);
