import type { List, Node, Redirect, Word } from "../syntax.ts";
import { AMPERSAND, BAR, BREAK, CLOSE, MINUS, NEWLINE, OPEN, SEMICOLON, classOf } from "./chars.ts";
import { compound } from "./compound.ts";
import type { Cursor } from "./cursor.ts";
import { newlines } from "./lines.ts";
import { noJoin } from "./redirects.ts";
import { reserved } from "./reserved.ts";
import { simple } from "./simple.ts";

/** Reads commands up to what cannot begin one: a closing parenthesis, `;;`, a closing reserved word, the end. */
export function list(c: Cursor): List {
  const items: Item[] = [];
  newlines(c);
  const start = c.pos;
  while (!ends(c)) {
    const node = pipeline(c);
    if (node === null) break;
    const operator = separator(c);
    items.push({ node, then: operator ?? ";" });
    if (operator === null) break;
    if (operator === "&&" || operator === "||") {
      newlines(c);
      if (ends(c)) c.fail("a command is missing");
    }
  }
  const last = items.at(-1)?.node.span[1] ?? start;
  return { kind: "list", span: c.fixed ?? [Math.min(start, last), last], items };
}

type Item = List["items"][number];

/** Reserved words that no command begins with. */
const CLOSING: ReadonlySet<string> = new Set(["then", "elif", "else", "fi", "do", "done", "esac", "}"]);

function ends(c: Cursor): boolean {
  const code = c.peek();
  if (code === -1 || code === CLOSE || code === SEMICOLON) return true;
  const word = reserved(c);
  return word !== "" && CLOSING.has(word);
}

/** Reads what stands between two commands; null where no other may follow. */
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
  if (!atBar(c)) return negated ? not(first) : first;
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
  if (word === "time" && both) c.fail("not read: time after |&");
  return command(c);
}

const atBar = (c: Cursor): boolean => c.peek() === BAR && c.peek(1) !== BAR;

/** The left part of `|&`, as if `2>&1` were its last redirect. */
function withErrors(node: Node): Node {
  if (node.kind === "list" || node.kind === "pipeline") return node;
  const { span } = node;
  const target: Word = { span, pieces: [{ kind: "text", text: "1" }] };
  const redirect: Redirect = { span, operator: ">&", descriptor: 2, target };
  return { ...node, redirects: [...node.redirects, redirect] };
}

const not = (body: Node): Node => ({
  kind: "compound",
  what: "not",
  span: body.span,
  name: null,
  words: null,
  bodies: [body],
  redirects: [],
});

/** Skips `!`, `time` and the options of `time`. @returns whether there was a `!` */
function prefixes(c: Cursor): boolean {
  let negated = false;
  for (let word = reserved(c); word === "!" || word === "time"; word = reserved(c)) {
    const start = c.pos;
    negated ||= word === "!";
    c.pos += word.length;
    if (word === "!" && c.peek() === OPEN) c.fail("not read: an extended pattern", start);
    c.blanks();
    if (word === "time") timeOptions(c);
    const code = c.peek();
    if (code === NEWLINE || code === -1 || code === SEMICOLON || code === CLOSE)
      c.fail(`not read: ${word} before no command`, start);
  }
  return negated;
}

function timeOptions(c: Cursor): void {
  for (const option of ["-p", "--"])
    if (c.text.startsWith(option, c.pos) && (classOf(c.peek(2)) & BREAK) !== 0) {
      c.pos += 2;
      c.blanks();
    }
  if (c.peek() === MINUS) c.fail("not read: this option of time");
}

/** Reads one command, the redirects after it, and blanks. */
function command(c: Cursor): Node | null {
  const code = c.peek();
  if (code === OPEN) return compound(c, "(");
  const word = reserved(c);
  // After a bar, bash takes `time` for a program; what stands after a bar is all that comes here with it.
  return word === "" || word === "time" ? simple(c) : compound(c, word);
}

/** Reads the commands up to `closer`, or up to the end where it is 0. */
export function script(c: Cursor, closer: number): List {
  newlines(c);
  // Bash takes `time` for a program where it is the first word of a substitution.
  if (closer === CLOSE && reserved(c) === "time") c.fail("not read: time at the beginning of a substitution");
  const read = list(c);
  const code = c.peek();
  if (code !== -1 && code !== closer) c.fail("this cannot stand here");
  return read;
}
