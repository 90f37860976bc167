import { compound, functionNamed } from "./compounds.ts";
import {
  AMPERSAND,
  BACKSLASH,
  BACKTICK,
  BAR,
  BRACKET,
  BREAK,
  classOf,
  CLOSE,
  Cursor,
  DOLLAR,
  DOUBLE,
  EQUALS,
  type Expansion,
  type Grammar,
  GREATER,
  isName,
  isNameStart,
  isReserved,
  LESS,
  MINUS,
  nested,
  NEWLINE,
  OPEN,
  PLUS,
  reserved,
  SEMICOLON,
} from "./cursor.ts";
import { dollar } from "./expansions.ts";
import { newlines } from "./quotes.ts";
import { noJoin, readRedirect } from "./reader-redirects.ts";
import type { Assignment, List, Node, ShellReading, Redirect, Word } from "./shell-syntax.ts";
import { oneWord, readWord } from "./words.ts";

/** Reserved words that cannot start a command. */
const CLOSING: ReadonlySet<string> = new Set(["then", "elif", "else", "fi", "do", "done", "esac", "}"]);

const atBar = (c: Cursor): boolean => c.peek() === BAR && c.peek(1) !== BAR;

const negate = (body: Node): Node => ({
  kind: "compound",
  what: "not",
  span: body.span,
  name: null,
  words: null,
  bodies: [body],
  redirects: [],
});

const GRAMMAR: Grammar = { script, list, dollar, backtick };

/**
 * Reads shell text as `bash -c` does without options and aliases. Anything uncertain is an error and ends the reading; the
 * tree holds what was read before it. Never throws.
 */
export function readOwn(text: string): ShellReading {
  const c = new Cursor(text, GRAMMAR, null);
  const tree = script(c, 0);
  if (c.awaited.length > 0) c.fail("a here-document has no body");
  return { tree, errors: c.problem === null ? [] : [c.problem] };
}

/**
 * Reads commands until something that cannot start one: a closing parenthesis, `;;`, a closing reserved word, the
 * end.
 */
function list(c: Cursor): List {
  const items: Item[] = [];
  newlines(c);
  const start = c.pos;
  while (!atListEnd(c)) {
    const node = pipeline(c);
    if (node === null) break;
    const operator = separator(c);
    items.push({ node, then: operator ?? ";" });
    if (operator === null) break;
    if (operator === "&&" || operator === "||") {
      newlines(c);
      if (atListEnd(c)) c.fail("a command is missing");
    }
  }
  const last = items.at(-1)?.node.span[1] ?? start;
  return { kind: "list", span: c.fixed ?? [Math.min(start, last), last], items };
}

type Item = List["items"][number];

function atListEnd(c: Cursor): boolean {
  const code = c.peek();
  if (code === -1 || code === CLOSE || code === SEMICOLON) return true;
  const word = reserved(c);
  return word !== "" && CLOSING.has(word);
}

/** Reads the separator between two commands; null where no further command may follow. */
function separator(c: Cursor): Item["then"] | null {
  switch (c.peek()) {
    case NEWLINE:
      newlines(c);
      return ";";
    case AMPERSAND:
      return operator(c, c.peek(1) === AMPERSAND ? "&&" : "&");
    case BAR:
      return operator(c, "||");
    case SEMICOLON:
      return c.peek(1) === SEMICOLON || c.peek(1) === AMPERSAND ? null : operator(c, ";");
    case -1:
    case CLOSE:
      return null;
    default:
      c.fail("an operator is missing");
      return null;
  }
}

function operator(c: Cursor, written: Item["then"]): Item["then"] {
  c.pos += written.length;
  noJoin(c);
  newlines(c);
  return written;
}

/** Reads a pipeline with its prefixes; null where a command is missing. */
function pipeline(c: Cursor): Node | null {
  const start = c.pos;
  const negated = prefixes(c);
  const first = command(c);
  if (first === null) return null;
  if (!atBar(c)) return negated ? negate(first) : first;
  const parts: Node[] = [first];
  while (atBar(c)) {
    const both = c.peek(1) === AMPERSAND;
    if (both) parts.push(withErrors(parts.pop() ?? first));
    c.pos += both ? 2 : 1;
    noJoin(c);
    const part = commandAfterBar(c, both);
    if (part !== null) parts.push(part);
  }
  return { kind: "pipeline", span: c.span(start, parts.at(-1)?.span[1] ?? start), parts };
}

function commandAfterBar(c: Cursor, both: boolean): Node | null {
  newlines(c);
  const word = reserved(c);
  if (word === "!" || CLOSING.has(word)) c.fail("a command is missing");
  if (word === "time" && both) c.fail("unsupported: time after |&");
  return command(c);
}

/** The left part of `|&`, as if `2>&1` were its last redirect. */
function withErrors(node: Node): Node {
  if (node.kind === "list" || node.kind === "pipeline") return node;
  const { span } = node;
  const target: Word = { span, pieces: [{ kind: "text", text: "1" }] };
  const redirect: Redirect = { span, operator: ">&", descriptor: 2, target };
  return { ...node, redirects: [...node.redirects, redirect] };
}

/** Skips `!`, `time` and the options of `time`. @returns whether there was a `!` */
function prefixes(c: Cursor): boolean {
  let negated = false;
  for (let word = reserved(c); word === "!" || word === "time"; word = reserved(c)) {
    const start = c.pos;
    negated ||= word === "!";
    c.pos += word.length;
    if (word === "!" && c.peek() === OPEN) c.fail("unsupported: an extended pattern", start);
    c.blanks();
    if (word === "time") timeOptions(c);
    const code = c.peek();
    if (code === NEWLINE || code === -1 || code === SEMICOLON || code === CLOSE)
      c.fail(`unsupported: ${word} without a command`, start);
  }
  return negated;
}

function timeOptions(c: Cursor): void {
  for (const option of ["-p", "--"])
    if (c.text.startsWith(option, c.pos) && (classOf(c.peek(2)) & BREAK) !== 0) {
      c.pos += 2;
      c.blanks();
    }
  if (c.peek() === MINUS) c.fail("unsupported: this option of time");
}

/** Reads one command, the redirects after it, and blanks. */
function command(c: Cursor): Node | null {
  const code = c.peek();
  if (code === OPEN) return compound(c, "(");
  const word = reserved(c);
  // After a bar, bash takes `time` for a program; this function only sees what follows a bar.
  return word === "" || word === "time" ? simple(c) : compound(c, word);
}

/** Reads the commands up to `closer`, or up to the end if it is 0. */
function script(c: Cursor, closer: number): List {
  newlines(c);
  // Bash takes `time` for a program where it is the first word of a substitution.
  if (closer === CLOSE && reserved(c) === "time")
    c.fail("unsupported: time at the beginning of a substitution");
  const read = list(c);
  const code = c.peek();
  if (code !== -1 && code !== closer) c.fail("this is not allowed here");
  return read;
}

/** Reads assignments, words and redirects; null where there is none. */
function simple(c: Cursor): Node | null {
  const start = c.pos;
  const assignments: Assignment[] = [];
  const words: Word[] = [];
  const redirects: Redirect[] = [];
  let end = start;
  while (readRedirect(c, redirects) || readWordAt(c, assignments, words)) {
    end = c.pos;
    c.blanks();
  }
  if (c.peek() === OPEN) return parenthesisAfterWords(c, { start, end, assignments, words, redirects });
  if (words.length + assignments.length + redirects.length === 0 && end === start) {
    c.fail("a command is missing");
    return null;
  }
  return { kind: "simple", span: c.span(start, end), assignments, words, redirects };
}

/** Reads a word or assignment; false where none begins. */
function readWordAt(c: Cursor, assignments: Assignment[], words: Word[]): boolean {
  const code = c.peek();
  const substitution = (code === LESS || code === GREATER) && c.peek(1) === OPEN;
  if ((classOf(code) & BREAK) !== 0 && !substitution) return false;
  if (words.length === 0 && readAssignment(c, assignments)) return true;
  const start = c.pos;
  const first = words.length === 0;
  readWord(c, "argument", words);
  if (c.joined) checkJoined(c, words, { start, first });
  return true;
}

interface Parts {
  readonly start: number;
  readonly end: number;
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

/** A parenthesis after words: only a function's name may stand before it. */
function parenthesisAfterWords(c: Cursor, { start, end, assignments, words, redirects }: Parts): Node {
  const piece = words[0]?.pieces[0];
  const name = words.length === 1 && piece?.kind === "text" ? piece.text : "";
  const plain = name !== "" && c.text.startsWith(name, start) && end === start + name.length;
  if (plain && assignments.length + redirects.length === 0) return functionNamed(c, name, start);
  c.fail("unsupported: a parenthesis in a command");
  return { kind: "simple", span: c.span(start, end), assignments, words, redirects };
}

/** Fails for a line continuation inside a word that may be a descriptor, a reserved word or an assignment. */
function checkJoined(c: Cursor, words: readonly Word[], word: { start: number; first: boolean }): void {
  const piece = words.at(-1)?.pieces[0];
  const text = piece?.kind === "text" ? piece.text : "";
  const code = c.peek();
  const descriptor = (code === LESS || code === GREATER) && /^[\d{]/.test(text);
  const command = word.first && (isReserved(text) || /[=[]/.test(c.text.slice(word.start, c.pos)));
  if (descriptor || command) c.fail("unsupported: a line continuation inside a word", word.start);
}

function readAssignment(c: Cursor, out: Assignment[]): boolean {
  if (!isNameStart(c.peek())) return false;
  let length = 1;
  while (isName(c.peek(length))) length++;
  const code = c.peek(length);
  const append = code === PLUS && c.peek(length + 1) === EQUALS;
  if (code === BRACKET) c.fail("unsupported: a subscript");
  if (code !== EQUALS && !append) return false;
  const start = c.pos;
  c.pos += length + (append ? 2 : 1);
  const name = c.text.slice(start, start + length);
  const others = c.peek() === OPEN ? items(c) : null;
  const value = others === null ? oneWord(c, "value") : null;
  out.push({ span: c.span(start, c.pos), name, value, append, others: others ?? [] });
  return true;
}

/** The words of an array, `(a b)`; with subscripts in it, it is not read. */
function items(c: Cursor): readonly Word[] {
  const start = c.pos;
  const words: Word[] = [];
  c.pos++;
  for (;;) {
    newlines(c);
    if (c.peek() === CLOSE) break;
    const before = c.pos;
    if (c.peek() === BRACKET || (classOf(c.peek()) & BREAK) !== 0) c.fail("unsupported: this array", start);
    else readWord(c, "argument", words);
    if (c.problem !== null || c.pos === before) return words;
  }
  c.pos++;
  return words;
}

/** Reads an old substitution. Its end is found first, then its body is read, as bash does. */
function backtick(c: Cursor, quoted: boolean): Expansion {
  const start = c.pos;
  let at = start + 1;
  let escaped = false;
  for (; at < c.end; at++) {
    const code = c.text.charCodeAt(at);
    if (code === BACKTICK) break;
    if (code !== BACKSLASH) continue;
    const next = c.text.charCodeAt(++at);
    escaped ||= next === BACKSLASH || next === DOLLAR || next === BACKTICK;
    if (quoted && next === DOUBLE) c.fail("unsupported: escaped quotes in a backtick in quotes", start);
  }
  if (at >= c.end) {
    c.fail("a backtick is not closed", start);
    return {
      kind: "script",
      via: "`",
      body: { kind: "list", span: c.span(start, start), items: [] },
      quoted,
    };
  }
  const body = nested(c, () => (escaped ? unescaped(c, start, at) : scriptWithin(c, start, at)));
  if (c.problem === null) c.pos = at + 1;
  return { kind: "script", via: "`", body, quoted };
}

function scriptWithin(c: Cursor, start: number, close: number): List {
  c.pos = start + 1;
  return c.within(close, () => c.grammar.script(c, 0));
}

function unescaped(c: Cursor, start: number, close: number): List {
  const text = c.text.slice(start + 1, close).replaceAll(/\\([\\$`])/g, "$1");
  const inner = new Cursor(text, c.grammar, c.span(start, close + 1));
  inner.depth = c.depth;
  inner.outerHereDocuments = c.outerHereDocuments;
  inner.braces = c.braces;
  const body = c.grammar.script(inner, 0);
  c.braces = inner.braces;
  if (inner.awaited.length > 0) inner.fail("a here-document has no body");
  if (inner.problem !== null) c.fail(inner.problem.message, start);
  return body;
}
