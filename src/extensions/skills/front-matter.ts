/**
 * The front matter of a skill or command: keys with values between two lines of `---`. Supports the YAML that such
 * files use at their top level: plain, quoted, literal and folded texts, also over several lines. Nested content (a
 * list, a map) is returned as written, and so is text that is an error in YAML but that people mean as words: `a: b:
 * c`, `[name]`. Anchors, tags and types mean nothing.
 */
export interface FrontMatter {
  /** In the order of the file. */
  readonly values: ReadonlyMap<string, string>;
  /** The text after the front matter. */
  readonly body: string;
}

const MAX_CHARACTERS = 16_384;
const MAX_LINES = 400;

/** A text without front matter is all body. Returns the reason if the front matter cannot be read. */
export function readFrontMatter(text: string): FrontMatter | string {
  const whole = text.replace(/^\uFEFF/, "");
  if (!/^---[ \t]*\r?\n/.test(whole)) return { values: new Map(), body: whole };
  const lines: string[] = [];
  let at = whole.indexOf("\n") + 1;
  for (;;) {
    const end = whole.indexOf("\n", at);
    const line = whole.slice(at, end === -1 ? undefined : end).replace(/\r$/, "");
    const isEnd = /^(?:---|\.\.\.)[ \t]*$/.test(line);
    if (isEnd) return withValues(lines, end === -1 ? "" : whole.slice(end + 1));
    if (end === -1) return "its front matter has no end: a line of --- is missing";
    lines.push(line);
    at = end + 1;
    if (lines.length > MAX_LINES || at > MAX_CHARACTERS) return "its front matter is too long";
  }
}

/** Keys begin at the start of their line; their names are those of programs, not of people. */
const KEY = /^(?:([A-Za-z_][\w.-]*)|"([\w.-]+)"|'([\w.-]+)')[ \t]*:(?:[ \t]+(.*)|)$/;

function withValues(lines: readonly string[], body: string): FrontMatter | string {
  const values = new Map<string, string>();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    at += 1;
    if (/^[ \t]*(?:#|$)/.test(line)) continue;
    const match = KEY.exec(line);
    if (match === null) return `line ${at + 1} of its front matter is not "key: value"`;
    const key = match[1] ?? match[2] ?? match[3] ?? "";
    if (values.has(key)) return `its front matter has ${key} twice`;
    const from = at;
    while (at < lines.length && isContinuation(lines[at] ?? "")) at += 1;
    values.set(key, valueOf((match[4] ?? "").trim(), lines.slice(from, at)));
  }
  return { values, body };
}

/** A line that belongs to the key above: indented, empty, or an item of a list. */
const isContinuation = (line: string): boolean => /^(?:[ \t]|-[ \t]|-?$)/.test(line);

const BLOCK = /^([|>])([+-]?)[1-9]?([+-]?)(?:[ \t]+#.*)?$/;

function valueOf(first: string, more: readonly string[]): string {
  const block = BLOCK.exec(first);
  if (block !== null) return blockText(more, block[1] === ">");
  const sign = first[0];
  if (sign === '"' || sign === "'") {
    const quoted = quotedText([first, ...more.map((line) => line.trim())], sign);
    if (quoted !== undefined) return quoted;
  }
  if (first === "" && more.some((line) => /^[ \t]*-(?:[ \t]|$)/.test(line))) return more.join("\n").trim();
  return folded([first, ...more].map(plain)).trim();
}

/** `#` starts a comment only after a blank, or at the start of the line. */
const plain = (line: string): string =>
  line
    .trim()
    .replace(/(?:^|[ \t])#.*$/, "")
    .trimEnd();

/** One line end becomes a blank; several become one fewer. */
function folded(lines: readonly string[]): string {
  let text = "";
  let empty = 0;
  for (const line of lines) {
    if (line === "") empty += 1;
    else {
      text += text === "" ? line : `${empty === 0 ? " " : "\n".repeat(empty)}${line}`;
      empty = 0;
    }
  }
  return text;
}

function blockText(given: readonly string[], folds: boolean): string {
  const indent = /^[ \t]*/.exec(given.find((line) => line.trim() !== "") ?? "")?.[0].length ?? 0;
  const lines = given.map((line) => (line.trim() === "" ? "" : line.slice(Math.min(indent, indentOf(line)))));
  return (folds ? foldedBlock(lines) : lines.join("\n")).trim();
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Like `folded`, but lines with further indentation stay as they are. */
function foldedBlock(lines: readonly string[]): string {
  let text = "";
  let empty = 0;
  let before = "";
  for (const line of lines) {
    if (line === "") {
      empty += 1;
      continue;
    }
    const kept = /^[ \t]/.test(line) || /^[ \t]/.test(before);
    if (text !== "") text += kept ? "\n".repeat(empty + 1) : empty === 0 ? " " : "\n".repeat(empty);
    text += line;
    before = line;
    empty = 0;
  }
  return text;
}

/** The meaning of a backslash with a letter; other letters stay as written. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "", e: "" };

/** Undefined if text follows the closing quote: then the quotes are part of the text. */
function quotedText(lines: readonly string[], sign: '"' | "'"): string | undefined {
  const text = folded(lines).slice(1);
  let found = "";
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (letter === sign && sign === "'" && text[at + 1] === "'") at += 1;
    else if (letter === sign) return /^[ \t]*(?:#.*)?$/s.test(text.slice(at + 1)) ? found : undefined;
    if (letter !== "\\" || sign === "'") {
      found += letter;
      continue;
    }
    const { read, length } = escapeAt(text, at + 1);
    found += read;
    at += length;
  }
  return undefined;
}

const CODE = /^(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8}))/;

function escapeAt(text: string, at: number): { readonly read: string; readonly length: number } {
  const match = CODE.exec(text.slice(at, at + 9));
  const code = Number.parseInt(match?.[1] ?? match?.[2] ?? match?.[3] ?? "", 16);
  if (match !== null && code <= 0x10ffff)
    return { read: String.fromCodePoint(code), length: match[0].length };
  const letter = text[at] ?? "";
  return { read: ESCAPES[letter] ?? letter, length: 1 };
}
