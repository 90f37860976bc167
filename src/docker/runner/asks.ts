import { setTimeout as sleep } from "node:timers/promises";
import { type Frame, MAX_PAYLOAD } from "./frames.ts";

/** What a command asks of the harness, and waits for. */
export type Asked = Pick<Frame, "call" | "payload">;

type Send = (call: number, answer: Buffer) => void;

const EMPTY = Buffer.alloc(0);
const POLL_MS = 20;
/** That come while the runner is held: more than can wait for an answer. */
const MOST_LATE = 64;

/** Answers what commands ask (sandbox/runner/ask.h), until the runner is held. */
export class Asks {
  readonly #onAsk: ((asked: Buffer) => Promise<Buffer>) | undefined;
  readonly #send: Send;
  #open = 0;
  #late: Asked[] | undefined;

  constructor(onAsk: ((asked: Buffer) => Promise<Buffer>) | undefined, send: Send) {
    this.#onAsk = onAsk;
    this.#send = send;
  }

  get held(): boolean {
    return this.#late !== undefined;
  }

  take({ call, payload }: Asked): void {
    if (this.#late === undefined) void this.#answer(call, payload);
    else if (this.#late.length < MOST_LATE) this.#late.push({ call, payload });
  }

  /** Once what is open is answered. */
  async idle(): Promise<void> {
    while (this.#open > 0) await sleep(POLL_MS);
  }

  /** From now on nothing is answered: it comes too late, and into this list. */
  hold(): readonly Asked[] {
    return (this.#late ??= []);
  }

  async #answer(call: number, payload: Buffer): Promise<void> {
    this.#open += 1;
    const answer = (await this.#onAsk?.(payload)) ?? EMPTY;
    this.#open -= 1;
    this.#send(call, answer.subarray(0, MAX_PAYLOAD));
  }
}
