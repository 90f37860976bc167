import { readFence } from "./fences.ts";
import { opensHarmony, readHarmony, type Segment, strippedThought } from "./harmony.ts";
import { Items } from "./items.ts";
import type { OfferedTools } from "./names.ts";
import { insideCode, mayBegin } from "./places.ts";
import { announcedAsShown } from "./shown.ts";
import { hide, mayBeToken } from "./hidden.ts";
import { Quotation } from "./quotation.ts";
import { readBare } from "./weak.ts";
import { opensWrapped, readWrapped } from "./wrapped.ts";

const SPECIAL = /[\n`"“”«»<[{fAcat◁]/g;
const INDENT = /[ \t]*/y;

/**
 * Reads a reply from left to right, once. It stops where what comes next could still change what stands there, unless
 * the text is final, and goes on from there when more has come.
 */
export class Scanner {
  readonly items = new Items();
  text = "";
  /** Everything before is in the items. */
  at = 0;
  readonly #tools: OfferedTools;
  readonly #quotation = new Quotation();
  /** Where the line began, or the item before ended. */
  #edge = 0;
  /** The beginning of the line at `at`, or -1 inside of one. */
  #lineStart = 0;
  #final = false;

  constructor(tools: OfferedTools) {
    this.#tools = tools;
  }

  scan(final: boolean): void {
    this.#final = final;
    if (this.at === 0 && !this.#beginning()) return;
    while (this.at < this.text.length) if (!this.#step()) return;
  }

  #beginning(): boolean {
    const thought = strippedThought(this.text, this.#final);
    return thought === undefined || this.#segment(thought);
  }

  #step(): boolean {
    if (this.#lineStart >= 0) return this.#line();
    const { text, at } = this;
    const char = text[at] ?? "";
    if (char === "\n") return this.#newLine();
    if (this.#quotation.pass(text, at)) return this.#prose(this.#quotation.end);
    if (!this.#quotation.open) {
      const hidden = hide(text, at, { edge: this.#edge, final: this.#final, called: this.items.called });
      if (hidden !== undefined) return this.#hide(hidden);
      if (!this.#final && mayBeToken(text, at)) return false;
      if (char !== "{" && mayBegin(text, at, this.#edge)) {
        const done = this.#strong(false);
        if (done !== undefined) return done;
      }
    }
    return this.#prose(this.#nextSpecial(at + 1));
  }

  #nextSpecial(from: number): number {
    SPECIAL.lastIndex = from;
    return SPECIAL.exec(this.text)?.index ?? this.text.length;
  }

  #newLine(): boolean {
    this.#prose(this.at + 1);
    this.#lineStart = this.at;
    this.#edge = this.at;
    return true;
  }

  #line(): boolean {
    const { text } = this;
    const start = this.#lineStart;
    INDENT.lastIndex = this.at;
    const first = this.at + (INDENT.exec(text)?.[0].length ?? 0);
    const char = text[first];
    if (char === undefined && !this.#final) return false;
    if (char === undefined) return this.#prose(first);
    if (char === "\n" || char === "\r") this.#quotation.reset();
    const indent = text.slice(start, first);
    const deep = this.at === start && (indent.length > 3 || indent.includes("\t"));
    if (char === "`" || char === "~") {
      const fence = this.#fence(first, deep);
      if (fence !== undefined) return fence;
    }
    if (this.at === start && (char === ">" || deep)) return this.#wholeLine();
    this.#prose(first);
    if (!this.#final && !this.#quotation.open && mayBeToken(text, first)) return false;
    if (char === "{" || char === "[") {
      const done = this.#weak();
      if (done !== undefined) return done;
    }
    const done = this.#quotation.open ? undefined : this.#strong(true);
    if (done !== undefined) return done;
    this.#lineStart = -1;
    return true;
  }

  #wholeLine(): boolean {
    const end = this.text.indexOf("\n", this.at);
    if (end === -1 && !this.#final) return false;
    this.#prose(end === -1 ? this.text.length : end);
    this.#lineStart = -1;
    return true;
  }

  #fence(first: number, deep: boolean): boolean | undefined {
    const read = readFence(this.text, first, this.#tools, this.#final);
    if (read === undefined) return undefined;
    if (read.kind === "more") return false;
    if (read.kind === "text") return this.#prose(read.end);
    if (deep || this.#quotation.open || announcedAsShown(this.text, first, true))
      return this.#prose(read.end);
    return this.#calls(read, true);
  }

  #weak(): boolean | undefined {
    const { text, at } = this;
    const read = readBare(text, at, this.#tools);
    if (read.kind === "more") return false;
    const open =
      read.end >= text.length || (read.kind === "calls" ? read.cut : mayGrow(text.slice(at, at + 200)));
    if (!this.#final && open) return false;
    if (read.kind === "text") return read.end > at + 1 ? this.#prose(read.end) : undefined;
    const lone =
      text[at - 1] === ";" || /^[ \t\r;]*(?:$|\n|[<[{;])/.test(text.slice(read.end, read.end + 80));
    if (!lone || this.#quotation.open || insideCode(text, at, 0) || announcedAsShown(text, at, true))
      return this.#prose(read.end);
    return this.#calls(read, true);
  }

  /** Undefined when no family's token stands here. */
  #strong(lineStart: boolean): boolean | undefined {
    const { text, at } = this;
    if (opensHarmony(text, at)) return this.#segment(readHarmony(text, at, this.#final));
    if (!opensWrapped(text, at, lineStart)) return undefined;
    const read = readWrapped(text, at, this.#final);
    const shown = read.kind === "calls" && announcedAsShown(text, at, false);
    return this.#segment(shown && (this.#final || !read.cut) ? { kind: "text", end: read.end } : read);
  }

  #segment(read: Segment): boolean {
    if (read.kind === "more") return false;
    if (read.kind === "text") return this.#prose(Math.max(read.end, this.at + 1));
    if (read.kind === "calls") return this.#calls(read, false);
    this.items.add({ kind: "hidden", from: this.at, to: read.from });
    if (read.shown) this.items.prose(read.from, read.to);
    return this.#past(read.end);
  }

  #calls(read: Extract<Segment, { kind: "calls" }>, weak: boolean): boolean {
    if (!this.#final && (read.cut || read.end >= this.text.length)) return false;
    this.items.add({ kind: "calls", from: this.at, to: read.end, found: read.found, weak });
    return this.#past(read.end);
  }

  #hide(hidden: { readonly end: number; readonly kind: "hidden" | "thought" | "more" | "shown" }): boolean {
    if (hidden.kind === "more") return false;
    if (hidden.kind === "shown") return this.#prose(hidden.end);
    if (hidden.kind === "thought") this.items.forget();
    this.items.add({ kind: "hidden", from: this.at, to: hidden.end });
    return this.#past(hidden.end);
  }

  #past(end: number): boolean {
    this.at = Math.min(end, this.text.length);
    this.#edge = this.at;
    this.#lineStart = this.at;
    this.#quotation.reset();
    return true;
  }

  #prose(end: number): boolean {
    this.items.prose(this.at, end);
    this.at = end;
    if (this.#lineStart >= 0 && end > this.#lineStart && this.text[end - 1] !== "\n") this.#lineStart = -1;
    return true;
  }
}

/** A beginning that may still become a bare call. */
const mayGrow = (rest: string): boolean => /^[[{]\s*(?:\{\s*)?["']?[\w.-]*["']?\s*$/.test(rest);
