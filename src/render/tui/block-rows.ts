import { truncate, plural } from "../../core/wording.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { callLine } from "../tty/call-lines.ts";
import { fitToWidth, widthOfStream, wrapped } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";
import { eventLine, planLines } from "../tty/run-lines.ts";
import type { Block, EndedChatCall } from "./chat-state.ts";
import { markdownRows } from "./markdown-rows.ts";
import type { SpanStyle } from "./text-rows.ts";

/** Blocks of a chat as rows that fit the screen; text from outside is made visible and has no effect. */

const INDENT = "    ";
const BAR = "  │ ";

/** Formats a reply as rows that fit the width. */
export type AnswerRows = (text: string, width: number) => readonly string[];

/** The look of each span style on this screen. */
const LOOKS: Readonly<Record<SpanStyle, Parameters<typeof styleText>[0]>> = {
  bold: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "cyan",
  link: "underline",
  heading: "bold",
  dim: "dim",
  keyword: "magenta",
  string: "green",
  number: "yellow",
  comment: "dim",
  added: "green",
  removed: "red",
};

/** Replies are Markdown; each paragraph is formatted on its own. */
export const answerRowsOn =
  (stream: Output): AnswerRows =>
  (text, width) =>
    markdownRows(text, width).map((row) =>
      row
        .map(({ text: part, styles }) =>
          styles.reduce((styled, each) => styleText(LOOKS[each], styled, { stream }), part),
        )
        .join(""),
    );

/** The rows of a block, after a blank row if the block begins something new. */
export function blockRows(block: Block, stream: Output, answerRows: AnswerRows): readonly string[] {
  const width = widthOfStream(stream);
  switch (block.kind) {
    case "said":
      return ["", ...messageRows(block.text, stream)];
    case "answer": {
      const rows = answerRows(block.text.replace(/^\s*\n/, "").trimEnd(), width - 1);
      return ["", ...rows];
    }
    case "call":
      return callRows(block.call, stream);
    case "whole":
      return wholeRows(block.call, stream);
    case "plan":
      return linesIn(planLines(block.plan, block.before, stream));
    case "event":
      return linesIn(eventLine(block.event, stream, block.event.agent === undefined ? "" : INDENT));
    case "lines":
      return linesIn(block.text);
  }
}

const linesIn = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** Most rows shown of the person's own message. */
const MAX_SAID = 12;

/** The person's message, distinct from the answer. */
function messageRows(text: string, stream: Output): readonly string[] {
  const room = widthOfStream(stream) - 3;
  const rows = plainRows(text, room);
  const more = rows.length - MAX_SAID;
  return [
    ...rows.slice(0, MAX_SAID).map((row, at) => {
      const mark = styleText("cyan", at === 0 ? "› " : "  ", { stream });
      return mark + styleText("bold", row, { stream });
    }),
    ...(more > 0 ? [styleText("dim", `  … ${more} more lines`, { stream })] : []),
  ];
}

/** Longer lines are cut: nobody reads them, and wrapping them takes long. */
const MAX_LINE = 8000;

/** Unformatted text, wrapped; lines keep their indentation. */
export function plainRows(text: string, width: number): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const cut = truncate(line, MAX_LINE);
    const depth = /^[ \t]{0,24}/.exec(cut)?.[0].replaceAll("\t", "  ") ?? "";
    const room = Math.max(8, width - depth.length);
    const rows = wrapped(cut.trim(), room);
    return rows.length === 0 ? [""] : rows.map((row) => depth + row);
  });
}

/** Most rows of a call's output that are shown at once. */
const LAST = { ok: 4, other: 10 } as const;

function callRows(call: EndedChatCall, stream: Output): readonly string[] {
  const indent = call.agent === undefined ? "" : INDENT;
  return [
    ...linesIn(callLine(call, call.ended, stream, indent)),
    ...verdictRows(call, stream, indent),
    ...(call.agent === undefined ? bodyRows(call, stream) : []),
  ];
}

/** Why the call was not simply allowed, unless the line above says so. */
function verdictRows({ decided, ended }: EndedChatCall, stream: Output, indent: string): readonly string[] {
  if (decided === undefined || decided.decision === "allow" || ended.kind === "denied") return [];
  const width = widthOfStream(stream) - indent.length - INDENT.length;
  // The first rule is the strictest; later ones may allow their part.
  return decided.rules.slice(0, 1).map(({ id, reason }) =>
    styleText("dim", `${indent}${INDENT}${fitToWidth(`asked: ${visibleLine(reason)} (${id})`, width)}`, {
      stream,
    }),
  );
}

/** What a person sees without asking: the end of a command's output, or the changes to a file. */
function bodyRows(call: EndedChatCall, stream: Output): readonly string[] {
  const { tool, ended } = call;
  if (ended.kind === "denied" || ended.kind === "invalid") return [];
  const diff = ended.kind === "ok" ? changedLines(call) : [];
  if (diff.length > 0) return quotedRows(diff, { most: MAX_DIFF, from: "start" }, stream);
  if (ended.kind === "ok" && tool !== "bash" && tool !== "task") return [];
  const most = ended.kind === "ok" ? LAST.ok : LAST.other;
  const lines = outputLines(ended.text);
  // The line above already shows this.
  if (lines.length === 1 && ended.reason !== undefined && lines[0]?.includes(ended.reason) === true)
    return [];
  return quotedRows(lines, { most, from: "end" }, stream);
}

const outputLines = (text: string): readonly string[] => {
  const trimmed = text.trimEnd();
  return trimmed === "" ? [] : trimmed.split("\n");
};

interface Part {
  readonly most: number;
  readonly from: "start" | "end";
}

/** One row per line; what does not fit is in the complete output. */
function quotedRows(lines: readonly string[], { most, from }: Part, stream: Output): readonly string[] {
  const width = widthOfStream(stream) - BAR.length - 1;
  const kept = from === "end" ? lines.slice(-most) : lines.slice(0, most);
  const more = lines.length - kept.length;
  const rows = kept.map((line) => styleText("dim", BAR, { stream }) + paintedRow(line, width, stream, from));
  const rest = `${BAR}… ${plural(more, "more line")} (Ctrl-O shows all)`;
  const note = more > 0 ? [styleText("dim", fitToWidth(rest, width + BAR.length), { stream })] : [];
  return from === "end" ? [...note, ...rows] : [...rows, ...note];
}

function paintedRow(line: string, width: number, stream: Output, from: Part["from"]): string {
  const shown = fitToWidth(line, width);
  return from === "start" ? paintedDiffRow(line, shown, stream) : styleText("dim", shown, { stream });
}

function paintedDiffRow(line: string, shown: string, stream: Output): string {
  if (line.startsWith("+")) return styleText("green", shown, { stream });
  if (line.startsWith("-")) return styleText("red", shown, { stream });
  return line.startsWith("@@") ? styleText("cyan", shown, { stream }) : shown;
}

const MAX_DIFF = 16;

/** Removed and added lines, for the tools that change files. */
function changedLines({ tool, args }: EndedChatCall): readonly string[] {
  const of = (key: string): string => {
    const value = args[key];
    return typeof value === "string" ? value : "";
  };
  switch (tool) {
    case "edit_file": {
      const more = Array.isArray(args["edits"]) ? (args["edits"] as unknown[]) : [];
      return [args, ...more].flatMap(editLines);
    }
    case "write_file":
      return textLines(of("content")).map((line) => `+${line}`);
    case "apply_patch":
      return textLines(of("patch")).filter((line) => !/^\*\*\* (?:Begin|End) Patch/.test(line));
    default:
      return [];
  }
}

const textLines = (text: string): readonly string[] =>
  text === "" ? [] : text.replace(/\n$/, "").split("\n");

/** Lines that both sides share at the start or end are not a change. */
function editLines(edit: unknown): readonly string[] {
  if (typeof edit !== "object" || edit === null) return [];
  const { old, new: young } = edit as { readonly old?: unknown; readonly new?: unknown };
  if (typeof old !== "string" || typeof young !== "string") return [];
  const [was, is] = [textLines(old), textLines(young)];
  let head = 0;
  while (head < was.length && head < is.length && was[head] === is[head]) head += 1;
  let tail = 0;
  while (tail < was.length - head && tail < is.length - head && was.at(-1 - tail) === is.at(-1 - tail))
    tail += 1;
  return [
    ...was.slice(Math.max(0, head - 1), head).map((line) => ` ${line}`),
    ...was.slice(head, was.length - tail).map((line) => `-${line}`),
    ...is.slice(head, is.length - tail).map((line) => `+${line}`),
    ...is.slice(is.length - tail, is.length - tail + Math.min(1, tail)).map((line) => ` ${line}`),
  ];
}

/** The call in one row if it fits; otherwise the whole command, or the whole target, below the tool's name. */
function headRows({ tool, target, args }: EndedChatCall, name: string, width: number): readonly string[] {
  const row = `${name}  ${fitToWidth(target, Math.max(10, width - name.length - 12))}`;
  const command = tool === "bash" ? args["command"] : undefined;
  const whole = typeof command === "string" ? command : target;
  if (fitToWidth(whole, MAX_LINE) === row.slice(name.length + 2)) return [row];
  return [name, ...plainRows(visible(whole), width - INDENT.length - 1).map((each) => INDENT + each)];
}

/** Most lines of a call shown on the screen; the session's report has all of them. */
const MAX_WHOLE = 5000;

function wholeRows(call: EndedChatCall, stream: Output): readonly string[] {
  const width = widthOfStream(stream);
  const diff = changedLines(call);
  const lines = [...diff, ...(diff.length > 0 ? [""] : []), ...outputLines(call.ended.text)];
  const more = lines.length - MAX_WHOLE;
  const name = visibleLine(call.tool);
  const paint = (line: string, at: number): readonly string[] =>
    plainRows(visible(line), width - BAR.length - 1).map(
      (row) =>
        styleText("dim", BAR, { stream }) + (at < diff.length ? paintedDiffRow(line, row, stream) : row),
    );
  return [
    "",
    ...headRows(call, name, width).map((row) => styleText("bold", row, { stream })),
    ...lines.slice(0, MAX_WHOLE).flatMap(paint),
    ...(lines.length === 0 ? [`${BAR}no output`] : []),
    ...(more > 0 ? [`${BAR}… ${more} more lines are not shown here: harness report`] : []),
  ];
}
