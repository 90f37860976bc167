import { CUT, type NotationCall, GARBLED, type NotationResult } from "./text-protocol.ts";
import { readLiteral, skipSpace } from "./literals.ts";

/** `<function=N>`, `<function name="N">`, `<invoke name="N">`, and DeepSeek's `<｜DSML｜invoke name="N">`. */
const HEAD = /<((?:antml:|｜DSML｜)?)(function|invoke)(?:=|\s+name=)\s*(["']?)([\w.:-]{1,80})\3\s*>/y;
const PARAMETER =
  /<(?:antml:|｜DSML｜)?parameter(?:=|\s+name=)\s*(["']?)([^"'<>\s]{1,120})\1(?:\s+string=["']?(true|false)["']?)?\s*>/y;
const CLOSER = /<\/(?:antml:|｜DSML｜)?(?:function|invoke)\s*>/y;
const PARAMETER_END = /<\/(?:antml:|｜DSML｜)?parameter\s*>/;
const NEXT = /<(?:antml:|｜DSML｜)?parameter(?:=|\s+name=)|<\/(?:antml:|｜DSML｜)?(?:function|invoke)\s*>/y;
const LONE_NEXT = /\n\s*(?:<parameter(?:=|\s+name=)|<\/(?:function|invoke)\s*>)/;
const CUT_PARAMETER = /<(?:antml:|｜DSML｜)?parameter(?:=|\s+name=)[^<>\n]{0,120}$/y;
const JSON_BODY = /\s*\{\s*(?:["'}]|$)/y;

export const beginsMarkup = (text: string, at: number): boolean => matches(HEAD, text, at);

function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** One call with its parameters in tags, or with JSON inside a function's tag. */
export function readMarkup(text: string, start: number): NotationResult {
  HEAD.lastIndex = start;
  const head = HEAD.exec(text);
  const name = head?.[4];
  if (head === null || name === undefined) return { kind: "text", end: start + 1 };
  const body = HEAD.lastIndex;
  if (matches(JSON_BODY, text, body)) return readJsonBody(text, body, name);
  return new Parameters(text, name, head[1] === "｜DSML｜").read(body);
}

function readJsonBody(text: string, start: number, name: string): NotationResult {
  const read = readLiteral(text, skipSpace(text, start));
  if (!read.ok) {
    const found = [{ name, args: {}, repaired: false, broken: read.cut ? CUT : GARBLED }];
    return { kind: "calls", found, end: read.cut ? text.length : read.at, cut: read.cut };
  }
  const at = skipSpace(text, read.end);
  const end = matches(CLOSER, text, at) ? CLOSER.lastIndex : read.end;
  const found = [{ name, args: read.value, repaired: read.repaired }];
  return { kind: "calls", found, end, cut: read.atEnd || at >= text.length };
}

class Parameters {
  readonly #text: string;
  readonly #name: string;
  readonly #dsml: boolean;
  readonly #args = new Map<string, unknown>();
  readonly #lone: NextMatch;
  readonly #closer: NextMatch;
  #repaired = false;

  constructor(text: string, name: string, dsml: boolean) {
    this.#text = text;
    this.#lone = new NextMatch(text, LONE_NEXT);
    this.#closer = new NextMatch(text, PARAMETER_END);
    this.#name = name;
    this.#dsml = dsml;
  }

  read(start: number): NotationResult {
    const text = this.#text;
    let at = start;
    for (;;) {
      at = skipSpace(text, at);
      if (matches(CLOSER, text, at)) return this.#calls(CLOSER.lastIndex, false);
      PARAMETER.lastIndex = at;
      const head = PARAMETER.exec(text);
      if (head === null) return this.#unclosed(at);
      const value = this.#value(PARAMETER.lastIndex);
      if (value === undefined) return this.#broken(CUT, text.length, true);
      const key = head[2] ?? "";
      if (this.#args.has(key)) return this.#broken(`the parameter ${key} is given twice`, value.end, false);
      this.#args.set(key, head[3] === "false" ? literal(value.text) : this.#trimmed(value.text));
      at = value.end;
    }
  }

  /**
   * Ends at the closer that is followed by another parameter or by the call's own closer. Without a closer, the value
   * ends where the next parameter or the call's closer begins a line: a repair, because the value might have continued.
   */
  #value(start: number): { text: string; end: number } | undefined {
    const text = this.#text;
    const lone = this.#dsml ? Number.POSITIVE_INFINITY : this.#lone.next(start).start;
    for (let hit = this.#closer.next(start); hit.start < lone; hit = this.#closer.next(hit.end)) {
      const next = skipSpace(text, hit.end);
      if (next >= text.length || matches(NEXT, text, next) || text.startsWith("</tool_call>", next))
        return { text: text.slice(start, hit.start), end: next };
    }
    if (lone > text.length) return undefined;
    this.#repaired = true;
    return { text: text.slice(start, lone + 1), end: lone };
  }

  #trimmed(value: string): string {
    if (this.#dsml) return value;
    return value.replaceAll("\r\n", "\n").replace(/^\n/, "").replace(/\n$/, "");
  }

  /** Every value is whole but the call's closer is missing: more parameters may be lost. */
  #unclosed(at: number): NotationResult {
    const cut =
      at >= this.#text.length ||
      "<parameter=</function></invoke><｜DSML｜parameter</｜DSML｜invoke>".includes(this.#text.slice(at)) ||
      matches(CUT_PARAMETER, this.#text, at);
    if (this.#args.size === 0) return cut ? this.#broken(CUT, at, true) : { kind: "text", end: at };
    if (cut && at < this.#text.length) return this.#broken(CUT, this.#text.length, true);
    if (!cut && !this.#text.startsWith("</", at)) return this.#broken(GARBLED, at, false);
    this.#repaired = true;
    return this.#calls(at, cut);
  }

  #calls(end: number, cut: boolean): NotationResult {
    const found: NotationCall[] = [
      { name: this.#name, args: Object.fromEntries(this.#args), repaired: this.#repaired },
    ];
    return { kind: "calls", found, end, cut: cut || end >= this.#text.length };
  }

  #broken(reason: string, end: number, cut: boolean): NotationResult {
    return {
      kind: "calls",
      found: [{ name: this.#name, args: {}, repaired: false, broken: reason }],
      end,
      cut,
    };
  }
}

/** A value that is marked as not a string. */
function literal(written: string): unknown {
  const read = readLiteral(written, 0);
  return read.ok && !read.repaired && written.slice(read.end).trim() === "" ? read.value : written;
}

/** The next match of a pattern, searched for only once no matter how often it is requested. */
class NextMatch {
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

/** A reply as a sequence of prose, hidden text, and calls, some of which may turn out to be only shown. */
export type ReplyItem =
  | { readonly kind: "prose"; readonly from: number; to: number }
  | { readonly kind: "hidden"; readonly from: number; readonly to: number }
  | {
      readonly kind: "calls";
      readonly from: number;
      readonly to: number;
      readonly found: readonly NotationCall[];
      /** Only its shape marks it as a call, so it must end the reply. */
      readonly weak: boolean;
    };

export class Items {
  readonly list: ReplyItem[] = [];
  /** A call came before: if a tool's answer follows, the model invented it. */
  called = false;

  prose(from: number, to: number): void {
    if (from >= to) return;
    const last = this.list.at(-1);
    if (last?.kind === "prose" && last.to === from) last.to = to;
    else this.list.push({ kind: "prose", from, to });
  }

  add(item: ReplyItem): void {
    if (item.kind === "calls") this.called = true;
    this.list.push(item);
  }

  /** Everything so far was a thought. */
  forget(): void {
    this.list.length = 0;
    this.called = false;
  }
}
