import type { Compound, Node, Redirect } from "../syntax.ts";
import { arithmetic } from "./arithmetic.ts";
import { branches } from "./branches.ts";
import { CLOSE, OPEN } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { newlines } from "./lines.ts";
import { loop } from "./loops.ts";
import { type Inner, expect, filled } from "./parts.ts";
import { noJoin, readRedirect } from "./redirects.ts";
import { reserved } from "./reserved.ts";
import { test } from "./test.ts";

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
  // A function has none of its own, they are those of its body.
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
      c.fail(`not read: ${word}`);
      return { what: "group", name: null, words: null, bodies: [] };
  }
}

function group(c: Cursor): Inner {
  c.pos++;
  const bodies = [filled(c)];
  expect(c, "}");
  return { what: "group", name: null, words: null, bodies };
}

function parenthesis(c: Cursor, start: number): Inner {
  if (c.peek(1) === OPEN) return arithmeticCommand(c, start);
  c.pos++;
  noJoin(c);
  const bodies = [filled(c)];
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
  else c.fail("not read: a parenthesis in a command");
}

const BODIES: ReadonlySet<string> = new Set(["{", "[[", "if", "case", "while", "until", "for", "select"]);
const NAME = /^[\w.:+@-]+$/;

function functionBody(c: Cursor, name: string): Inner {
  if (!NAME.test(name)) c.fail("not read: this name of a function");
  newlines(c);
  const word = c.peek() === OPEN ? "(" : reserved(c);
  if (word !== "(" && !BODIES.has(word)) c.fail("a function has no body");
  return { what: "function", name, words: null, bodies: c.problem === null ? [compound(c, word)] : [] };
}
