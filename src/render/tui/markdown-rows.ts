import { visiblePieces } from "../../core/visible.ts";
import { type ColouredLine, colouredLine, inlineSpans } from "./markdown-spans.ts";
import {
  rowWidth,
  type StyledText,
  span,
  type SpanRow,
  type SpanStyle,
  withMargin,
  wrappedSpans,
} from "./text-rows.ts";

/**
 * Renders Markdown that arrives in pieces of any size as rows for a screen of a given width. A line is read when it is
 * complete, and its rows never change. Only a table is held back until it ends, within a bound, because the widest row
 * determines its columns. `open` shows unfinished text as it will be if nothing follows. Control characters are made
 * visible.
 */
export class MarkdownRows {
  readonly #width: number;
  readonly #plain = visiblePieces();
  #line = "";
  #state: State = START;
  #looked = 0;

  constructor(width: number) {
    this.#width = Math.max(MIN_WIDTH, width);
  }

  /** The rows that are newly complete. */
  push(text: string): readonly SpanRow[] {
    return this.#take(this.#plain.push(text));
  }

  /** The remaining rows; after that, a new text begins. */
  end(): readonly SpanRow[] {
    const rows = this.#take(this.#plain.end());
    const last = this.#line === "" ? [] : this.#read(this.#line, true);
    const tableRows = withoutTable(this.#state, this.#width);
    this.#line = "";
    this.#state = START;
    return [...rows, ...last, ...tableRows];
  }

  /** The rows of what is not complete yet. */
  open(): readonly SpanRow[] {
    this.#looked += this.#line.length + tableLength(this.#state);
    const { rows, state } =
      this.#line === ""
        ? { rows: [], state: this.#state }
        : readLine(this.#state, openLine(this.#line, this.#state), this.#width, { open: true, ends: true });
    return [...rows, ...withoutTable(state, this.#width)];
  }

  /** Number of characters examined so far, including repeated examinations. */
  get looked(): number {
    return this.#looked;
  }

  #take(text: string): readonly SpanRow[] {
    const whole = this.#line + text;
    const rows: SpanRow[] = [];
    let from = 0;
    for (;;) {
      const end = whole.slice(from, from + MAX_LINE + 1).indexOf("\n");
      if (end === -1 && whole.length - from <= MAX_LINE) break;
      const to = end === -1 ? cutAt(whole, from + MAX_LINE, this.#state.fence === undefined) : from + end;
      for (const row of this.#read(whole.slice(from, to), end !== -1)) rows.push(row);
      from = end === -1 ? to : to + 1;
    }
    this.#line = whole.slice(from);
    return rows;
  }

  #read(line: string, ends: boolean): readonly SpanRow[] {
    this.#looked += line.length;
    const { rows, state } = readLine(this.#state, line, this.#width, { open: false, ends });
    this.#state = state;
    return rows;
  }
}

/** Renders a whole text at once, for example for another width. */
export function markdownRows(text: string, width: number): readonly SpanRow[] {
  const rows = new MarkdownRows(width);
  return [...rows.push(text), ...rows.end()];
}

const MIN_WIDTH = 10;
/** A longer line is read in parts. */
const MAX_LINE = 4000;
/** A longer table keeps the widths that it has at this length. */
const MAX_TABLE = 100;
const MAX_DEPTH = 6;
const INDENT = 2;
/** Least room for the text after marks. */
const MIN_ROOM = 2;

/** A longer word may be cut. */
const MAX_WORD = 200;

/** After a blank if there is one and words are wrapped; never inside a surrogate pair. */
function cutAt(text: string, at: number, wraps: boolean): number {
  const word = wraps ? MAX_WORD - 1 - text.slice(at - MAX_WORD, at).lastIndexOf(" ") : MAX_WORD;
  if (word < MAX_WORD) return at - word;
  return /[\uD800-\uDBFF]/.test(text[at - 1] ?? "") ? at - 1 : at;
}

interface Fence {
  readonly mark: string;
  readonly language: string;
  /** Depth of the quote around the block. */
  readonly depth: number;
  readonly carried: ColouredLine["open"];
}

interface State {
  /** The block of code to which the next line belongs. */
  readonly fence: Fence | undefined;
  /** Lines that may form a table: head, rule, other rows. */
  readonly tableLines: readonly string[];
  /** A table whose column widths are fixed. */
  readonly table: Table | undefined;
  /** The middle of a long line. */
  readonly inLine: boolean;
  /** The row above is missing or blank. */
  readonly afterBlank: boolean;
}

const START: State = { fence: undefined, tableLines: [], table: undefined, inLine: false, afterBlank: true };

const tableLength = ({ tableLines }: State): number => tableLines.reduce((sum, line) => sum + line.length, 0);

interface ReadLine {
  readonly rows: readonly SpanRow[];
  readonly state: State;
}

interface LinePart {
  /** The line may still grow. */
  readonly open: boolean;
  /** This is the last part of its line. */
  readonly ends: boolean;
}

function readLine(state: State, line: string, width: number, how: LinePart): ReadLine {
  const inLine = !how.ends;
  if (state.fence !== undefined) return inFence(state, state.fence, line, width, inLine);
  if (state.inLine) {
    const rows = wrappedSpans(inlineSpans(line, how.open), width);
    return { rows, state: { ...START, inLine, afterBlank: false } };
  }
  if (inLine) return withHeldRows(state, width, textRead(line, width, how), true);
  const table = inTable(state, line, width);
  if (table !== undefined) return table;
  if (line.trim() === "") {
    const rows = state.afterBlank ? [] : [[]];
    return withHeldRows(state, width, { rows, state: START }, false);
  }
  if (line.includes("|")) {
    const { rows } = withHeldRows(state, width, { rows: [], state: START }, false);
    return { rows, state: { ...START, tableLines: [line], afterBlank: false } };
  }
  return withHeldRows(state, width, textRead(line, width, how), false);
}

/** The held lines are not a table, or the table ends before this line. */
function withHeldRows(state: State, width: number, read: ReadLine, inLine: boolean): ReadLine {
  return { rows: [...withoutTable(state, width), ...read.rows], state: { ...read.state, inLine } };
}

function inTable(state: State, line: string, width: number): ReadLine | undefined {
  const [head, rule] = state.tableLines;
  if (state.table !== undefined)
    return line.includes("|") ? { rows: tableRow(state.table, line), state } : undefined;
  if (head === undefined) return undefined;
  const fits = rule === undefined ? isTableRule(line, head) : line.includes("|");
  if (!fits) return undefined;
  const tableLines = [...state.tableLines, line];
  if (tableLines.length < MAX_TABLE) return { rows: [], state: { ...state, tableLines } };
  const table = tableOf(tableLines[0] ?? "", tableLines[1] ?? "", tableLines.slice(2), width);
  return { rows: withoutTable({ ...state, tableLines }, width), state: { ...state, tableLines: [], table } };
}

/** The rows of the held lines: a table, or ordinary text. */
function withoutTable({ tableLines }: State, width: number): readonly SpanRow[] {
  const [head, rule, ...lines] = tableLines;
  if (head === undefined) return [];
  const table = rule === undefined ? undefined : tableOf(head, rule, lines, width);
  if (table === undefined)
    return tableLines.flatMap((line) => textRead(line, width, { open: false, ends: true }).rows);
  return [
    ...tableRow(table, head, "bold"),
    tableRule(table),
    ...lines.flatMap((line) => tableRow(table, line)),
  ];
}

const QUOTE = /^(?: {0,3}> ?)+/;
const FENCE = /^ {0,40}(`{3,20}|~{3,20}) {0,3}(([\w+#.-]{0,30})[^`]{0,200})$/;
const HEADING = /^ {0,3}(#{1,6})\s{1,12}(?=\S)/;
const LINE = /^ {0,3}([-*_])(?:[ \t]{0,3}\1){2,}\s*$/;
const ITEM = /^(\s{0,40})([-*+]|\d{1,4}[.)])(\s{1,12})(\[[ xX]\]\s)?(?=\S)/;

function textRead(line: string, width: number, { open }: LinePart): ReadLine {
  const quote = QUOTE.exec(line)?.[0] ?? "";
  const depth = quote.split(">").length - 1;
  const bars = margin(depth, width);
  const room = width - bars.reduce((sum, { text }) => sum + text.length, 0);
  const rest = line.slice(quote.length);
  const fence = FENCE.exec(rest);
  if (fence !== null && !open) {
    const [, mark = "", infoText = "", language = ""] = fence;
    const rows = infoText === "" ? [] : withMargin(bars, bars, wrappedSpans([span(infoText, "dim")], room));
    return { rows, state: { ...START, fence: { mark, language, depth, carried: undefined } } };
  }
  return {
    rows: withMargin(bars, bars, blockRows(rest, room, open)),
    state: { ...START, afterBlank: false },
  };
}

/** A deep quote gets only as many bars as leave half the width for text. */
const margin = (depth: number, width: number): readonly StyledText[] =>
  depth === 0
    ? []
    : [span("│ ".repeat(Math.max(1, Math.min(depth, MAX_DEPTH, Math.floor(width / 4) - 1))), "dim")];

function blockRows(line: string, width: number, open: boolean): readonly SpanRow[] {
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const words = withoutEnd(line.slice(heading[0].length));
    return wrappedSpans(
      inlineSpans(words, open).map(({ text, styles }) => ({ text, styles: [...styles, "heading"] })),
      width,
    );
  }
  if (LINE.test(line) && !open) return [[span("─".repeat(Math.max(1, width)), "dim")]];
  const item = ITEM.exec(line);
  if (item === null) return indented(line, width, open);
  const [whole, indent = "", sign = "", , task] = item;
  const mark = task === undefined ? (/\d/.test(sign) ? sign : "•") : task[1] === " " ? "☐" : "☑";
  const depth = Math.max(0, Math.min(depthOf(indent, width), width - mark.length - 1 - MIN_ROOM));
  const first = `${" ".repeat(depth)}${mark} `;
  const others = " ".repeat(first.length);
  const rows = wrappedSpans(inlineSpans(line.slice(whole.length), open), width - first.length);
  return withMargin([span(first)], [span(others)], rows);
}

/** Deep indentation leaves half the width for text. */
const depthOf = (indent: string, width: number): number =>
  Math.min(indent.replaceAll("\t", "  ").length, Math.floor(width / (2 * INDENT)) * INDENT - INDENT, 40);

function indented(line: string, width: number, open: boolean): readonly SpanRow[] {
  const text = line.trimStart();
  const blank = [span(" ".repeat(Math.max(0, depthOf(line.slice(0, line.length - text.length), width))))];
  return withMargin(
    blank,
    blank,
    wrappedSpans(inlineSpans(text, open), width - (blank[0]?.text.length ?? 0)),
  );
}

/** Removes the signs that close a heading. */
function withoutEnd(words: string): string {
  const text = words.trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trimEnd() : text;
}

function inFence(state: State, fence: Fence, line: string, width: number, inLine: boolean): ReadLine {
  const quote = fence.depth === 0 || state.inLine ? "" : (QUOTE.exec(line)?.[0] ?? "");
  if (fence.depth > 0 && quote === "" && !state.inLine)
    return readLine({ ...START, afterBlank: false }, line, width, { open: false, ends: !inLine });
  const code = line.slice(quote.length);
  if (!state.inLine && !inLine && closes(code, fence.mark))
    return { rows: [], state: { ...START, afterBlank: false } };
  const bars = [...margin(fence.depth, width), span("  ")];
  const { spans, open } = colouredLine(code, fence.language, fence.carried);
  const rows = wrappedSpans(spans, width - bars.reduce((sum, { text }) => sum + text.length, 0), false);
  return {
    rows: withMargin(bars, bars, rows),
    state: { ...state, inLine, afterBlank: false, fence: { ...fence, carried: open } },
  };
}

function closes(line: string, mark: string): boolean {
  const text = line.trim();
  return text.startsWith(mark) && text === (mark[0] ?? "").repeat(text.length);
}

/** The start of a line that may still become a mark. */
const OPEN_START = /^[\s>]{0,40}(?:#{1,6}|[-*+_]{1,3}|\d{1,9}[.)]?|`{1,20}[^`]{0,40}|~{1,20}[^~]{0,40})?\s*$/;

/** The part of an unfinished line that can be shown, without signs that may still become marks. */
function openLine(line: string, { fence, inLine }: State): string {
  if (inLine) return line;
  if (fence !== undefined) return /^[\s>]*[`~]+\s*$/.test(line) ? "" : line;
  return OPEN_START.test(line) ? "" : line;
}

/** `| --- | :-: |` below a row makes it the head of a table. */
const RULE = /^\s{0,12}\|?\s{0,80}:?-+:?\s{0,80}(?:\|\s{0,80}:?-+:?\s{0,80})*\|?\s{0,80}$/;

const isTableRule = (line: string, head: string): boolean =>
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

interface Table {
  readonly widths: readonly number[];
  readonly toRight: readonly boolean[];
}

/** Column widths that fit the rows, reduced if they exceed the screen; undefined if the table cannot fit. */
function tableOf(head: string, rule: string, lines: readonly string[], width: number): Table | undefined {
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

function tableRow({ widths, toRight }: Table, line: string, style?: SpanStyle): readonly SpanRow[] {
  const cells = cellsOf(line);
  const columns = widths.map((width, at) =>
    wrappedSpans(withStyle(inlineSpans(cells[at] ?? ""), style), width),
  );
  const height = Math.max(...columns.map((rows) => rows.length));
  return Array.from({ length: height }, (_, place) =>
    columns.flatMap((rows, at): readonly StyledText[] => {
      const row = rows[place] ?? [];
      const blank = span(" ".repeat(Math.max(0, (widths[at] ?? 0) - rowWidth(row))));
      const cell = toRight[at] === true ? [blank, ...row] : [...row, blank];
      return at === 0 ? cell : [span(BAR, "dim"), ...cell];
    }),
  ).map((row) => row.filter(({ text }) => text !== ""));
}

const withStyle = (spans: readonly StyledText[], style: SpanStyle | undefined): readonly StyledText[] =>
  style === undefined ? spans : spans.map(({ text, styles }) => ({ text, styles: [...styles, style] }));

const tableRule = ({ widths }: Table): SpanRow => [
  span(widths.map((width) => "─".repeat(width)).join("─┼─"), "dim"),
];
