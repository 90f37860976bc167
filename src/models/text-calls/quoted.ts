/** A string literal as it stands in a text. */
export type Quoted =
  | { readonly value: string; readonly end: number; readonly repaired: boolean }
  | { readonly value: undefined; readonly at: number; readonly cut: boolean };

const PLAIN: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const CLOSED = /[,:}\])\n\r<`]|$/y;

/**
 * Reads the string that begins at `start`. Raw newlines are kept; in Python an unknown escape is itself, in JSON it is a
 * repair, and so is a quote inside the string that nothing escapes.
 */
export function readQuoted(text: string, start: number, python: boolean): Quoted {
  const quote = text[start] ?? "";
  const triple = text.startsWith(quote.repeat(3), start);
  if (triple) return readTriple(text, start, quote);
  const parts: string[] = [];
  let [from, at, repaired] = [start + 1, start + 1, false];
  for (;;) {
    const char = text[at];
    if (char === undefined) return { value: undefined, at, cut: true };
    if (char === quote) {
      if (python || closes(text, at + 1)) {
        parts.push(asWritten(text.slice(from, at)));
        return { value: parts.join(""), end: at + 1, repaired };
      }
      repaired = true;
    }
    if (char !== "\\") {
      at += 1;
      continue;
    }
    parts.push(asWritten(text.slice(from, at)));
    const escape = readEscape(text, at, python || quote === "'");
    if (escape === undefined) return { value: undefined, at, cut: at + 10 > text.length };
    if (escape.invented) repaired = true;
    parts.push(escape.value);
    at = escape.end;
    from = at;
  }
}

/** Line ends of the reply itself; those that an escape names stay what they are. */
const asWritten = (raw: string): string => raw.replaceAll("\r\n", "\n");

/** A closing quote is followed by what may follow a string, or the line ends. */
function closes(text: string, after: number): boolean {
  let at = after;
  while (text[at] === " " || text[at] === "\t") at += 1;
  CLOSED.lastIndex = at;
  return CLOSED.test(text);
}

function readTriple(text: string, start: number, quote: string): Quoted {
  const end = text.indexOf(quote.repeat(3), start + 3);
  if (end === -1) return { value: undefined, at: text.length, cut: true };
  const raw = text.slice(start + 3, end);
  if (!raw.includes("\\")) return { value: asWritten(raw), end: end + 3, repaired: false };
  const parts: string[] = [];
  for (let at = 0; at < raw.length;) {
    const next = raw.indexOf("\\", at);
    parts.push(asWritten(raw.slice(at, next === -1 ? raw.length : next)));
    if (next === -1) break;
    const escape = readEscape(raw, next, true);
    if (escape === undefined) return { value: undefined, at: start, cut: false };
    parts.push(escape.value);
    at = escape.end;
  }
  return { value: parts.join(""), end: end + 3, repaired: false };
}

interface Escape {
  readonly value: string;
  readonly end: number;
  readonly invented: boolean;
}

function readEscape(text: string, at: number, python: boolean): Escape | undefined {
  const char = text[at + 1];
  if (char === undefined) return undefined;
  const plain = python && char === "/" ? undefined : PLAIN[char];
  if (plain !== undefined) return { value: plain, end: at + 2, invented: false };
  const digits = char === "u" ? 4 : python ? (PYTHON_DIGITS[char] ?? 0) : 0;
  if (digits > 0) return readCode(text, at + 2, digits);
  if (python && char === "\n") return { value: "", end: at + 2, invented: false };
  return { value: `\\${char}`, end: at + 2, invented: !python };
}

const PYTHON_DIGITS: Readonly<Record<string, number>> = { x: 2, U: 8 };

function readCode(text: string, from: number, digits: number): Escape | undefined {
  const hex = text.slice(from, from + digits);
  if (!/^[0-9a-fA-F]+$/.test(hex) || hex.length < digits) return undefined;
  const code = Number.parseInt(hex, 16);
  if (code > 0x10_ff_ff) return undefined;
  const value = digits === 4 ? String.fromCharCode(code) : String.fromCodePoint(code);
  return { value, end: from + digits, invented: false };
}
