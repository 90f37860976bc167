/**
 * When sessions were changed. Two of one store never share a moment, so that the last one is known; one session does
 * not run ahead of the time however quickly it changes.
 */
export class Clock {
  readonly #now: () => number;
  #last = { id: "", at: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): number {
    return this.#now();
  }

  stamp(id: string): number {
    const last = this.#last;
    const earliest = last.id === id ? last.at : last.at + 1;
    this.#last = { id, at: Math.max(earliest, this.#now()) };
    return this.#last.at;
  }
}
