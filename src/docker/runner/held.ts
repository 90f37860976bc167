import type { Asked } from "./asks.ts";

/** A runner that was held by another process, and goes on with this one. */
export interface HeldRunner {
  /** Of the one frame that takes it up. */
  readonly key: Buffer;
  /** The first number of a call that was not given yet. */
  readonly next: number;
  readonly asks: readonly Asked[];
}

export interface Held extends Omit<HeldRunner, "key"> {
  /** Calls that had not ended. */
  readonly going: ReadonlySet<number>;
}

export interface ClientParts {
  /** Gets what a command asks of the harness, if it may (sandbox/runner/ask.h), and gives the answer. */
  readonly onAsk?: ((asked: Buffer) => Promise<Buffer>) | undefined;
  readonly held?: HeldRunner | undefined;
}
