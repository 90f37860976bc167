/** The greatest scores of any number of offers, with what each was offered for. Smallest first inside: a heap. */
export class Greatest {
  readonly #limit: number;
  readonly #scores: number[] = [];
  readonly #items: number[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What is not above this is not kept. */
  floor = Number.NEGATIVE_INFINITY;

  offer(score: number, item: number): void {
    if (!(score > this.floor)) return;
    if (this.#scores.length < this.#limit) this.#rise(score, item);
    else this.#sink(score, item);
    if (this.#scores.length === this.#limit) this.floor = this.#scores[0] ?? this.floor;
  }

  /** In no order. */
  items(): readonly number[] {
    return this.#items;
  }

  #rise(score: number, item: number): void {
    let at = this.#scores.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#scoreAt(above) <= score) break;
      this.#move(above, at);
      at = above;
    }
    this.#set(at, score, item);
  }

  /** Instead of the smallest. */
  #sink(score: number, item: number): void {
    const size = this.#scores.length;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && this.#scoreAt(below + 1) < this.#scoreAt(below)) below += 1;
      if (this.#scoreAt(below) >= score) break;
      this.#move(below, at);
      at = below;
    }
    this.#set(at, score, item);
  }

  readonly #scoreAt = (at: number): number => this.#scores[at] as number;

  #move(from: number, to: number): void {
    this.#set(to, this.#scoreAt(from), this.#items[from] as number);
  }

  #set(at: number, score: number, item: number): void {
    this.#scores[at] = score;
    this.#items[at] = item;
  }
}
