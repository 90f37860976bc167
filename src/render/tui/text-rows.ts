import { visible, withoutEmojiParts } from "../../core/visible.ts";
import { cellsOf, widthOf } from "../tty/columns.ts";

/** The style of a piece of text; the code that draws it chooses the colours. */
export type SpanStyle =
  | "bold"
  | "italic"
  | "strike"
  | "code"
  | "link"
  | "heading"
  | "dim"
  | "keyword"
  | "string"
  | "number"
  | "comment"
  | "added"
  | "removed";

export interface StyledText {
  readonly text: string;
  readonly styles: readonly SpanStyle[];
}

export type SpanRow = readonly StyledText[];

export const span = (text: string, ...styles: readonly SpanStyle[]): StyledText => ({ text, styles });
export const textOfRow = (row: SpanRow): string => row.map(({ text }) => text).join("");

const isSame = (a: readonly SpanStyle[], b: readonly SpanStyle[]): boolean =>
  a === b || (a.length === b.length && a.every((style, at) => style === b[at]));

export const rowWidth = (row: SpanRow): number =>
  row.reduce(
    (sum, { text }) => sum + graphemesOf(text).reduce((own, each) => own + shownOf(each.text).columns, 0),
    0,
  );

interface Cell {
  readonly text: string;
  readonly columns: number;
  readonly styles: readonly SpanStyle[];
}

function cellsIn(spans: readonly StyledText[], width: number): readonly Cell[] {
  return spans.flatMap(({ text, styles }) =>
    graphemesOf(text).flatMap((each) =>
      partsOf(shownOf(each.text), width).map((part) => ({ ...part, styles })),
    ),
  );
}

function joinCells(cells: readonly Cell[]): SpanRow {
  const row: { text: string; styles: readonly SpanStyle[] }[] = [];
  for (const { text, styles } of cells) {
    const last = row.at(-1);
    if (last !== undefined && isSame(last.styles, styles)) last.text += text;
    else row.push({ text, styles });
  }
  return row;
}

/** Rows of at most `width` columns, broken at blanks if possible; `breaks` is off for code, which keeps its blanks. */
export function wrappedSpans(spans: readonly StyledText[], width: number, breaks = true): readonly SpanRow[] {
  const room = Math.max(2, width);
  const rows: SpanRow[] = [];
  let row: Cell[] = [];
  let columns = 0;
  /** The place after the last blank of the row. */
  let blank = 0;
  for (const cell of cellsIn(spans, room)) {
    const isBlank = cell.text === " ";
    if (columns + cell.columns > room) {
      const rest = breaks && blank > 0 && !isBlank ? row.splice(blank) : [];
      rows.push(joinCells(breaks ? withoutEnd(row) : row));
      row = rest;
      columns = rest.reduce((sum, each) => sum + each.columns, 0);
      blank = 0;
      if (isBlank && breaks) continue;
    }
    row.push(cell);
    columns += cell.columns;
    if (isBlank) blank = row.length;
  }
  const last = joinCells(breaks ? withoutEnd(row) : row);
  // The row is empty because its only blank had no room.
  return last.length === 0 && rows.length > 0 ? rows : [...rows, last];
}

function withoutEnd(row: readonly Cell[]): readonly Cell[] {
  const last = row.findLastIndex(({ text }) => text !== " ");
  return row.slice(0, last + 1);
}

/** Puts a margin before each row: one for the first, one of the same width for the others. */
export const withMargin = (
  first: readonly StyledText[],
  others: readonly StyledText[],
  rows: readonly SpanRow[],
): SpanRow[] =>
  rows.map((row, at) => [...(at === 0 ? first : others), ...row].filter(({ text }) => text !== ""));

/** The parts of an edited text that are drawn. */
interface Edited {
  readonly text: string;
  readonly cursor: number;
  readonly pastes: readonly string[];
}

interface RowPiece {
  readonly text: string;
  /** A `paste` stands for more than is shown. */
  readonly kind: "text" | "paste";
}

export interface EditorRows {
  readonly rows: readonly (readonly RowPiece[])[];
  /** The cursor's position, both from 0; the column is less than the width. */
  readonly row: number;
  readonly column: number;
}

/** A possible position of the cursor. */
interface Place {
  readonly at: number;
  readonly row: number;
  readonly column: number;
}

/** Room for a wide character and the cursor after it. */
const MIN_WIDTH = 3;

/** The rows as a terminal of this width shows them; the last column is left for the cursor. */
export function rowsOf({ text, cursor, pastes }: Edited, width: number): EditorRows {
  const { rows, places } = layoutOf(text, pastes, width);
  const { row, column } = placeAt(places, cursor);
  return { rows, row, column };
}

/**
 * The cursor's offset one row up or down, as near to the column `goal` as possible; undefined beyond the first or last
 * row.
 */
export function rowBeside(edited: Edited, width: number, by: -1 | 1, goal: number): number | undefined {
  const { places } = layoutOf(edited.text, edited.pastes, width);
  const { row } = placeAt(places, edited.cursor);
  const there = places.filter((place) => place.row === row + by);
  return (there.findLast(({ column }) => column <= goal) ?? there[0])?.at;
}

export const columnAt = (edited: Edited, width: number): number => rowsOf(edited, width).column;

function placeAt(places: readonly Place[], cursor: number): Place {
  return places.findLast(({ at }) => at <= cursor) ?? { at: 0, row: 0, column: 0 };
}

function layoutOf(text: string, pastes: readonly string[], width: number) {
  const room = Math.max(MIN_WIDTH, width) - 1;
  const rows: RowPiece[][] = [[]];
  const places: Place[] = [];
  let column = 0;
  const next = (): void => {
    rows.push([]);
    column = 0;
  };
  for (const grapheme of graphemesOf(text)) {
    const isEnd = grapheme.text === "\n";
    const label = labelOf(grapheme.text, pastes);
    const shown = isEnd ? NONE : label === undefined ? shownOf(grapheme.text) : labelled(label);
    if (column > 0 && column + shown.columns > room) next();
    places.push({ at: grapheme.at, row: rows.length - 1, column });
    if (isEnd) {
      next();
      continue;
    }
    for (const [place, part] of partsOf(shown, room).entries()) {
      if (place > 0) next();
      add(rows, { text: part.text, kind: label === undefined ? "text" : "paste" });
      column += part.columns;
    }
  }
  places.push({ at: text.length, row: rows.length - 1, column });
  return { rows, places };
}

const NONE: Shown = { text: "", columns: 0 };
const labelled = (label: string): Shown => ({ text: label, columns: label.length });

function add(rows: RowPiece[][], piece: RowPiece): void {
  const row = rows.at(-1) ?? [];
  const last = row.at(-1);
  if (last?.kind === piece.kind) row[row.length - 1] = { ...last, text: last.text + piece.text };
  else row.push(piece);
}

/**
 * In an edited text, a long paste is one character of plane 16. Text from outside never contains one: such characters
 * are spelled out first, like everything that would act on a terminal.
 */
const FIRST_PASTE = 0x10_0000;
const MAX_TOKENS = 0xff00;

/** A paste with more lines or characters fills the screen, so it is folded. */
const MAX_LINES = 8;
const MAX_CHARACTERS = 1200;

const CONTROL = /(?![\n\t])[\p{Cc}\p{Cs}\u{100000}-\u{10FFFF}]/gu;
const TOKEN = /[\u{100000}-\u{10FFFF}]/gu;

/** The text in a safe form: control characters and lone surrogates are spelled out, line ends are `\n`. */
export const inert = (text: string): string =>
  text.replaceAll(/\r\n?/g, "\n").replaceAll(CONTROL, (character) => visible(character));

interface Folded {
  /** The text itself, or the token of the last paste. */
  readonly text: string;
  readonly pastes: readonly string[];
}

export function folded(paste: string, pastes: readonly string[]): Folded {
  const text = inert(paste);
  if (!isLong(text) || pastes.length >= MAX_TOKENS) return { text, pastes };
  const known = pastes.indexOf(text);
  if (known !== -1) return { text: String.fromCodePoint(FIRST_PASTE + known), pastes };
  return { text: String.fromCodePoint(FIRST_PASTE + pastes.length), pastes: [...pastes, text] };
}

function isLong(text: string): boolean {
  if (text.length > MAX_CHARACTERS) return true;
  return text.split("\n", MAX_LINES + 1).length > MAX_LINES;
}

export const expanded = (text: string, pastes: readonly string[]): string =>
  text.replaceAll(TOKEN, (token) => pastes[placeOf(token)] ?? "");

const placeOf = (token: string): number => (token.codePointAt(0) ?? 0) - FIRST_PASTE;

/** The label of a grapheme that begins with a token; undefined for any other. */
function labelOf(grapheme: string, pastes: readonly string[]): string | undefined {
  const paste = (grapheme.codePointAt(0) ?? 0) < FIRST_PASTE ? undefined : pastes[placeOf(grapheme)];
  if (paste === undefined) return undefined;
  const lines = paste.replace(/\n$/, "").split("\n").length;
  return lines > 1 ? `[pasted ${lines} lines]` : `[pasted ${paste.length} characters]`;
}

/**
 * What a person perceives as one character, and its width on the screen. Parts of emoji that terminals measure
 * differently (selectors, joiners) are not shown; control and format characters are spelled out.
 */
interface Grapheme {
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
export const snapToBoundary = (text: string, at: number): number =>
  at >= text.length ? text.length : boundaryBefore(text, boundaryAfter(text, at));

interface Shown {
  readonly text: string;
  readonly columns: number;
}

const TAB = "    ";

/** One grapheme as drawn. */
function shownOf(grapheme: string): Shown {
  if (grapheme === "\t") return { text: TAB, columns: TAB.length };
  if (grapheme.length === 1 && grapheme >= " " && grapheme <= "~") return { text: grapheme, columns: 1 };
  const text = withoutEmojiParts(visible(grapheme));
  return { text, columns: widthOf(cellsOf(text)) };
}

/** The same text in parts of at most `width` columns; combining marks stay with their character. */
function partsOf({ text, columns }: Shown, width: number): readonly Shown[] {
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
