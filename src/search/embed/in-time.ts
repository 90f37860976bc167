import type { EmbeddingModel } from "./model.ts";

/** The vectors, or the reason of the signal once that is aborted: also of an embedder that does not heed it. */
export async function inTime(
  { embedder }: EmbeddingModel,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const { promise: left, reject: leave } = Promise.withResolvers<never>();
  const ended = (): void => leave(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", ended, { once: true });
  try {
    return await Promise.race([embedder.embed(texts, signal), left]);
  } finally {
    signal.removeEventListener("abort", ended);
  }
}
