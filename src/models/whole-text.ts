/** Text in pieces: a character that a server cut in two comes with the piece that completes it. */
export class WholeText {
  #half = "";

  push(piece: string): string {
    if (this.#half === "" && !isHigh(piece.charCodeAt(piece.length - 1))) return piece.toWellFormed();
    const text = this.#half + piece;
    this.#half = isHigh(text.charCodeAt(text.length - 1)) ? text.slice(-1) : "";
    return text.slice(0, text.length - this.#half.length).toWellFormed();
  }

  /** A half that nothing completed. */
  end(): string {
    const left = this.#half.toWellFormed();
    this.#half = "";
    return left;
  }
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
