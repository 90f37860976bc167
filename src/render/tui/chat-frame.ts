import { lastName } from "../../core/file-names.ts";
import { visible } from "../../core/visible.ts";
import { fitToWidth, widthOfStream, wrapped } from "../tty/columns.ts";
import type { Status } from "../tty/live-lines.ts";
import { type Output, styleText } from "../tty/output.ts";
import { wordsOf } from "../tty/run-lines.ts";
import type { AnswerRows } from "./block-rows.ts";
import type { ScreenFrame } from "./canvas.ts";
import type { ChatState } from "./chat-state.ts";
import { type EditorRows, rowsOf } from "./text-rows.ts";
import type { EditorState } from "./line-editor.ts";

/** The repainted part: current activity, queued messages, the input, and the facts at the foot. */

/** Answers to choose from; Enter gives the marked one. */
export interface Choosing {
  readonly kind: "choosing";
  readonly asks: string;
  readonly answers: readonly (readonly [key: string, words: string])[];
  readonly at: number;
}

/** Input of a single line of text, apart from messages. */
export interface Writing {
  readonly kind: "writing";
  readonly mark: string;
  readonly editor: EditorState;
}

export interface FrameView {
  readonly state: ChatState;
  /** Undefined while nothing is going on. */
  readonly status: Status | undefined;
  readonly busy: boolean;
  readonly ticks: number;
  readonly queue: readonly string[];
  /** The queue waits for a request of the person that succeeds. */
  readonly held: boolean;
  readonly editor: EditorState;
  readonly asking: Choosing | Writing | undefined;
  /** Keys answer the question. Until they do, nothing looks as if it could be answered. */
  readonly answerable: boolean;
  /** Shown below the input. */
  readonly hints: readonly string[];
  readonly foot: FooterFacts;
}

interface FooterFacts {
  readonly model: string;
  readonly mode: string;
  readonly window: number | undefined;
  readonly hasBox: boolean;
}

const DEFAULT_HEIGHT = 24;
/** Smaller frames need all their rows for the input and the current work. */
const MIN_HEIGHT_OF_FOOT = 3;
const MARK = "› ";
/** Columns of the mark before the input. */
export const MARK_WIDTH = MARK.length;
const MAX_CALLS = 3;
const MAX_QUEUED = 3;
/** Rows of possible completions; one more row counts the rest. */
const HINT_ROWS = 5;
const MAX_HINTS = HINT_ROWS + 1;

/** At least one row less than the screen has, so that it can be repainted in place. */
export function frameOf(view: FrameView, stream: Output, answerRows: AnswerRows): ScreenFrame {
  const width = widthOfStream(stream);
  // Keeps out of the first row: tmux moves what is erased from there into its scrollback, where it would appear twice.
  const height = Math.max(1, (stream.rows || DEFAULT_HEIGHT) - 2);
  const foot = height < MIN_HEIGHT_OF_FOOT ? [] : footRows(view, width, stream);
  const input = inputPart(view, { width, height: height - foot.length, stream });
  const activity = [...callRows(view, width, stream), ...statusRows(view, width, stream)];
  const below = [...activity, ...queueRows(view, width, stream), ...input.rows, ...foot];
  const room = height - below.length - 1;
  const answer = answerPart(view.state, { width, room }, answerRows);
  const above = [...answer, ""];
  const rows = [...above, ...below].slice(-height);
  const cut = above.length + below.length - rows.length;
  const before = above.length + below.length - foot.length - input.rows.length - cut;
  const { cursor } = input;
  return { rows, cursor: cursor === undefined ? undefined : { x: cursor.x, y: before + cursor.y } };
}

/** Most characters of an unfinished answer that are formatted: a screen shows no more. */
const MAX_LIVE = 20_000;

/** The end of the model's current text. */
function answerPart(
  { answer }: ChatState,
  { width, room }: { readonly width: number; readonly room: number },
  answerRows: AnswerRows,
): readonly string[] {
  const { body, line, begun, fence } = answer;
  const all = body + line;
  if (all.trim() === "" || room <= 0) return [];
  // The part cut off above belongs to the same block of code.
  const text =
    all.length <= MAX_LIVE ? all : `${fence === undefined ? "" : `${fence}\n`}${all.slice(-MAX_LIVE)}`;
  const rows = ["", ...answerRows(begun ? text : text.replace(/^\s*\n/, ""), width - 1)];
  return rows.slice(-room);
}

/** The running calls; the one that has been running longest is at the top. */
function callRows({ state, asking }: FrameView, width: number, stream: Output): readonly string[] {
  if (asking !== undefined) return [];
  const running = state.calls.filter(({ decided }) => decided?.runs === true);
  const more = running.length - MAX_CALLS;
  return [
    ...running
      .slice(0, MAX_CALLS)
      .map((call) => styleText("dim", fitToWidth(`▸ ${wordsOf(call)}`, width - 1), { stream })),
    ...(more > 0 ? [styleText("dim", `  and ${more} more`, { stream })] : []),
  ];
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

function statusRows(
  { busy, status, ticks, asking }: FrameView,
  width: number,
  stream: Output,
): readonly string[] {
  if (!busy || asking !== undefined) return [];
  const mark = SPINNER[ticks % SPINNER.length] ?? "";
  const statusText = status === undefined || status.text === "" ? "working" : status.text;
  const words = fitToWidth(statusText, width - 4 - STOPS.length);
  const colour = status?.alarming === true ? "yellow" : "cyan";
  return [`${styleText(colour, `${mark} ${words}`, { stream })}${styleText("dim", STOPS, { stream })}`];
}

const STOPS = "  Esc stops it";

function queueRows({ queue, held }: FrameView, width: number, stream: Output): readonly string[] {
  const more = queue.length - MAX_QUEUED;
  const rows = queue.slice(0, MAX_QUEUED).map((text) => fitToWidth(`queued: ${text}`, width - 3));
  const words = held
    ? "not sent: goes out after your next message; Esc takes it back"
    : "Up takes the last one back";
  const how = queue.length === 0 ? [] : [fitToWidth(words, width - 3)];
  return [...rows, ...(more > 0 ? [`and ${more} more`] : []), ...how].map((row) =>
    styleText("dim", `  ${row}`, { stream }),
  );
}

interface Part {
  readonly rows: readonly string[];
  readonly cursor: ScreenFrame["cursor"];
}

interface Room {
  readonly width: number;
  readonly height: number;
  readonly stream: Output;
}

function inputPart(view: FrameView, room: Room): Part {
  const { asking } = view;
  if (asking?.kind === "choosing") return choosingPart(asking, view.answerable, room);
  if (asking !== undefined && !view.answerable) return { rows: [], cursor: undefined };
  const { mark, editor } = asking ?? { mark: MARK, editor: view.editor };
  const edited = editorPart(editor, mark, room);
  const { stream, width, height } = room;
  const hints = view.hints
    .slice(0, MAX_HINTS)
    .map((hint) => styleText("dim", fitToWidth(hint, width - 1), { stream }));
  return { ...edited, rows: [...edited.rows, ...hints].slice(0, height) };
}

/** The rows around the cursor, as many as fit. */
function editorPart(editor: EditorState, mark: string, { width, height, stream }: Room): Part {
  const laid: EditorRows = rowsOf(editor, width - mark.length);
  const most = Math.max(1, Math.min(12, Math.floor(height / 3)));
  const first = Math.max(0, Math.min(laid.row - Math.floor(most / 2), laid.rows.length - most));
  const kept = laid.rows.slice(first, first + most);
  const rows = kept.map((pieces, at) => {
    const text = pieces
      .map(({ kind, text }) => (kind === "paste" ? styleText("cyan", text, { stream }) : text))
      .join("");
    const isFirst = first + at === 0;
    const hidden = at === 0 && first > 0;
    const lead = isFirst ? mark : (hidden ? "…" : " ").padEnd(mark.length);
    return styleText(isFirst ? "bold" : "dim", lead, { stream }) + text;
  });
  const below = [...searchRow(editor, width, stream), ...asideRow(editor, width, stream)];
  return {
    rows: [...rows, ...below],
    cursor: { x: mark.length + laid.column, y: laid.row - first },
  };
}

/** The text set aside last, which comes back first. */
function asideRow({ aside }: EditorState, width: number, stream: Output): readonly string[] {
  const last = aside.at(-1);
  if (last === undefined) return [];
  const many = aside.length > 1 ? ` (of ${aside.length})` : "";
  const words = `aside${many}, Ctrl-S brings it back: ${visible(last).replaceAll(/\s+/g, " ")}`;
  return [styleText("dim", fitToWidth(`  ${words}`, width - 1), { stream })];
}

function searchRow({ search }: EditorState, width: number, stream: Output): readonly string[] {
  if (search === undefined) return [];
  const found =
    search.found === undefined && search.query !== "" ? "nothing found for" : "earlier messages with";
  return [styleText("dim", fitToWidth(`  ${found}: ${search.query}`, width - 1), { stream })];
}

/** The answer that Enter gives also stands out without colours. On a small screen, it stays in view. */
function choosingPart({ asks, answers, at }: Choosing, answerable: boolean, room: Room): Part {
  const { width, height, stream } = room;
  const parts = answers.map(([key, words], place) => {
    const isMarked = answerable && place === at;
    const label = `${isMarked ? "❯" : " "} ${key}  `;
    return wrapped(words, width - 1 - label.length).map((part, nth) => {
      const row = (nth === 0 ? label : " ".repeat(label.length)) + part;
      return isMarked ? styleText(["bold", "cyan"], row, { stream }) : row;
    });
  });
  const asked = styleText("bold", fitToWidth(visible(asks), width - 1), { stream });
  const keys = answerable ? "pick by key or arrows, then press Enter" : "";
  const all = [asked, ...parts.flat(), styleText("dim", fitToWidth(keys, width - 1), { stream })];
  if (all.length <= height) return { rows: all, cursor: undefined };
  const ends = 1 + parts.slice(0, at + 1).flat().length;
  const first = Math.max(0, ends - height);
  return { rows: all.slice(first, first + height), cursor: undefined };
}

/** Facts from left to right as far as there is room, most useful first. */
function footRows({ state, foot, asking }: FrameView, width: number, stream: Output): readonly string[] {
  if (asking !== undefined) return [];
  const { context, spent } = state;
  const { model, mode, window, hasBox } = foot;
  const facts = [
    fitToWidth(lastName(model), 32),
    mode,
    ...(context === undefined
      ? []
      : [
          window === undefined
            ? `${shortCount(context)} in context`
            : `${Math.min(999, Math.round((100 * context) / window))} % of ${shortCount(window)}`,
        ]),
    ...(spent.tokens === 0 ? [] : [`${shortCount(spent.tokens)} tokens`]),
    ...(spent.cost === null || spent.cost === 0 ? [] : [`cost ${spent.cost.toPrecision(2)}`]),
    hasBox ? "box open" : "no box yet",
  ];
  let row = "";
  for (const fact of facts) {
    const longer = row === "" ? fact : `${row} · ${fact}`;
    if (longer.length > width - 3) break;
    row = longer;
  }
  return [styleText("dim", `  ${row}`, { stream })];
}

const shortCount = (count: number): string =>
  count < 1000
    ? String(count)
    : count < 100_000
      ? `${(count / 1000).toFixed(1)}k`
      : `${Math.round(count / 1000)}k`;

/** Whole completions, as many as fit; the rest is counted. */
export function hintRows(hits: readonly string[], width: number): readonly string[] {
  const rows: string[] = [];
  let shown = 0;
  for (const hit of hits) {
    const word = fitToWidth(hit, width - 2);
    const last = rows.at(-1);
    if (last !== undefined && last.length + 2 + word.length <= width)
      rows[rows.length - 1] = `${last}  ${word}`;
    else if (rows.length === HINT_ROWS) break;
    else rows.push(`  ${word}`);
    shown += 1;
  }
  return shown === hits.length ? rows : [...rows, `  and ${hits.length - shown} more`];
}
