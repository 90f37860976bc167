import { graphemesOf, partsOf, shownOf } from "./graphemes.ts";

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

export interface Span {
  readonly text: string;
  readonly styles: readonly SpanStyle[];
}

export type SpanRow = readonly Span[];

export const span = (text: string, ...styles: readonly SpanStyle[]): Span => ({ text, styles });
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

function cellsIn(spans: readonly Span[], width: number): readonly Cell[] {
  return spans.flatMap(({ text, styles }) =>
    graphemesOf(text).flatMap((each) =>
      partsOf(shownOf(each.text), width).map((part) => ({ ...part, styles })),
    ),
  );
}

function joined(cells: readonly Cell[]): SpanRow {
  const row: { text: string; styles: readonly SpanStyle[] }[] = [];
  for (const { text, styles } of cells) {
    const last = row.at(-1);
    if (last !== undefined && isSame(last.styles, styles)) last.text += text;
    else row.push({ text, styles });
  }
  return row;
}

/** Rows of at most `width` columns, broken at blanks if possible; `breaks` is off for code, which keeps its blanks. */
export function wrappedSpans(spans: readonly Span[], width: number, breaks = true): readonly SpanRow[] {
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
      rows.push(joined(breaks ? withoutEnd(row) : row));
      row = rest;
      columns = rest.reduce((sum, each) => sum + each.columns, 0);
      blank = 0;
      if (isBlank && breaks) continue;
    }
    row.push(cell);
    columns += cell.columns;
    if (isBlank) blank = row.length;
  }
  const last = joined(breaks ? withoutEnd(row) : row);
  // The row is empty because its only blank had no room.
  return last.length === 0 && rows.length > 0 ? rows : [...rows, last];
}

function withoutEnd(row: readonly Cell[]): readonly Cell[] {
  const last = row.findLastIndex(({ text }) => text !== " ");
  return row.slice(0, last + 1);
}

/** Puts a margin before each row: one for the first, one of the same width for the others. */
export const withMargin = (
  first: readonly Span[],
  others: readonly Span[],
  rows: readonly SpanRow[],
): SpanRow[] =>
  rows.map((row, at) => [...(at === 0 ? first : others), ...row].filter(({ text }) => text !== ""));
