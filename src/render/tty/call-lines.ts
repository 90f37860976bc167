/** A call in lines: one that has ended, and one that a person is asked about. */
import type { MatchedRule } from "../../core/decision.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import { visibleLine } from "../../core/visible.ts";
import { formatDuration } from "../../core/wording.ts";
import {
  type Cell,
  cellsOf,
  columnsOf,
  fitToWidth,
  mark,
  rowsOf,
  widthOfStream,
  wrapped,
} from "./columns.ts";
import { type Output, styleText } from "./output.ts";

type Ended = Extract<AgentEvent, { readonly type: "call.ended" }>;
type Decided = Extract<AgentEvent, { readonly type: "call.decided" }>;

export interface ShownCall {
  readonly tool: string;
  readonly target: string;
  /** Undefined if the input was invalid. */
  readonly decided: Decided | undefined;
}

const MARKS = {
  ok: ["green", "done"],
  failed: ["red", "failed"],
  invalid: ["red", "failed"],
  timed_out: ["red", "failed"],
  cancelled: ["yellow", "failed"],
  denied: ["yellow", "refused"],
  blocked: ["yellow", "refused"],
} as const;

const INDENT = "    ";
/** Fewest columns that a target gets. */
const MIN_TARGET = 12;
/** Most columns of a tool's name, since a model may invent one of any length. */
const MAX_TOOL_NAME = 32;

/** One call with its verdict and its result; a second line if the reason does not fit on the first. */
export function callLine(call: ShownCall, ended: Ended, stream: Output, indent = ""): string {
  const [colour, name] = MARKS[ended.kind];
  const marked = mark(name, stream);
  const tool = fitToWidth(call.tool, MAX_TOOL_NAME);
  const ending = endingOf(call, ended);
  const suffix = suffixOf(call, ended);
  const width = widthOfStream(stream);
  const room = width - columnsOf(`${indent}${marked} ${tool} ${suffix}`);
  const { target, below } = dividedLine(call.target, ending, room);
  const first = [
    `${indent}${styleText(colour, marked, { stream })}`,
    styleText("bold", tool, { stream }),
    ...(target === "" ? [] : [target]),
    ...(below || ending === "" ? [] : [` ${styleText(colour, ending, { stream })}`]),
  ].join(" ");
  const lines = below ? wrapped(ending, width - columnsOf(indent) - INDENT.length) : [];
  return [
    `${first}${suffix === "" ? "" : styleText("dim", suffix, { stream })}`,
    ...lines.map((line) => `${indent}${INDENT}${styleText(colour, line, { stream })}`),
  ].join("\n");
}

/** Divides a line between target and result; the target may take up to half of it. */
function dividedLine(
  whole: string,
  ending: string,
  room: number,
): { readonly target: string; readonly below: boolean } {
  const needed = ending === "" ? 0 : columnsOf(ending) + 2;
  const least = Math.min(
    columnsOf(fitToWidth(whole, Math.max(MIN_TARGET, room))),
    Math.max(MIN_TARGET, room >> 1),
  );
  const below = needed > room - least;
  return { target: fitToWidth(whole, Math.max(MIN_TARGET, below ? room : room - needed)), below };
}

/** Who allowed the call if the policy asked, and how long it took if it ran. */
function suffixOf({ decided }: ShownCall, { kind, ms }: Ended): string {
  const by = decided?.runs === true && decided.by !== "nobody" ? BY[decided.by] : "";
  const time = kind === "denied" || kind === "invalid" ? "" : formatDuration(ms);
  return [by, time].map((word) => (word === "" ? "" : `  ${word}`)).join("");
}

const BY = { policy: "", mode: "allowed by the mode", contained: "contained", person: "approved", hook: "" };

function endingOf({ decided }: ShownCall, ended: Ended): string {
  const { kind, cause, exit_code } = ended;
  if (kind === "ok") return "";
  if (kind === "timed_out") return "timed out";
  if (kind === "cancelled") return "cancelled";
  const reason = visibleLine(reasonOf(ended));
  if (kind === "denied") return denialOf(decided) ?? `denied: ${reason}`;
  if (kind !== "failed") return `${kind}: ${reason}`;
  const word = WORDS[cause ?? "program"] ?? (exit_code === undefined ? "failed" : `exit ${exit_code}`);
  return reason === "" ? word : `${word}: ${reason}`;
}

/** For calls recorded before events had a reason: the first line of the text, or a command's exit code. */
function reasonOf({ reason, text, exit_code }: Ended): string {
  if (reason !== undefined || exit_code !== undefined) return reason ?? "";
  return text.split("\n", 40).find((line) => line.trim() !== "") ?? "";
}

const WORDS: Readonly<Record<string, string>> = {
  network: "network",
  memory: "out of memory",
  pids: "too many processes",
  disk: "disk full",
};

function denialOf(decided: Decided | undefined): string | undefined {
  const [rule] = decided?.rules ?? [];
  if (decided === undefined || decided.runs) return undefined;
  if (decided.by === "person") return "declined";
  if (rule === undefined) return undefined;
  const who =
    decided.decision === "deny" ? "denied" : decided.by === "mode" ? "the mode forbids it" : "nobody to ask";
  return `${who}: ${visibleLine(rule.reason)} (${visibleLine(rule.id)})`;
}

/** Arguments that describe a call, the most telling first. */
const DESCRIBING_KEYS = ["command", "job", "task", "pattern", "query", "prompt", "title", "path", "id"];
const PATCHED = /^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b\/)?)(\S.*)$/gm;

/** The target of a call, raw and uncut, so it must not be written to a terminal as it is. */
export function targetOf(args: Readonly<Record<string, unknown>>): string {
  const patch = args["patch"];
  if (typeof patch === "string") return [...patch.matchAll(PATCHED)].map(([, name]) => name).join(", ");
  const describing = DESCRIBING_KEYS.map((key) => args[key]).filter((value) => typeof value === "string");
  const values =
    describing.length > 0 ? describing : Object.values(args).filter((value) => typeof value === "string");
  return values.slice(0, 2).join("  ");
}

/** Most columns of the quoted part beside a rule's reason. */
const QUOTED_WIDTH = 60;

type ShownQuestion = Pick<
  Question,
  | "tool"
  | "text"
  | "shown"
  | "effects"
  | "folder"
  | "mode"
  | "writes"
  | "decision"
  | "asks"
  | "grants"
  | "network"
>;

/** Most rows shown to a person; a longer question cannot be approved. */
const MAX_ROWS = 1000;
/** Used if the terminal does not report its height. */
const DEFAULT_HEIGHT = 24;
/** Fewest rows of a page. */
const MIN_PAGE = 5;
/** Rows for a page's own question and for the text above it. */
const OTHER_ROWS = 4;

interface ApprovalPages {
  /** Shown one after the other before the question is asked. */
  readonly pages: readonly string[];
  /** The pages contain the whole question. */
  readonly whole: boolean;
}

/** A question to a person, screen by screen: everything that would run, why it is asked about, and what it can do. */
export function approvalPages(question: ShownQuestion, stream: Output, reserved = OTHER_ROWS): ApprovalPages {
  const rows = questionRows(question, stream);
  const height = Math.max(MIN_PAGE, (stream.rows || DEFAULT_HEIGHT) - reserved);
  const whole = rows.length <= MAX_ROWS;
  const kept = whole ? rows : [...rows.slice(0, height - 1), tooLong(rows.length, stream)];
  const pages = Array.from({ length: Math.ceil(kept.length / height) }, (_, at) =>
    kept
      .slice(at * height, (at + 1) * height)
      .map((row) => `${row}\n`)
      .join(""),
  );
  return { pages, whole };
}

const tooLong = (count: number, stream: Output): string =>
  styleText("bold", `It has ${count} lines: too many to review here, so it cannot be approved.`, {
    stream,
  });

/** The question below each page except the last. */
export const moreQuestion = (page: number, count: number, stream: Output): string =>
  `${styleText("bold", `page ${page} of ${count}`, { stream })}: Enter shows the next, n refuses `;

export interface OfferedAnswers {
  readonly grants: boolean;
  readonly edits: boolean;
  /** The person has seen all of it on the screen. */
  readonly whole: boolean;
}

/** The available answers: each key and its effect. */
export function answersTo({
  grants,
  edits,
  whole,
}: OfferedAnswers): readonly (readonly [key: string, does: string])[] {
  const yes = grants
    ? ([
        ["y", "runs it as it is"],
        ["g", "grants that for this call and runs it"],
        ["s", "for the session"],
        ["a", "always, in your settings"],
      ] as const)
    : ([
        ["y", "once"],
        ["s", "whenever this is asked in this session"],
        ["a", "always (the rule is shown first)"],
      ] as const);
  return [
    ...(whole ? yes : []),
    ["n", "no"],
    ["t", "no, and tells the model why"],
    ...(edits && whole ? [["e", "edits the command"] as const] : []),
  ];
}

export const asksFor = ({ whole }: OfferedAnswers): string => (whole ? "run it?" : "refuse it?");

/** The available answers, followed by the question. */
export function answersText(offered: OfferedAnswers, stream: Output): string {
  const lasts = (key: string): boolean => offered.grants && (key === "g" || key === "s");
  const [first = "", ...all] = answersTo(offered).map(
    ([key, does]) => `${key} ${does}${lasts(key) ? "," : ";"}`,
  );
  const rows = wrapped(`${[first, ...all].join(" ").slice(0, -1)}.`, widthOfStream(stream));
  const asks = styleText("bold", asksFor(offered), { stream });
  return [...rows, `${asks} ${offered.whole ? "[y/N]" : "[n/t]"} `].join("\n");
}

/** What a person said to a question, raw. */
export const approvalWords = ({
  said,
  by,
  text,
  edited,
}: Extract<AgentEvent, { readonly type: "approval" }>): string =>
  edited === undefined
    ? `${by} said ${said === "deny" ? "no" : `yes (${said})`} to: ${text}`
    : `${by} replaced ${text} with: ${edited}`;

/** Everything that is shown to a person before the answers. */
export function questionRows(question: ShownQuestion, stream: Output): readonly string[] {
  const { tool, mode, writes, decision, folder, shown, effects = [], grants = [], network } = question;
  const what = writes && shown !== undefined ? "wants to write" : "wants to run";
  const width = widthOfStream(stream);
  const where = folder === undefined ? [] : wrapped(`in ${visibleLine(folder)}`, width);
  return [
    `${styleText("bold", visibleLine(tool), { stream })} ${what}  (${mode})`,
    ...where,
    ...textRows(question, stream),
    ...shownRows(question, stream),
    ...askingRules(question).flatMap((rule) => ruleRows(rule, question, stream)),
    ...effectRows(effects, width),
    ...wrapped(decision.contained ? CONTAINED : NOT_CONTAINED, width),
    ...(grants.length > 0
      ? wrapped(grantedWith(grants), width)
      : network === undefined
        ? []
        : wrapped(visibleLine(`It cannot work without a network: ${network}.`), width)),
  ];
}

/** Most effects listed one by one; the text contains them all. */
const MAX_EFFECTS = 12;

function effectRows(effects: readonly string[], width: number): readonly string[] {
  if (effects.length === 0) return [];
  const more = effects.length - MAX_EFFECTS;
  const rows = effects
    .slice(0, MAX_EFFECTS)
    .map((each) => `${INDENT}${fitToWidth(each, width - INDENT.length)}`);
  return ["It would:", ...rows, ...(more > 0 ? [`${INDENT}… and ${more} more`] : [])];
}

const CONTAINED =
  "It is contained: no network that was not granted, and it changes only the workspace and temporary files.";
const NOT_CONTAINED =
  "It is not contained: it may read a secret, reach the network, or change something outside the workspace.";

/** A box cannot reach anything that was not granted, whatever the answer. */
const grantedWith = (grants: readonly string[]): string =>
  visibleLine(
    `It cannot work without a network: /grant ${grants.join(" ")} in the chat, --allow-domain ${grants.join(",")} for a run.`,
  );

/** Rules that allow are not a reason to ask; their effects are listed with all others. */
const askingRules = ({ asks, decision }: ShownQuestion): readonly MatchedRule[] => asks ?? decision.rules;

function textRows(question: ShownQuestion, stream: Output): readonly string[] {
  const gutter = mark("quoted", stream);
  const width = widthOfStream(stream) - gutter.length;
  const { text } = question;
  const inside = isInRule(text, askingRules(question));
  const rows: string[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    const cells = cellsOf(line);
    const from = start;
    let at = 0;
    for (const row of rowsOf(cells, width)) {
      const marks = marksBelow(row, (index) => inside(from + at + index));
      const shown = row.map((cell) => cell.shown).join("");
      rows.push(`${gutter}${shown}`);
      // In plain output, the reason quotes the part instead.
      if (marks !== "" && !stream.plain) rows.push(`${gutter}${styleText("yellow", marks, { stream })}`);
      at += row.length;
    }
    start += line.length + 1;
  }
  return rows;
}

/** What would be written, or the input of a tool. */
function shownRows({ shown = "", writes }: ShownQuestion, stream: Output): readonly string[] {
  if (shown === "") return [];
  return shown
    .split("\n")
    .flatMap((line) => quotedRows(line, stream, (row) => (writes ? diffLine(row, line, stream) : row)));
}

/** A whole line inside the gutter. */
export const quotedRows = (
  line: string,
  stream: Output,
  paint = (row: string): string => row,
): readonly string[] => {
  const gutter = mark("quoted", stream);
  const rows = rowsOf(cellsOf(line), widthOfStream(stream) - gutter.length);
  return rows.map((row) => gutter + paint(row.map((cell) => cell.shown).join("")));
};

function marksBelow(row: readonly Cell[], inside: (index: number) => boolean): string {
  return row
    .map(({ columns }, index) => (inside(index) ? "^" : " ").repeat(columns))
    .join("")
    .trimEnd();
}

/** Whether a rule concerns only a part of the text; marking the whole text would say nothing. */
function isInRule(text: string, rules: readonly MatchedRule[]): (at: number) => boolean {
  const spans = rules.map(({ span }) => span).filter(([from, to]) => from > 0 || to < text.trimEnd().length);
  return (at) => spans.some(([from, to]) => at >= from && at < to);
}

function ruleRows(
  { id, reason, span }: MatchedRule,
  { text }: ShownQuestion,
  stream: Output,
): readonly string[] {
  const width = widthOfStream(stream);
  const part = text.slice(...span);
  const quoted =
    part === "" || part.trim() === text.trim()
      ? ""
      : `: ${fitToWidth(part.trim(), Math.min(QUOTED_WIDTH, width - INDENT.length))}`;
  return wrapped(
    `${stream.plain ? "because" : "·"} ${visibleLine(reason)} (${visibleLine(id)})${quoted}`,
    width - INDENT.length,
  ).map((line, at) => (at === 0 ? line : `${INDENT}${line}`));
}

/** Text to be written may be a diff. */
function diffLine(shown: string, line: string, stream: Output): string {
  if (line.startsWith("+")) return styleText("green", shown, { stream });
  return line.startsWith("-") ? styleText("red", shown, { stream }) : shown;
}
