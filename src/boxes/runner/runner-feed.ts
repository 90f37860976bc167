import { setTimeout as sleep } from "node:timers/promises";
import { type Frame, MAX_PAYLOAD } from "./runner-frames.ts";

const PIECE = 64 * 1024;

/** Sends input piece by piece. Stops quietly if the call ends before its input; input that fails counts as ended. */
export async function feed(
  input: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  credit: CreditWindow,
  { send, end }: { readonly send: (piece: Buffer) => void; readonly end: () => void },
): Promise<void> {
  try {
    for await (const chunk of input)
      for (let at = 0; at < chunk.length; at += PIECE) {
        const piece = Buffer.from(chunk.subarray(at, at + PIECE));
        if (!(await credit.take(piece.length))) return;
        send(piece);
      }
  } catch {
    // The provider of the input knows of the failure.
  }
  end();
}

/** How many bytes of input may be in transit before the runner has taken them. */
export interface CreditWindow {
  /** Waits until this many bytes may be sent; false if sending is no longer of use. */
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

/** A request from a command to the harness; the command waits for the answer. */
export type CommandRequest = Pick<Frame, "call" | "payload">;

type Send = (call: number, answer: Buffer) => void;

const EMPTY = Buffer.alloc(0);
const POLL_MS = 20;
/** The most requests kept while the runner is held: more than can wait for an answer. */
const MAX_LATE = 64;

/** Answers the requests of commands (sandbox/runner/ask.h) until the runner is held. */
export class CommandRequests {
  readonly #onAsk: ((request: Buffer) => Promise<Buffer>) | undefined;
  readonly #send: Send;
  #open = 0;
  #late: CommandRequest[] | undefined;

  constructor(onAsk: ((request: Buffer) => Promise<Buffer>) | undefined, send: Send) {
    this.#onAsk = onAsk;
    this.#send = send;
  }

  get held(): boolean {
    return this.#late !== undefined;
  }

  take({ call, payload }: CommandRequest): void {
    if (this.#late === undefined) void this.#answer(call, payload);
    else if (this.#late.length < MAX_LATE) this.#late.push({ call, payload });
  }

  /** Resolves once all open requests are answered. */
  async idle(): Promise<void> {
    while (this.#open > 0) await sleep(POLL_MS);
  }

  /** From now on no request is answered: late requests go into this list. */
  hold(): readonly CommandRequest[] {
    return (this.#late ??= []);
  }

  async #answer(call: number, payload: Buffer): Promise<void> {
    this.#open += 1;
    const answer = (await this.#onAsk?.(payload)) ?? EMPTY;
    this.#open -= 1;
    this.#send(call, answer.subarray(0, MAX_PAYLOAD));
  }
}
