/** Two stretches of this length have to agree before anything is said of the rest. */
const STRETCH_MS = 1500;
const ALIKE = 2;

interface Mark {
  readonly done: number;
  readonly at: number;
}

/** How fast something goes on. What was done before the first look is not counted, nor what came before it went steadily. */
export class Pace {
  #mark: Mark | undefined;
  #rates: readonly number[] = [];

  /** `at` in milliseconds of any clock that only goes on. */
  take(done: number, at: number): void {
    this.#mark ??= { done, at };
    const since = at - this.#mark.at;
    if (since < STRETCH_MS) return;
    this.#rates = [...this.#rates.slice(-1), ((done - this.#mark.done) / since) * 1000];
    this.#mark = { done, at };
  }

  /** Null until it is steady. */
  get perSecond(): number | null {
    const [one = 0, other = 0] = this.#rates;
    const slower = Math.min(one, other);
    return slower > 0 && Math.max(one, other) <= slower * ALIKE ? (one + other) / 2 : null;
  }
}
