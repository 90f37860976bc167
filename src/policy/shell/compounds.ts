import {
  AMPERSAND,
  BANG,
  BAR,
  BREAK,
  classOf,
  CLOSE,
  type Cursor,
  GREATER,
  isName,
  isNameStart,
  isReserved,
  LESS,
  NEWLINE,
  OPEN,
  reserved,
  SEMICOLON,
} from "./cursor.ts";
import { arithmetic } from "./expansions.ts";
import { newlines } from "./quotes.ts";
import { noJoin, readRedirect } from "./reader-redirects.ts";
import type { Compound, List, Node, Redirect, Word } from "./shell-syntax.ts";
import { oneWord, readWord } from "./words.ts";

/** A compound command without its place and redirects. */
type Inner = Pick<Compound, "what" | "name" | "words" | "bodies">;

/** Reads the compound command that `word`, a reserved word or `(`, begins, and the redirects after it. */
export function compound(c: Cursor, word: string): Compound {
  const start = c.pos;
  const inner: Inner = c.enter()
    ? read(c, word, start)
    : { what: "group", name: null, words: null, bodies: [] };
  c.leave();
  const redirects: Redirect[] = [];
  let end = inner.what === "function" ? (inner.bodies[0]?.span[1] ?? c.pos) : c.pos;
  c.blanks();
  // A function has no redirects of its own; they belong to its body.
  while (inner.what !== "function" && readRedirect(c, redirects)) {
    end = c.pos;
    c.blanks();
  }
  return { kind: "compound", span: c.span(start, end), ...inner, redirects };
}

function read(c: Cursor, word: string, start: number): Inner {
  switch (word) {
    case "(":
      return parenthesis(c, start);
    case "{":
      return group(c);
    case "[[":
      return test(c);
    case "if":
    case "case":
      return branches(c, word);
    case "while":
    case "until":
    case "for":
    case "select":
      return loop(c, word);
    case "function":
      return functionKeyword(c);
    default:
      c.fail(`unsupported: ${word}`);
      return { what: "group", name: null, words: null, bodies: [] };
  }
}

function group(c: Cursor): Inner {
  c.pos++;
  const bodies = [nonEmptyList(c)];
  expect(c, "}");
  return { what: "group", name: null, words: null, bodies };
}

function parenthesis(c: Cursor, start: number): Inner {
  if (c.peek(1) === OPEN) return arithmeticCommand(c, start);
  c.pos++;
  noJoin(c);
  const bodies = [nonEmptyList(c)];
  c.blanks();
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a parenthesis is not closed", start);
  return { what: "subshell", name: null, words: null, bodies };
}

function arithmeticCommand(c: Cursor, start: number): Inner {
  c.pos += 2;
  const bodies: Node[] = arithmetic(c, "(", start);
  return { what: "arithmetic", name: null, words: null, bodies };
}

function functionKeyword(c: Cursor): Inner {
  c.pos += "function".length;
  c.blanks();
  const start = c.pos;
  while (/[\w.:+@-]/.test(c.text.charAt(c.pos)) && c.pos < c.end) c.pos++;
  const name = c.text.slice(start, c.pos);
  c.blanks();
  if (c.peek() === OPEN) parentheses(c);
  return functionBody(c, name);
}

/** Reads a function from the parenthesis after its name, which begins at `start`. */
export function functionNamed(c: Cursor, name: string, start: number): Compound {
  parentheses(c);
  const inner = c.enter() ? functionBody(c, name) : null;
  c.leave();
  const end = inner?.bodies[0]?.span[1] ?? c.pos;
  c.blanks();
  return {
    kind: "compound",
    span: c.span(start, end),
    what: "function",
    name,
    words: null,
    bodies: inner?.bodies ?? [],
    redirects: [],
  };
}

function parentheses(c: Cursor): void {
  c.pos++;
  noJoin(c);
  c.blanks();
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("unsupported: a parenthesis in a command");
}

const BODIES: ReadonlySet<string> = new Set(["{", "[[", "if", "case", "while", "until", "for", "select"]);
const NAME = /^[\w.:+@-]+$/;

function functionBody(c: Cursor, name: string): Inner {
  if (!NAME.test(name)) c.fail("unsupported: this name of a function");
  newlines(c);
  const word = c.peek() === OPEN ? "(" : reserved(c);
  if (word !== "(" && !BODIES.has(word)) c.fail("a function has no body");
  return { what: "function", name, words: null, bodies: c.problem === null ? [compound(c, word)] : [] };
}

function branches(c: Cursor, what: "if" | "case"): Inner {
  c.pos += what.length;
  return what === "if" ? conditions(c) : patterns(c);
}

function conditions(c: Cursor): Inner {
  const bodies: List[] = [nonEmptyList(c)];
  expect(c, "then");
  bodies.push(nonEmptyList(c));
  for (let word = reserved(c); word === "elif"; word = reserved(c)) {
    c.pos += word.length;
    bodies.push(nonEmptyList(c));
    expect(c, "then");
    bodies.push(nonEmptyList(c));
  }
  if (reserved(c) === "else") {
    c.pos += "else".length;
    bodies.push(nonEmptyList(c));
  }
  expect(c, "fi");
  return { what: "if", name: null, words: null, bodies };
}

function patterns(c: Cursor): Inner {
  const words: Word[] = [];
  const bodies: List[] = [];
  c.blanks();
  readTestWord(c, words);
  newlines(c);
  if (atIn(c)) c.pos += 2;
  else c.fail("in is missing");
  newlines(c);
  while (c.pos < c.end && reserved(c) !== "esac") arm(c, words, bodies);
  expect(c, "esac");
  return { what: "case", name: null, words, bodies };
}

function readTestWord(c: Cursor, words: Word[]): void {
  const start = c.pos;
  const read = oneWord(c, "other");
  const piece = read.pieces[0];
  if (c.joined && piece?.kind === "text" && isReserved(piece.text))
    c.fail("unsupported: esac over two lines", start);
  if (c.pos === start) c.fail("a word is missing");
  else words.push(read);
}

function arm(c: Cursor, words: Word[], bodies: List[]): void {
  if (c.peek() === OPEN) {
    c.pos++;
    c.blanks();
    if (reserved(c) === "esac") c.fail("unsupported: esac as a pattern");
  }
  for (;;) {
    readTestWord(c, words);
    c.blanks();
    if (c.peek() !== BAR) break;
    c.pos++;
    c.blanks();
  }
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a pattern is not closed");
  bodies.push(c.grammar.list(c));
  if (c.peek() === SEMICOLON) terminator(c);
  else if (reserved(c) !== "esac") c.fail("esac is missing");
}

function terminator(c: Cursor): void {
  if (c.peek(1) === AMPERSAND) c.pos += 2;
  else if (c.peek(1) === SEMICOLON) c.pos += c.peek(2) === AMPERSAND ? 3 : 2;
  else c.fail("a command is missing");
  newlines(c);
}

function loop(c: Cursor, what: "while" | "until" | "for" | "select"): Inner {
  const start = c.pos;
  c.pos += what.length;
  if (what === "while" || what === "until") {
    const condition = nonEmptyList(c);
    return { what, name: null, words: null, bodies: [condition, doBlock(c)] };
  }
  c.blanks();
  if (what === "for" && c.peek() === OPEN) return arithmeticFor(c, start);
  const name = variable(c);
  const words = list(c);
  return { what, name, words, bodies: [doBlock(c)] };
}

function doBlock(c: Cursor) {
  expect(c, "do");
  const body = nonEmptyList(c);
  expect(c, "done");
  return body;
}

function arithmeticFor(c: Cursor, start: number): Inner {
  if (c.peek(1) !== OPEN) c.fail("a loop has no variable");
  c.pos += 2;
  const scripts = arithmetic(c, "for", start);
  c.blanks();
  if (c.peek() === SEMICOLON) semicolon(c);
  newlines(c);
  return { what: "for", name: null, words: null, bodies: [...scripts, doBlock(c)] };
}

function variable(c: Cursor): string {
  const start = c.pos;
  if (isNameStart(c.peek())) while (isName(c.peek())) c.pos++;
  if (c.pos === start || (classOf(c.peek()) & BREAK) === 0) c.fail("unsupported: the variable of a loop");
  return c.text.slice(start, c.pos);
}

function semicolon(c: Cursor): void {
  c.pos++;
  noJoin(c);
}

/** Reads the words of a loop and what ends them; null when there is no `in`. */
function list(c: Cursor): Word[] | null {
  c.blanks();
  if (c.peek() === SEMICOLON) {
    semicolon(c);
    newlines(c);
    return null;
  }
  const before = c.pos;
  newlines(c);
  if (!atIn(c)) return null;
  // In an arm of `case`, bash takes such an `in` for a mistake.
  if (c.pos !== before) c.fail("unsupported: in on a line of its own");
  c.pos += 2;
  const words: Word[] = [];
  for (;;) {
    c.blanks();
    const code = c.peek();
    const procedure = (code === LESS || code === GREATER) && c.peek(1) === OPEN;
    if ((classOf(code) & BREAK) !== 0 && !procedure) break;
    readWord(c, "argument", words);
  }
  if (c.peek() === SEMICOLON) semicolon(c);
  else if (c.peek() !== NEWLINE) c.fail("the words of a loop are not terminated");
  newlines(c);
  return words;
}

/** True at the word `in`. */
function atIn(c: Cursor): boolean {
  return c.peek() === 105 && c.peek(1) === 110 && (classOf(c.peek(2)) & BREAK) !== 0;
}

const UNARY: ReadonlySet<string> = new Set(
  Array.from("abcdefghknoprstuvwxzGLNORS", (letter) => `-${letter}`),
);
/** Without `=~`, whose right side has rules of its own. */
const BINARY: ReadonlySet<string> = new Set([
  "=",
  "==",
  "!=",
  "-eq",
  "-ne",
  "-lt",
  "-le",
  "-gt",
  "-ge",
  "-nt",
  "-ot",
  "-ef",
]);

/** Reads `[[ … ]]`. */
function test(c: Cursor): Inner {
  const words: Word[] = [];
  c.pos += 2;
  testTerms(c, words);
  if (closes(c)) c.pos += 2;
  else c.fail("]] is missing");
  return { what: "test", name: null, words, bodies: [] };
}

function closes(c: Cursor): boolean {
  return c.text.startsWith("]]", c.pos) && c.pos + 2 <= c.end && (classOf(c.peek(2)) & BREAK) !== 0;
}

/** Terms joined by `&&` and `||`; their precedence does not change the operands. */
function testTerms(c: Cursor, words: Word[]): void {
  for (;;) {
    term(c, words);
    newlines(c);
    const code = c.peek();
    if ((code !== AMPERSAND && code !== BAR) || c.peek(1) !== code) return;
    c.pos += 2;
  }
}

function term(c: Cursor, words: Word[]): void {
  newlines(c);
  while (c.peek() === BANG && (classOf(c.peek(1)) & BREAK) !== 0 && c.peek(1) !== OPEN) {
    c.pos++;
    newlines(c);
  }
  if (c.peek() !== OPEN) {
    operands(c, words);
    return;
  }
  c.pos++;
  if (c.enter()) testTerms(c, words);
  c.leave();
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a parenthesis is not closed");
}

function operands(c: Cursor, words: Word[]): void {
  const start = c.pos;
  const first = operand(c);
  if (UNARY.has(c.text.slice(start, c.pos).trimEnd())) {
    words.push(operand(c));
    return;
  }
  words.push(first);
  if (binary(c)) words.push(operand(c));
  else if (c.peek() === NEWLINE) c.fail("an operator is missing");
}

/** Reads a word that is no operator. */
function operand(c: Cursor): Word {
  const start = c.pos;
  if (closes(c)) c.fail("an operand is missing");
  const word = oneWord(c, "other");
  if (c.pos === start) c.fail("an operand is missing");
  if (c.joined) c.fail("unsupported: a word over two lines in a test", start);
  c.blanks();
  return word;
}

/** Reads an operator between two operands, if there is one. */
function binary(c: Cursor): boolean {
  const code = c.peek();
  if (code === LESS || code === GREATER) {
    if (c.peek(1) !== 32) c.fail("unsupported: this operator of a test");
    c.pos++;
  } else {
    if ((classOf(code) & BREAK) !== 0 || closes(c)) return false;
    const start = c.pos;
    oneWord(c, "other");
    if (!BINARY.has(c.text.slice(start, c.pos))) c.fail("unsupported: this operator of a test");
  }
  c.blanks();
  return true;
}

/** Reads a list that must hold a command. */
function nonEmptyList(c: Cursor): List {
  const list = c.grammar.list(c);
  if (list.items.length === 0) c.fail("a command is missing");
  return list;
}

/** Reads a reserved word that must stand here. */
function expect(c: Cursor, word: string): void {
  if (reserved(c) === word) c.pos += word.length;
  else c.fail(`${word} is missing`);
}
