/** What comes of work, or the reason of the signal once that is aborted: also of work that does not heed it. */
export async function inTime<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: left, reject: leave } = Promise.withResolvers<never>();
  const ended = (): void => leave(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", ended, { once: true });
  try {
    return await Promise.race([work(), left]);
  } finally {
    signal.removeEventListener("abort", ended);
  }
}
