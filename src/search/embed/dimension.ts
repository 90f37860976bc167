import type { VectorCache } from "./cache.ts";
import { checkedVectors } from "./checked.ts";
import { inTime } from "../in-time.ts";
import type { EmbeddingModel } from "./model.ts";

/** What indexing waits for, which may have to load the model. */
const PROBE_MS = 60_000;
const PROBE = "search";

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
  const vectors = await inTime(() => model.embedder.embed([PROBE], limit), limit);
  const dimension = vectors[0]?.length ?? 0;
  checkedVectors(vectors, 1, dimension);
  return dimension;
}
