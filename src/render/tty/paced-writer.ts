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

/** Number of writes in a frame that go out at once; further ones are written together at the end of the frame. */
const AT_ONCE = 20;
const FRAME_MS = 250;

interface Bounds {
  /** Characters kept for a slow reader; further texts are dropped. */
  readonly room: number;
  /** The text that replaces what was dropped. */
  readonly leftOut: (texts: number) => string;
}

/** Options for one text: its own bound within the shared room. */
interface WriteOptions {
  readonly room?: number;
  readonly needed?: boolean;
}

/**
 * Writes to an output without ever waiting for it. Bursts are combined, so the number of writes depends on time, not on
 * events. While the reader is behind, texts wait within a bounded room; the number of dropped texts is reported once it
 * reads again.
 */
export class PacedWriter {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  #held: string[] = [];
  #size = 0;
  #dropped = 0;
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

  /** Text waits for its frame, for the reader, or for the end of a pause. */
  get waits(): boolean {
    return this.#paused > 0 || this.#held.length > 0 || this.#stopWaiting !== undefined;
  }

  /** `needed`: the text is kept even if there is no room. */
  write(text: string, { room = this.#bounds.room, needed = false }: WriteOptions = {}): void {
    if (text === "") return;
    if (!this.waits && this.#writesInFrame() < AT_ONCE) return this.#put(text);
    if (!needed && this.#size + text.length > room) this.#dropped += 1;
    else {
      this.#reportDropped();
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

  /** Writes everything that waits. This has to be the last call, because nothing waits for the reader any more. */
  end(): void {
    this.#paused = 0;
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#flush();
  }

  #writesInFrame(): number {
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
    this.#reportDropped();
    const text = this.#held.join("");
    this.#held = [];
    this.#size = 0;
    if (text !== "") this.#put(text);
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    this.#held.push(this.#bounds.leftOut(this.#dropped));
    this.#dropped = 0;
  }

  #put(text: string): void {
    this.#writesInFrame();
    this.#writes += 1;
    if (this.#stream.write(text)) return;
    this.#stopWaiting = this.#stream.on("drain", () => {
      this.#stopWaiting?.();
      this.#stopWaiting = undefined;
      this.#next();
    });
  }
}
