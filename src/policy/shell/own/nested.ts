import type { Node } from "../syntax.ts";
import type { Expansion } from "./pieces.ts";
import type { Cursor } from "./cursor.ts";

/** Reads something one level deeper, with here-documents of its own. */
export function nested<T>(c: Cursor, read: () => T): T {
  const { awaited, held } = c;
  c.held = held + awaited.length;
  c.awaited = [];
  c.enter();
  const result = read();
  c.leave();
  if (c.awaited.length > 0) c.fail("a here-document has no body");
  c.awaited = awaited;
  c.held = held;
  return result;
}

/** Adds the command substitutions of an expansion inside another one. */
export function collect(piece: Expansion, scripts: Node[]): void {
  if (piece.kind === "script") scripts.push(piece.body);
  else if (piece.kind === "unknown") for (const script of piece.scripts) scripts.push(script);
}
