import type { Piece } from "../syntax.ts";

/** Adds text, joined to the text before it when that is alike. Empty quoted text is kept until `settle`. */
export function addText(pieces: Piece[], text: string, quoted: boolean): void {
  const last = pieces.at(-1);
  if (last !== undefined && last.kind === "text" && last.quoted === quoted)
    pieces[pieces.length - 1] = { kind: "text", text: last.text + text, quoted };
  else if (quoted || text !== "") pieces.push({ kind: "text", text, quoted });
}

export function addPiece(pieces: Piece[], piece: Piece): void {
  const last = pieces.at(-1);
  if (piece.kind === "text") addText(pieces, piece.text, piece.quoted);
  else if (piece.kind === "glob" && last?.kind === "glob")
    pieces[pieces.length - 1] = { kind: "glob", text: last.text + piece.text };
  else pieces.push(piece);
}

const isEmpty = (piece: Piece): boolean => piece.kind === "text" && piece.text === "";

/** The one form of a word's pieces: without empty text, unless there is nothing else. */
export function settle(pieces: Piece[]): readonly Piece[] {
  if (pieces.length < 2 || !pieces.some(isEmpty)) return pieces;
  const settled: Piece[] = [];
  for (const piece of pieces) if (!isEmpty(piece)) addPiece(settled, piece);
  return settled.length > 0 ? settled : pieces.slice(0, 1);
}
