import { visible, withoutEmojiParts } from "../../core/visible.ts";
import { cellsOf, widthOf } from "../tty/columns.ts";

/**
 * What a person perceives as one character, and its width on the screen. Parts of emoji that terminals measure
 * differently (selectors, joiners) are not shown; control and format characters are spelled out.
 */
export interface Grapheme {
  /** UTF-16 offset in the text. */
  readonly at: number;
  readonly text: string;
}

const SEGMENTER = new Intl.Segmenter("en", { granularity: "grapheme" });
const ASCII = /^[\n\t -~]*$/;

/** In order; plain ASCII text avoids the cost of Unicode's tables. */
export function graphemesOf(text: string): readonly Grapheme[] {
  if (ASCII.test(text)) return Array.from(text, (character, at) => ({ at, text: character }));
  return Array.from(SEGMENTER.segment(text), ({ segment, index }) => ({ at: index, text: segment }));
}

/** The last boundary before `at`, or 0. */
export const boundaryBefore = (text: string, at: number): number =>
  at <= 0 ? 0 : (SEGMENTER.segment(text).containing(at - 1)?.index ?? 0);

/** The first boundary after `at`, or the end. */
export function boundaryAfter(text: string, at: number): number {
  const inside = SEGMENTER.segment(text).containing(Math.max(0, at));
  return inside === undefined ? text.length : inside.index + inside.segment.length;
}

/** The boundary at or before `at`. */
export const snapped = (text: string, at: number): number =>
  at >= text.length ? text.length : boundaryBefore(text, boundaryAfter(text, at));

export interface Shown {
  readonly text: string;
  readonly columns: number;
}

const TAB = "    ";

/** One grapheme as drawn. */
export function shownOf(grapheme: string): Shown {
  if (grapheme === "\t") return { text: TAB, columns: TAB.length };
  if (grapheme.length === 1 && grapheme >= " " && grapheme <= "~") return { text: grapheme, columns: 1 };
  const text = withoutEmojiParts(visible(grapheme));
  return { text, columns: widthOf(cellsOf(text)) };
}

/** The same text in parts of at most `width` columns; combining marks stay with their character. */
export function partsOf({ text, columns }: Shown, width: number): readonly Shown[] {
  if (columns <= width) return [{ text, columns }];
  const parts: { text: string; columns: number }[] = [];
  for (const { shown, columns: own } of cellsOf(text)) {
    const last = parts.at(-1);
    if (last === undefined || last.columns + own > width) parts.push({ text: shown, columns: own });
    else {
      last.text += shown;
      last.columns += own;
    }
  }
  return parts;
}

/** Columns of a single-line text as these functions draw it. */
export function columnsIn(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  return graphemesOf(text).reduce((sum, each) => sum + shownOf(each.text).columns, 0);
}
