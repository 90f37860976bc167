import type { Output } from "./output.ts";

export interface Clock {
  now(): number;
  /** Calls `tick` repeatedly until the returned function is called. */
  every(ms: number, tick: () => void): () => void;
}

/** Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  every: (ms, tick) => {
    const timer = setInterval(tick, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

/** Writes of one frame that go out at once; further ones of it go out together at its end. */
const AT_ONCE = 20;
const FRAME_MS = 250;

interface Bounds {
  /** Characters that are kept for a reader who does not read; what comes then is left out. */
  readonly room: number;
  /** What is written where something was left out. */
  readonly leftOut: (texts: number) => string;
}

/** Of one text: its own room, as a part of all of it. */
interface Wish {
  readonly room?: number;
  readonly needed?: boolean;
}

/**
 * Writes to an output without ever waiting for it. Bursts are written together, so the number of writes depends on time and
 * not on events; while the reader is behind, texts wait in bounded room, and what was left out is told once it reads again.
 */
export class PacedWriter {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  #held: string[] = [];
  #size = 0;
  #leftOut = 0;
  #frame = Number.NEGATIVE_INFINITY;
  #writes = 0;
  #paused = 0;
  #stopWaiting: (() => void) | undefined;
  #stopFrame: (() => void) | undefined;

  constructor(stream: Output, clock: Clock, bounds: Bounds) {
    this.#stream = stream;
    this.#clock = clock;
    this.#bounds = bounds;
  }

  /** Something waits: for its frame, for the reader, or for the end of a pause. */
  get waits(): boolean {
    return this.#paused > 0 || this.#held.length > 0 || this.#stopWaiting !== undefined;
  }

  /** `needed`: it is kept whatever room there is. */
  write(text: string, { room = this.#bounds.room, needed = false }: Wish = {}): void {
    if (text === "") return;
    if (!this.waits && this.#inFrame() < AT_ONCE) return this.#put(text);
    if (!needed && this.#size + text.length > room) this.#leftOut += 1;
    else {
      this.#tellLeftOut();
      this.#held.push(text);
      this.#size += text.length;
    }
    this.#stopFrame ??= this.#clock.every(FRAME_MS, () => this.#next());
  }

  /** Nothing is written until the returned function is called. */
  pause(): () => void {
    this.#paused += 1;
    return () => {
      this.#paused -= 1;
      this.#next();
    };
  }

  /** Writes all that waits, as the last of it: nothing comes after it that could wait for a reader. */
  end(): void {
    this.#paused = 0;
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#flush();
  }

  #inFrame(): number {
    const now = this.#clock.now();
    if (now - this.#frame >= FRAME_MS) {
      this.#frame = now;
      this.#writes = 0;
    }
    return this.#writes;
  }

  #next(): void {
    if (this.#paused === 0 && this.#stopWaiting === undefined) this.#flush();
  }

  #flush(): void {
    this.#stopFrame?.();
    this.#stopFrame = undefined;
    this.#tellLeftOut();
    const text = this.#held.join("");
    this.#held = [];
    this.#size = 0;
    if (text !== "") this.#put(text);
  }

  #tellLeftOut(): void {
    if (this.#leftOut === 0) return;
    this.#held.push(this.#bounds.leftOut(this.#leftOut));
    this.#leftOut = 0;
  }

  #put(text: string): void {
    this.#inFrame();
    this.#writes += 1;
    if (this.#stream.write(text)) return;
    this.#stopWaiting = this.#stream.on("drain", () => {
      this.#stopWaiting?.();
      this.#stopWaiting = undefined;
      this.#next();
    });
  }
}
