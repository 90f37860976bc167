import { type Cell, cellsOf, widthOf } from "./columns.ts";

type Span = readonly [from: number, to: number];

export interface MarkedLine {
  readonly line: string;
  /** What stands below it: blanks, then a mark for each column of the span. */
  readonly blanks: string;
  readonly marks: string;
}

/** The lines of a text that a span touches, each cut around it where it is wider than `width`. An empty span is the place it is at. */
export function markedLines(text: string, [from, to]: Span, width: number): readonly MarkedLine[] {
  const lines: MarkedLine[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    const end = start + line.length;
    const touched = from === to ? from >= start && from <= end : from < end && to > start;
    if (touched && text !== "") {
      lines.push(markedLine(line, [Math.max(from, start) - start, Math.min(to, end) - start], width));
    }
    start = end + 1;
  }
  return lines;
}

/** How much is shown before a span in a line that is cut. */
const BEFORE = 20;
const CUT = "…";

/** No more than this on either side of the beginning of a span is looked at. */
const AROUND = 1000;

function markedLine(text: string, span: Span, width: number): MarkedLine {
  const first = Math.max(0, span[0] - AROUND);
  const last = Math.min(text.length, span[0] + AROUND);
  const cells = cellsOf(text.slice(first, last));
  const [from, to] = [span[0] - first, Math.min(span[1], last) - first];
  const whole = last - first === text.length && widthOf(cells) <= width;
  const near = first === 0 && widthOf(cells.slice(0, to)) < width;
  const start = whole || near ? 0 : startOf(cells, from, width);
  const left = start + first === 0 ? "" : CUT;
  const end = whole ? cells.length : forth(cells, start, width - left.length - CUT.length);
  const right = first + end === text.length ? "" : CUT;
  const marked = widthOf(cells.slice(from, Math.min(to, end)));
  return {
    line:
      left +
      cells
        .slice(start, end)
        .map((cell) => cell.shown)
        .join("") +
      right,
    blanks: " ".repeat(left.length + widthOf(cells.slice(start, from))),
    marks: "^".repeat(Math.max(1, marked)),
  };
}

/** Some columns before a span; more where behind it there is less than fits. */
const startOf = (cells: readonly Cell[], from: number, width: number): number =>
  Math.min(back(cells, from, BEFORE), back(cells, cells.length, width - CUT.length - 1));

/** The cell that is so many columns before. */
function back(cells: readonly Cell[], from: number, columns: number): number {
  let at = from;
  for (let left = columns; at > 0 && left > 0; at -= 1) left -= cells[at - 1]?.columns ?? 0;
  return at;
}

/** The cell behind the last that has its place in so many columns. */
function forth(cells: readonly Cell[], from: number, columns: number): number {
  let at = from;
  for (let left = columns; at < cells.length; at += 1) {
    left -= cells[at]?.columns ?? 0;
    if (left < 0) break;
  }
  return at;
}
