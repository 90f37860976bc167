import type { Cursor } from "./cursor.ts";
import { type Part, addPart, addText } from "./pieces.ts";

/** A word that bash takes for an assignment, also where it is an argument. */
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /^[A-Za-z_]\w*\[/;
const NAMED = /^~[\w.+-]+$/;

type Use = "argument" | "value" | "target" | "other" | "expanded";

const isUnquoted = (piece: Part | undefined): piece is Part & { kind: "text" } =>
  piece?.kind === "text" && !piece.quoted;

/** Makes pieces of the unquoted tildes that bash replaces. */
export function findTildes(c: Cursor, pieces: Part[], use: Use): Part[] {
  if (!pieces.some((piece) => isUnquoted(piece) && piece.text.includes("~"))) return pieces;
  const named = use !== "value" && isNamed(c, isUnquoted(pieces[0]) ? pieces[0].text : "", use);
  const assigned = named || use === "value";
  const found: Part[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (!isUnquoted(piece)) addPart(found, piece);
    else {
      const first = named ? piece.text.indexOf("=") + 1 : 0;
      const place = { assigned, first: index === 0 ? first : -1, last: index === pieces.length - 1 };
      splitText(c, piece.text, place, found);
    }
  }
  return found;
}

/** Whether a word that is no assignment looks like one to bash. */
function isNamed(c: Cursor, head: string, use: Use): boolean {
  const named = use !== "other" && ASSIGNMENT.test(head);
  if (use === "expanded" && named) c.fail("not read: a tilde beside braces");
  if (SUBSCRIPT.test(head)) c.fail("not read: a tilde after a subscript");
  return named;
}

interface Place {
  /** Whether a tilde counts after a colon, and ends before one. */
  readonly assigned: boolean;
  /** Where, beside after a colon, a tilde counts. */
  readonly first: number;
  /** Whether the word ends with this text. */
  readonly last: boolean;
}

function splitText(c: Cursor, text: string, { assigned, first, last }: Place, found: Part[]): void {
  let run = 0;
  for (let at = text.indexOf("~"); at !== -1; at = text.indexOf("~", at + 1)) {
    if (at !== first && !(assigned && text[at - 1] === ":")) continue;
    const end = prefixEnd(text, at, assigned);
    if (end === text.length && !last) c.fail("not read: a tilde before quotes or an expansion");
    addText(found, text.slice(run, at), false);
    found.push(prefix(c, text.slice(at, end)));
    run = end;
  }
  addText(found, text.slice(run), false);
}

function prefixEnd(text: string, from: number, assigned: boolean): number {
  for (let at = from; at < text.length; at++)
    if (text[at] === "/" || (assigned && text[at] === ":")) return at;
  return text.length;
}

function prefix(c: Cursor, text: string): Part {
  if (text === "~") return { kind: "home" };
  if (!NAMED.test(text)) c.fail("not read: this tilde");
  return { kind: "unknown", what: "tilde", quoted: false, scripts: [] };
}
