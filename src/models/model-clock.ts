/** Time as the provider sees it; tests bring their own. */
export interface Clock {
  /** Milliseconds since some moment. */
  readonly now: () => number;
  /** Calls once, later; the answer takes it back. */
  readonly after: (ms: number, call: () => void) => () => void;
}

export const realClock: Clock = {
  now: () => performance.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after so long, or as soon as the signal fires. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      takeBack();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const takeBack = clock.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}
