import { createHash } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeFolder } from "./folders.ts";

/** The result of `work`, or a rejection once `signal` is aborted. The work itself goes on: the caller has to end it. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const leave = (): void => reject(signal.reason as Error);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** A wait is counted in this many parts. */
const PARTS = 8;

/**
 * Calls once this process has waited that long; the returned function cancels it. On a machine with too much to do, or
 * while code is loaded, nobody looks at what has arrived, and a plain timer would be the first thing to run afterwards:
 * so each part of the time begins only when the one before it was noticed, and what has arrived is read before the call.
 */
export function afterWaiting(ms: number, call: () => void, { unref = false } = {}): () => void {
  let left = PARTS;
  let timer: NodeJS.Timeout | undefined;
  let last: NodeJS.Immediate | undefined;
  const next = (): void => {
    timer = setTimeout(passed, ms / PARTS);
    if (unref) timer.unref();
  };
  const passed = (): void => {
    left -= 1;
    if (left > 0) next();
    else last = setImmediate(call);
  };
  next();
  return () => {
    clearTimeout(timer);
    clearImmediate(last);
  };
}

/** Like `AbortSignal.timeout`, but counts like `afterWaiting`: for the time that a server may take to answer. */
export function waitingTimeout(ms: number): AbortSignal {
  const late = new AbortController();
  const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
  afterWaiting(ms, () => late.abort(reason), { unref: true });
  return late.signal;
}

/**
 * How long a server wants to be left alone, shared by all processes with the same state folder: one file per server
 * that contains a point in time, always complete or absent. This is a courtesy and no lock: if the file cannot be
 * written or read, only this process waits, and of two concurrent writes the later one remains.
 */
export class SharedWait {
  readonly #file: string;
  readonly #longestMs: number;
  readonly #now: () => number;
  #own = 0;

  /** A time more than `longestMs` ahead means that a clock was set back, and is ignored. */
  constructor(stateDir: string, server: string, longestMs: number, now: () => number = Date.now) {
    const name = createHash("sha256").update(server).digest("hex").slice(0, 16);
    this.#file = path.join(stateDir, "waits", name);
    this.#longestMs = longestMs;
    this.#now = now;
  }

  readonly pending = (): number => {
    const left = Math.max(this.#own, this.#storedTime()) - this.#now();
    return left > 0 && left <= this.#longestMs ? left : 0;
  };

  readonly hold = (ms: number): void => {
    const until = Math.ceil(this.#now() + Math.min(ms, this.#longestMs));
    if (this.pending() >= until - this.#now()) return;
    this.#own = until;
    const written = `${this.#file}.${process.pid}`;
    try {
      makeFolder(path.dirname(this.#file));
      writeFileSync(written, String(until), { mode: 0o600 });
      renameSync(written, this.#file);
    } catch {
      removeQuietly(written);
    }
  };

  #storedTime(): number {
    try {
      const text = readFileSync(this.#file, "utf8");
      return /^\d{1,16}$/.test(text) ? Number(text) : 0;
    } catch {
      return 0;
    }
  }
}

function removeQuietly(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // Its parent may not be a folder.
  }
}
