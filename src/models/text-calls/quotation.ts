/** Inline code and quotation marks of a paragraph. While one is open, nothing in it is a call. */
export class Quotation {
  end = 0;
  #ticks = 0;
  #quoted = false;

  get open(): boolean {
    return this.#ticks > 0 || this.#quoted;
  }

  reset(): void {
    this.#ticks = 0;
    this.#quoted = false;
  }

  /** Whether a mark stands here; `end` is behind it. */
  pass(text: string, at: number): boolean {
    const char = text[at];
    this.end = at + 1;
    if (char === "`") {
      while (text[this.end] === "`") this.end += 1;
      const run = this.end - at;
      if (this.#ticks === 0) this.#ticks = run;
      else if (this.#ticks === run) this.#ticks = 0;
      return true;
    }
    if (this.#ticks > 0) return false;
    if (char === "“" || char === "«") this.#quoted = true;
    else if (char === "”" || char === "»") this.#quoted = false;
    else if (char === '"')
      this.#quoted = !this.#quoted && (at === 0 || /[\s([{:,=—-]/.test(text[at - 1] ?? " "));
    else return false;
    return true;
  }
}
