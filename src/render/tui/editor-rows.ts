import { graphemesOf, partsOf, type Shown, shownOf } from "./graphemes.ts";
import { labelOf } from "./paste-tokens.ts";

/** The parts of an edited text that are drawn. */
export interface Edited {
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
