/** What comes from a keyboard, in pieces that belong to one reader each. */
export type Piece =
  /** At most one line end, and that last. */
  | { readonly kind: "keys"; readonly text: string }
  /** Between the marks that terminals put around it, however many lines. */
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "suspend" };

const START = "\u001B[200~";
const END = "\u001B[201~";
const NEXT = /\u0003|\u001A|\r\n|\r|\n/;

/** Parts the text of a terminal in raw mode. A mark may come in several chunks. */
export class KeyPieces {
  #held = "";
  #inPaste = false;

  push(chunk: string): readonly Piece[] {
    let text = this.#held + chunk;
    this.#held = "";
    const pieces: Piece[] = [];
    for (;;) {
      const mark = this.#inPaste ? END : START;
      const at = text.indexOf(mark);
      if (at === -1) break;
      pieces.push(...this.#before(text.slice(0, at)));
      text = text.slice(at + mark.length);
      this.#inPaste = !this.#inPaste;
    }
    const whole = text.length - this.#openEnd(text);
    this.#held = text.slice(whole);
    if (this.#inPaste) this.#held = text;
    else pieces.push(...keysOf(text.slice(0, whole)));
    return pieces;
  }

  #before(text: string): readonly Piece[] {
    if (!this.#inPaste) return keysOf(text);
    return [{ kind: "paste", text: text.replaceAll(/\r\n?/g, "\n") }];
  }

  /** How much of the end may be the beginning of a mark. The escape key alone is none: it would wait for the next. */
  #openEnd(text: string): number {
    for (let length = START.length - 1; length > 1; length -= 1)
      if (text.endsWith(START.slice(0, length))) return length;
    return 0;
  }
}

function keysOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let rest = text;
  while (rest !== "") {
    const next = NEXT.exec(rest);
    const end = next === null ? rest.length : next.index;
    const mark = next?.[0] ?? "";
    const isLine = mark.startsWith("\r") || mark === "\n";
    const keys = rest.slice(0, end) + (isLine ? "\r" : "");
    if (keys !== "") pieces.push({ kind: "keys", text: keys });
    if (mark === "\u0003") pieces.push({ kind: "interrupt" });
    if (mark === "\u001A") pieces.push({ kind: "suspend" });
    rest = rest.slice(end + mark.length);
  }
  return pieces;
}
