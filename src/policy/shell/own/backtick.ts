import type { List } from "../syntax.ts";
import type { Expansion } from "./pieces.ts";
import { BACKSLASH, BACKTICK, DOLLAR, DOUBLE } from "./chars.ts";
import { Cursor } from "./cursor.ts";
import { nested } from "./nested.ts";

/** Reads an old substitution. Its end is found first, then its body is read, as bash does. */
export function backtick(c: Cursor, quoted: boolean): Expansion {
  const start = c.pos;
  let at = start + 1;
  let escaped = false;
  for (; at < c.end; at++) {
    const code = c.text.charCodeAt(at);
    if (code === BACKTICK) break;
    if (code !== BACKSLASH) continue;
    const next = c.text.charCodeAt(++at);
    escaped ||= next === BACKSLASH || next === DOLLAR || next === BACKTICK;
    if (quoted && next === DOUBLE) c.fail("not read: escaped quotes in a backtick in quotes", start);
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
  const body = nested(c, () => (escaped ? unescaped(c, start, at) : plain(c, start, at)));
  if (c.problem === null) c.pos = at + 1;
  return { kind: "script", via: "`", body, quoted };
}

function plain(c: Cursor, start: number, close: number): List {
  c.pos = start + 1;
  return c.within(close, () => c.grammar.script(c, 0));
}

function unescaped(c: Cursor, start: number, close: number): List {
  const text = c.text.slice(start + 1, close).replaceAll(/\\([\\$`])/g, "$1");
  const inner = new Cursor(text, c.grammar, c.span(start, close + 1));
  inner.depth = c.depth;
  inner.held = c.held;
  inner.braces = c.braces;
  const body = c.grammar.script(inner, 0);
  c.braces = inner.braces;
  if (inner.awaited.length > 0) inner.fail("a here-document has no body");
  if (inner.problem !== null) c.fail(inner.problem.message, start);
  return body;
}
