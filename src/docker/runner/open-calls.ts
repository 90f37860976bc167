import type { HarnessError } from "../../core/errors.ts";
import type { Frame } from "./frames.ts";

interface Pending {
  readonly onFrame: (frame: Frame) => void;
  readonly onLost: (lost: HarnessError) => void;
}

/** The calls to a box that have not ended, by their numbers. */
export class OpenCalls {
  readonly #pending = new Map<number, Pending>();
  #next: number;
  #lost: HarnessError | undefined;

  constructor(next: number) {
    this.#next = next;
  }

  get lost(): HarnessError | undefined {
    return this.#lost;
  }

  /** The first number that was not given yet. */
  get next(): number {
    return this.#next;
  }

  get numbers(): ReadonlySet<number> {
    return new Set(this.#pending.keys());
  }

  number(): number {
    const call = this.#next;
    this.#next = call === 0xffff_ffff ? 1 : call + 1;
    return call;
  }

  open<T>(call: number, onFrame: (frame: Frame, done: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) return reject(this.#lost);
      const done = (value: T): void => {
        this.#pending.delete(call);
        resolve(value);
      };
      this.#pending.set(call, { onFrame: (frame) => onFrame(frame, done), onLost: reject });
    });
  }

  take(frame: Frame): void {
    this.#pending.get(frame.call)?.onFrame(frame);
  }

  lose(lost: HarnessError): void {
    this.#lost = lost;
    for (const { onLost } of this.#pending.values()) onLost(lost);
    this.#pending.clear();
  }
}
