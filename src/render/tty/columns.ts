import { visible } from "../../core/visible.ts";

/** Characters that take two columns, and such that take none. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6])/u;
const NARROW_KANA = /^[\uFF61-\uFFDC]/u;
const EMPTY = /^(?:\p{Mn}|\p{Me})/u;

const TAB = 8;

/** A character as it stands in a terminal. */
export interface Cell {
  readonly shown: string;
  readonly columns: number;
}

/** The cells of one line, one for each UTF-16 unit, so that offsets of the text are theirs. Tabs are blanks. */
export function cellsOf(line: string): readonly Cell[] {
  const cells: Cell[] = [];
  let column = 0;
  for (const character of line) {
    const shown = character === "\t" ? " ".repeat(TAB - (column % TAB)) : visible(character);
    const columns = shown === character ? columnsOf(character) : shown.length;
    cells.push({ shown, columns });
    if (character.length === 2) cells.push({ shown: "", columns: 0 });
    column += columns;
  }
  return cells;
}

function columnsOf(character: string): number {
  if (character < "\u0300") return 1;
  if (EMPTY.test(character)) return 0;
  return WIDE.test(character) && !NARROW_KANA.test(character) ? 2 : 1;
}

export const widthOf = (cells: readonly Cell[]): number =>
  cells.reduce((width, { columns }) => width + columns, 0);
