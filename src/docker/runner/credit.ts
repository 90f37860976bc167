/** How many bytes of input may be on their way before the runner has taken them. */
export interface CreditWindow {
  /** Waits until this many may be sent; false when there is no more use in sending. */
  readonly take: (bytes: number) => Promise<boolean>;
  /** The payload of a credit frame. */
  readonly give: (payload: Buffer) => void;
  readonly stop: () => void;
}

export function creditWindow(window: number): CreditWindow {
  const state = { left: window, stopped: false, wake: (): void => undefined };
  const moved = (): Promise<void> => new Promise((resolve) => (state.wake = resolve));
  return {
    take: async (bytes) => {
      while (state.left < bytes && !state.stopped) await moved();
      state.left -= bytes;
      return !state.stopped;
    },
    give: (payload) => {
      state.left += Number(payload.readBigUInt64LE(5));
      state.wake();
    },
    stop: () => {
      state.stopped = true;
      state.wake();
    },
  };
}
