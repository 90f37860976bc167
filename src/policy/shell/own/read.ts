import type { Reading } from "../syntax.ts";
import { backtick } from "./backtick.ts";
import { list, script } from "./commands.ts";
import { Cursor, type Grammar } from "./cursor.ts";
import { dollar } from "./expansions.ts";

const GRAMMAR: Grammar = { script, list, dollar, backtick };

/**
 * Reads shell text as a `bash -c` without options and aliases does. What is not sure is an error; it ends the
 * reading, and the tree holds what stands before it. Never throws.
 */
export function readOwn(text: string): Reading {
  const c = new Cursor(text, GRAMMAR, null);
  const tree = script(c, 0);
  if (c.awaited.length > 0) c.fail("a here-document has no body");
  return { tree, errors: c.problem === null ? [] : [c.problem] };
}
