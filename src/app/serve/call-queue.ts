/** Calls that wait for their turn; whoever sends more is told so. */
const MAX_WAITING = 64;

interface Waiting {
  readonly concurrent: boolean;
  readonly begin: () => void;
}

/**
 * The order in which calls from outside are run, as the calls of one reply are: those that only look side by side, every
 * other one alone, all in the order in which they came.
 */
export class CallQueue {
  readonly #waiting: Waiting[] = [];
  #concurrent = 0;
  #alone = false;

  get full(): boolean {
    return this.#waiting.length >= MAX_WAITING;
  }

  /** "cancelled": it was given up before its turn. */
  async run<T>(concurrent: boolean, signal: AbortSignal, work: () => Promise<T>): Promise<T | "cancelled"> {
    if (!(await this.#turn(concurrent, signal))) return "cancelled";
    try {
      return await work();
    } finally {
      if (concurrent) this.#concurrent -= 1;
      else this.#alone = false;
      this.#next();
    }
  }

  /** Resolves when nothing that came before runs or waits any more. */
  async idle(): Promise<void> {
    await this.run(false, new AbortController().signal, () => Promise.resolve());
  }

  #turn(concurrent: boolean, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const leave = (): void => {
        const at = this.#waiting.indexOf(own);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        resolve(false);
        this.#next();
      };
      const own: Waiting = {
        concurrent,
        begin: () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        },
      };
      this.#waiting.push(own);
      signal.addEventListener("abort", leave, { once: true });
      this.#next();
    });
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || this.#alone || (!first.concurrent && this.#concurrent > 0)) return;
      this.#waiting.shift();
      if (first.concurrent) this.#concurrent += 1;
      else this.#alone = true;
      first.begin();
    }
  }
}
