import { inlineSpans } from "./markdown-inline.ts";
import { rowWidth, type Span, span, type SpanRow, type SpanStyle, wrappedSpans } from "./span-rows.ts";

/** `| --- | :-: |` below a row makes it the head of a table. */
const RULE = /^\s{0,12}\|?\s{0,80}:?-+:?\s{0,80}(?:\|\s{0,80}:?-+:?\s{0,80})*\|?\s{0,80}$/;

export const isTableRule = (line: string, head: string): boolean =>
  line.includes("-") && RULE.test(line) && cellsOf(line).length === cellsOf(head).length;

/** A bar after a backslash, or inside code, is text. */
function cellsOf(line: string): readonly string[] {
  const cells: string[] = [""];
  let inCode = false;
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at] ?? "";
    if (character === "`") inCode = !inCode;
    if (character === "\\" && line[at + 1] === "|") {
      cells.push(`${cells.pop() ?? ""}|`);
      at += 1;
    } else if (character === "|" && !inCode) cells.push("");
    else cells.push((cells.pop() ?? "") + character);
  }
  const trimmed = cells.map((cell) => cell.trim());
  if (trimmed[0] === "" && trimmed.length > 1) trimmed.shift();
  if (trimmed.at(-1) === "" && trimmed.length > 1) trimmed.pop();
  return trimmed;
}

const BAR = " │ ";
const MIN_COLUMN = 4;
const MAX_COLUMNS = 24;

export interface Table {
  readonly widths: readonly number[];
  readonly toRight: readonly boolean[];
}

/** Column widths that fit the rows, reduced if they exceed the screen; undefined if the table cannot fit. */
export function tableOf(
  head: string,
  rule: string,
  lines: readonly string[],
  width: number,
): Table | undefined {
  const toRight = cellsOf(rule).map((cell) => cell.endsWith(":") && !cell.startsWith(":"));
  const count = toRight.length;
  const room = width - BAR.length * (count - 1);
  if (count > MAX_COLUMNS || room < count * MIN_COLUMN) return undefined;
  const rows = [head, ...lines].map(cellsOf);
  const wanted = toRight.map((_, column) =>
    Math.max(1, ...rows.map((cells) => rowWidth(inlineSpans(cells[column] ?? "")))),
  );
  return { widths: sharedWidths(wanted, room), toRight };
}

/** Narrow columns get what they need; the others share the rest. */
function sharedWidths(wanted: readonly number[], room: number): readonly number[] {
  const widths = wanted.map(() => 0);
  let left = room;
  const order = [...wanted.keys()].toSorted((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  for (const [place, column] of order.entries()) {
    const own = Math.min(wanted[column] ?? 0, Math.floor(left / (order.length - place)));
    widths[column] = own;
    left -= own;
  }
  return widths;
}

export function tableRow({ widths, toRight }: Table, line: string, style?: SpanStyle): readonly SpanRow[] {
  const cells = cellsOf(line);
  const columns = widths.map((width, at) =>
    wrappedSpans(withStyle(inlineSpans(cells[at] ?? ""), style), width),
  );
  const height = Math.max(...columns.map((rows) => rows.length));
  return Array.from({ length: height }, (_, place) =>
    columns.flatMap((rows, at): readonly Span[] => {
      const row = rows[place] ?? [];
      const blank = span(" ".repeat(Math.max(0, (widths[at] ?? 0) - rowWidth(row))));
      const cell = toRight[at] === true ? [blank, ...row] : [...row, blank];
      return at === 0 ? cell : [span(BAR, "dim"), ...cell];
    }),
  ).map((row) => row.filter(({ text }) => text !== ""));
}

const withStyle = (spans: readonly Span[], style: SpanStyle | undefined): readonly Span[] =>
  style === undefined ? spans : spans.map(({ text, styles }) => ({ text, styles: [...styles, style] }));

export const tableRule = ({ widths }: Table): SpanRow => [
  span(widths.map((width) => "─".repeat(width)).join("─┼─"), "dim"),
];
