import type { Signal } from "./outcome.ts";

/** The reason of an abort that a signal, or a reader that left, has brought about. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: Signal;

  constructor(signal: Signal) {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}

/** What ended it, whoever aborted without saying is taken for Ctrl-C. */
export const signalOf = ({ reason }: AbortSignal): Signal =>
  reason instanceof Interrupted ? reason.signal : "SIGINT";
