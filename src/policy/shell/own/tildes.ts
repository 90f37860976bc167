import type { Piece } from "../syntax.ts";
import type { Cursor } from "./cursor.ts";
import { addPiece, addText } from "./pieces.ts";

/** A word that bash takes for an assignment, also where it is an argument. */
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /^[A-Za-z_]\w*\[/;
const NAMED = /^~[\w.+-]+$/;

type Use = "argument" | "value" | "target" | "other" | "expanded";

/** Makes pieces of the unquoted tildes that bash replaces. */
export function findTildes(c: Cursor, pieces: Piece[], use: Use): Piece[] {
  if (!pieces.some((piece) => piece.kind === "text" && !piece.quoted && piece.text.includes("~")))
    return pieces;
  const first = pieces[0];
  const head = first?.kind === "text" && !first.quoted ? first.text : "";
  const assigned = use === "value" || (use !== "other" && ASSIGNMENT.test(head));
  if (use === "expanded" && assigned) c.fail("not read: a tilde beside braces");
  if (use !== "value" && SUBSCRIPT.test(head)) c.fail("not read: a tilde after a subscript");
  const found: Piece[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (piece.kind !== "text" || piece.quoted) addPiece(found, piece);
    else {
      const last = index === pieces.length - 1;
      const starts = index === 0 ? firstStart(piece.text, use, assigned) : -1;
      splitText(c, { text: piece.text, assigned, last, starts }, found);
    }
  }
  return found;
}

/** Where, beside after a colon, a tilde of the first text counts. */
function firstStart(text: string, use: Use, assigned: boolean): number {
  return assigned && use !== "value" ? text.indexOf("=") + 1 : 0;
}

interface Unquoted {
  readonly text: string;
  readonly assigned: boolean;
  /** Whether the word ends with this text. */
  readonly last: boolean;
  readonly starts: number;
}

function splitText(c: Cursor, { text, assigned, last, starts }: Unquoted, found: Piece[]): void {
  let run = 0;
  for (let at = text.indexOf("~"); at !== -1; at = text.indexOf("~", at + 1)) {
    if (at !== starts && !(assigned && at > 0 && text[at - 1] === ":")) continue;
    let end = at + 1;
    while (end < text.length && text[end] !== "/" && !(assigned && text[end] === ":")) end++;
    if (end === text.length && !last) c.fail("not read: a tilde before quotes or an expansion");
    if (run < at) addText(found, text.slice(run, at), false);
    const prefix = text.slice(at, end);
    if (prefix === "~") found.push({ kind: "home" });
    else if (NAMED.test(prefix)) found.push({ kind: "unknown", what: "tilde", quoted: false, scripts: [] });
    else c.fail("not read: this tilde");
    run = end;
    at = end - 1;
  }
  if (run < text.length) addText(found, text.slice(run), false);
}
