/** The next place of a pattern, found once however often it is asked for. */
export class Ahead {
  readonly #text: string;
  readonly #pattern: RegExp;
  #hit: RegExpExecArray | null = null;
  #from = -1;

  constructor(text: string, pattern: RegExp) {
    this.#text = text;
    this.#pattern = new RegExp(pattern.source, "g");
  }

  next(from: number): { readonly start: number; readonly end: number } {
    if (this.#from < 0 || from < this.#from || (this.#hit !== null && this.#hit.index < from)) {
      this.#pattern.lastIndex = from;
      this.#hit = this.#pattern.exec(this.#text);
      this.#from = from;
    }
    const start = this.#hit?.index ?? Number.POSITIVE_INFINITY;
    return { start, end: start + (this.#hit?.[0].length ?? 0) };
  }
}
