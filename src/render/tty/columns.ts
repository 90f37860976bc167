/** How lines of text are laid out in a terminal: their width, how they are fitted and wrapped, and their marks. */
import { visible, withoutEmojiParts } from "../../core/visible.ts";
import type { Output } from "./output.ts";

/** Characters that take two columns, and characters that take none. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6])/u;
const NARROW_KANA = /^[\uFF61-\uFFDC]/u;
const EMPTY = /^(?:\p{Mn}|\p{Me})/u;

/**
 * Symbols and lines, all of which take a column. Checked first, because compiling such regular expressions takes longer
 * than all their uses.
 */
const isSign = (character: string): boolean =>
  character >= "\u2000" && character < "\u2C00" && !(character >= "\u20D0" && character < "\u2100");

/** Two of these form one flag; a skin tone colours the picture before it. */
const LETTER_OF_FLAG = /^\p{Regional_Indicator}$/u;
const TONE = /^\p{Emoji_Modifier}$/u;
const PICTURE = /^\p{Extended_Pictographic}$/u;

const TAB = 8;

/** A character and its width in a terminal. */
export interface Cell {
  readonly shown: string;
  readonly columns: number;
}

/** The cells of one line, one per UTF-16 unit, so that text offsets apply to them. Tabs become blanks. */
export function cellsOf(line: string): readonly Cell[] {
  const cells: Cell[] = [];
  let column = 0;
  let before = "";
  for (const character of line) {
    const shown = character === "\t" ? " ".repeat(TAB - (column % TAB)) : visible(character);
    const joins =
      (LETTER_OF_FLAG.test(before) && LETTER_OF_FLAG.test(character)) ||
      (PICTURE.test(before) && TONE.test(character));
    const own = shown === character ? columnsOfCharacter(character) : shown.length;
    const columns = joins ? 0 : own;
    before = joins ? "" : character;
    cells.push({ shown, columns });
    if (character.length === 2) cells.push({ shown: "", columns: 0 });
    column += columns;
  }
  return cells;
}

function columnsOfCharacter(character: string): number {
  if (character < "\u0300") return 1;
  if (!isSign(character) && EMPTY.test(character)) return 0;
  return WIDE.test(character) && !NARROW_KANA.test(character) ? 2 : 1;
}

export const widthOf = (cells: readonly Cell[]): number =>
  cells.reduce((width, { columns }) => width + columns, 0);

/** The width of a line of text in a terminal. */
export const columnsOf = (text: string): number => widthOf(cellsOf(text));

/** Like `padEnd`, by the width in a terminal. */
export const padded = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - columnsOf(text)));

/**
 * Rows as lines whose columns are as wide as their widest cell; cells longer than `most` do not count for that width.
 */
export function alignedRows(
  rows: readonly (readonly string[])[],
  most = Number.POSITIVE_INFINITY,
): readonly string[] {
  const widthAt = (column: number): number =>
    Math.max(0, ...rows.map((row) => columnsOf(row[column] ?? "")).filter((width) => width <= most));
  const widths = (rows[0] ?? []).map((_, column) => widthAt(column));
  return rows.map((row) =>
    row
      .map((cell, column) => padded(cell, widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

const CUT = "…";
/** Most characters of a text that are examined, half of them at each end. */
const MAX_MEASURED = 4000;
/** Used if a stream does not report its width. */
const WIDTH = 120;
const MIN_WIDTH = 20;

export const widthOfStream = (stream: Output): number => Math.max(MIN_WIDTH, stream.columns || WIDTH);

/** Fits a text on one line of at most `width` columns; the middle of a longer text is cut out. */
export function fitToWidth(text: string, width: number): string {
  const short =
    text.length <= MAX_MEASURED
      ? text
      : `${text.slice(0, MAX_MEASURED / 2)}${CUT}${text.slice(-MAX_MEASURED / 2)}`;
  const cells = cellsOf(visible(short).replaceAll("\n", "\u240A").replaceAll("\t", " "));
  if (widthOf(cells) <= width) return textOf(cells);
  const head = fittingCells(cells, Math.ceil((width - 1) / 2));
  const tail = fittingCells(cells.toReversed(), width - 1 - widthOf(head)).toReversed();
  // A cell without columns belongs to the character before it: the second half of a flag, an accent.
  const begins = tail.findIndex(({ columns }) => columns > 0);
  const whole = begins === -1 ? [] : tail.slice(begins);
  return `${textOf(head)}${CUT}${textOf(whole)}`;
}

function fittingCells(cells: readonly Cell[], width: number): readonly Cell[] {
  let left = width;
  const end = cells.findIndex(({ columns }) => (left -= columns) < 0);
  return end === -1 ? cells : cells.slice(0, end);
}

const textOf = (cells: readonly Cell[]): string => cells.map((cell) => cell.shown).join("");

/** Wraps a text into lines of at most `width` columns, at blanks if possible. Each word is measured once. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  let columns = 0;
  for (const word of withoutEmojiParts(visible(text)).split(/\s+/u))
    for (const piece of rowsOf(cellsOf(word), width)) {
      const own = widthOf(piece);
      if (line === "") [line, columns] = [textOf(piece), own];
      else if (columns + 1 + own <= width) [line, columns] = [`${line} ${textOf(piece)}`, columns + 1 + own];
      else {
        lines.push(line);
        [line, columns] = [textOf(piece), own];
      }
    }
  return line === "" ? lines : [...lines, line];
}

/** Most columns by which a row's label indents the rows below it. */
const MAX_LABEL = 24;

/**
 * Wraps a row that is too long; further lines are indented to the text after the row's label (which ends with two
 * blanks), or as far as the row itself.
 */
export function wrappedRow(row: string, width: number): readonly string[] {
  const label = /^ *(?:\S+(?: \S+){0,3} {2,})?/.exec(row)?.[0] ?? "";
  const head = label.length <= Math.min(MAX_LABEL, width / 2) ? label : "";
  return wrapped(row.slice(head.length), width - head.length).map(
    (line, at) => (at === 0 ? head : " ".repeat(head.length)) + line,
  );
}

/**
 * Wraps text that starts `indent` columns into a terminal's line and indents its further lines; returns it unchanged if
 * the output is not a terminal.
 */
export function hangingIndent(
  text: string,
  indent: number,
  { columns = 0 }: Pick<Output, "columns">,
): string {
  // Leaves the last column free: some terminals wrap after it.
  const room = columns - indent - 1;
  return room < MIN_WIDTH ? text : wrapped(text, room).join(`\n${" ".repeat(indent)}`);
}

/** Breaks cells into lines as a terminal does; combining marks stay with their character. */
export function rowsOf(cells: readonly Cell[], width: number): readonly (readonly Cell[])[] {
  const rows: Cell[][] = [[]];
  let left = width;
  for (const cell of cells) {
    if (cell.columns > left) {
      rows.push([]);
      left = width;
    }
    rows.at(-1)?.push(cell);
    left -= cell.columns;
  }
  return rows;
}

/** The marks that lines start with, and the words that replace them in plain output. */
const MARKS = {
  done: ["✓", "done:"],
  failed: ["✗", "failed:"],
  refused: ["⊘", "refused:"],
  task: ["▸", "task:"],
  doing: ["▸", "doing:"],
  pending: ["·", "to do:"],
  dropped: ["✗", "dropped:"],
  instead: ["~", "instead:"],
  stopped: ["-", "stopped:"],
  warning: ["!", "warning:"],
  loosens: ["!", "loosens:"],
  look: ["?", "look:"],
  waiting: ["~", "waiting:"],
  shorter: ["≡", "note:"],
  added: ["+", "added"],
  modified: ["~", "changed"],
  deleted: ["-", "deleted"],
  /** Starts every line of a text from outside, so none of them can look like our own. */
  quoted: ["  │ ", "  | "],
  between: [" · ", ", "],
  then: [" → ", ", then "],
} as const;

export const mark = (name: keyof typeof MARKS, stream: Output): string => MARKS[name][stream.plain ? 1 : 0];
