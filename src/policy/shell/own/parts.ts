import type { Compound, List } from "../syntax.ts";
import type { Cursor } from "./cursor.ts";
import { reserved } from "./reserved.ts";

/** A compound command without its place and redirects. */
export type Inner = Pick<Compound, "what" | "name" | "words" | "bodies">;

/** Reads a list that must hold a command. */
export function filled(c: Cursor): List {
  const list = c.grammar.list(c);
  if (list.items.length === 0) c.fail("a command is missing");
  return list;
}

/** Reads a reserved word that must stand here. */
export function expect(c: Cursor, word: string): void {
  if (reserved(c) === word) c.pos += word.length;
  else c.fail(`${word} is missing`);
}
