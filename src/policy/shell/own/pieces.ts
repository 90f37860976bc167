import type { Piece } from "../syntax.ts";

export type Expansion = Exclude<Piece, { readonly kind: "text" }>;

/** A piece of a word that is being read: `quoted` text is no pattern, brace or tilde, and may be empty. */
export type Part = Expansion | { readonly kind: "text"; readonly text: string; readonly quoted: boolean };

/** Adds text, joined to the text before it when that is alike. */
export function addText(parts: Part[], text: string, quoted: boolean): void {
  const last = parts.at(-1);
  if (last !== undefined && last.kind === "text" && last.quoted === quoted)
    parts[parts.length - 1] = { kind: "text", text: last.text + text, quoted };
  else if (quoted || text !== "") parts.push({ kind: "text", text, quoted });
}

export function addPart(parts: Part[], part: Part): void {
  if (part.kind === "text") addText(parts, part.text, part.quoted);
  else parts.push(part);
}

/** The one form of a word's pieces. */
export function settle(parts: readonly Part[]): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const part of parts) {
    const last = pieces.at(-1);
    if (part.kind === "text") {
      if (part.text === "") continue;
      if (last?.kind === "text") pieces[pieces.length - 1] = { kind: "text", text: last.text + part.text };
      else pieces.push({ kind: "text", text: part.text });
    } else if (part.kind === "glob" && last?.kind === "glob")
      pieces[pieces.length - 1] = { kind: "glob", text: last.text + part.text };
    else pieces.push(part);
  }
  return pieces;
}
