/** Sessions and notes, listed and whole. */
import type { Message } from "../core/model-provider.ts";
import { planCounts } from "../core/run-record.ts";
import { type Note, parkedIn, type SessionInfo, type SessionRecord } from "../core/session.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { plural } from "../core/wording.ts";
import { ageOf } from "./environment-lines.ts";
import { costWords, type RunCost } from "./report-form.ts";
import { questionRows } from "./tty/call-lines.ts";
import { columnsOf, fitToWidth } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

interface View {
  readonly now: number;
  /** Whether the sessions belong to several workspaces. */
  readonly all: boolean;
  /** Whether each session comes from a file. */
  readonly bundles?: boolean;
}

interface ListedSession extends SessionInfo {
  /** The file that contains the session, if it is not one of this machine. */
  readonly bundle?: string;
}

/** One line per session; on a terminal, titles and models are cut to make it fit. */
export function sessionTable(sessions: readonly ListedSession[], view: View, stream: Output): string {
  const place = [...(view.all ? ["WORKSPACE"] : []), ...(view.bundles === true ? ["BUNDLE"] : [])];
  const head = ["ID", "AGE", "STATUS", "MESSAGES", "MODEL", ...place, "TITLE"];
  return tableOf([head, ...sessions.map((session) => cells(session, view))], stream);
}

function tableOf(whole: readonly (readonly string[])[], stream: Output): string {
  const rows = fittedRows(whole, stream);
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((most, row) => Math.max(most, columnsOf(row[column] ?? "")), 0),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - columnsOf(cell)))
      .join("  ")
      .trimEnd(),
  );
  return lines.map((line, index) => `${index === 0 ? styleText("bold", line, { stream }) : line}\n`).join("");
}

interface ListedState {
  readonly state: string;
  readonly workspace: string | null;
  readonly saved: string;
  readonly changed: readonly string[] | null;
}

/** One line per saved state, with the first paths that differ from the state before it. */
export function savedStateTable(
  states: readonly ListedState[],
  { now, all }: Pick<View, "now" | "all">,
  stream: Output,
): string {
  const head = ["STATE", "AGE", ...(all ? ["WORKSPACE"] : []), "CHANGED SINCE THE STATE BEFORE"];
  const rows = states.map(({ state, workspace, saved, changed }) => [
    visibleLine(state),
    ageOf(now - Date.parse(saved)),
    ...(all ? [workspace === null ? "-" : visibleLine(workspace)] : []),
    changed === null ? "(the first one)" : changedWords(changed),
  ]);
  return tableOf([head, ...rows], stream);
}

const SHOWN_CHANGES = 3;

function changedWords(changed: readonly string[]): string {
  if (changed.length === 0) return "(nothing)";
  const shown = changed
    .slice(0, SHOWN_CHANGES)
    .map((each) => cut(visibleLine(each.toWellFormed()), TITLE_WIDTH));
  const more = changed.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** What was copied out of a saved state, and what is missing in the copy. */
export function copiedStateText({
  state,
  out,
  paths,
  left,
}: {
  readonly state: string;
  readonly out: string;
  readonly paths: number;
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}): string {
  const missing = left.map(
    ({ path, reason }) => `missing  ${visibleLine(path.toWellFormed())}: ${visibleLine(reason)}\n`,
  );
  return `${missing.join("")}${plural(paths, "path")} of ${visibleLine(state)} written to ${visibleLine(out)}\n`;
}

const cells = (session: ListedSession, { now, all, bundles }: View): readonly string[] => [
  visibleLine(session.id),
  ageOf(now - session.changed),
  session.status ?? "-",
  String(session.messages),
  visibleLine(session.model),
  ...(all ? [visibleLine(session.workspace)] : []),
  ...(bundles === true ? [visibleLine(session.bundle ?? "-")] : []),
  cut(visibleLine(session.title), TITLE_WIDTH),
];

const TITLE_WIDTH = 60;
/** The columns that are narrowed, with their widths, in this order until the table fits. */
const NARROWED = [
  ["TITLE", 16],
  ["WORKSPACE", 16],
  ["BUNDLE", 24],
  ["MODEL", 10],
  ["TITLE", 8],
  ["WORKSPACE", 8],
  ["BUNDLE", 12],
  ["MODEL", 6],
] as const;

function fittedRows(
  rows: readonly (readonly string[])[],
  { columns = 0 }: Output,
): readonly (readonly string[])[] {
  const [head = []] = rows;
  const widths = head.map((_, column) => Math.max(...rows.map((row) => columnsOf(row[column] ?? ""))));
  let over = columns > 0 ? widths.reduce((sum, width) => sum + width + 2, -1) - columns : 0;
  for (const [name, least] of NARROWED) {
    const column = head.indexOf(name);
    const width = widths[column] ?? 0;
    const less = Math.max(0, Math.min(over, width - least));
    if (column < 0 || less === 0) continue;
    widths[column] = width - less;
    over -= less;
  }
  return rows.map((row) => row.map((cell, column) => fitToWidth(cell, widths[column] ?? 0)));
}

/** A session in the order of its records. */
export function sessionText(
  info: ListedSession,
  { records, costs }: { readonly records: readonly SessionRecord[]; readonly costs: readonly RunCost[] },
  now: number,
  stream: Output,
): string {
  const dim = (text: string): string => styleText("dim", text, { stream });
  const head = [
    styleText("bold", visibleLine(info.title), { stream }),
    dim(
      `${visibleLine(info.id)}, ${info.status ?? "no turn has ended"}, changed ${ageOf(now - info.changed)} ago`,
    ),
    dim(
      `${info.mode} in ${visibleLine(info.workspace)}, ${visibleLine(info.provider)} ${visibleLine(info.model)}`,
    ),
    ...(info.bundle === undefined ? [] : [dim(`read from ${visibleLine(info.bundle)}`)]),
    ...costs
      .filter(({ cost }) => cost !== null)
      .map(({ cost, price }) => dim(`cost ${visibleLine(costWords(cost, price))}`)),
  ];
  const waits = parkedIn(records);
  const texts = records.flatMap((record) => {
    if (record.kind === "message")
      return [`\n${dim(record.message.role)}\n${indented(messageText(record.message))}`];
    if (record.kind === "parked") return ["", ...questionRows(record.parked.question, stream)];
    const text = remark(record);
    return text === undefined ? [] : [`\n${dim(`(${text})`)}`];
  });
  const how = info.bundle === undefined ? `harness approve ${info.id}` : "on the machine where it ran";
  const next = waits === undefined ? [] : [`\nit waits for approval: ${how}`];
  return `${[...head, ...texts, ...next].join("\n")}\n`;
}

function messageText(message: Message): string {
  if (message.role === "tool") return shortened(visible(message.text));
  if (message.role !== "assistant") return visible(message.text);
  const calls = message.calls.map(({ name, args }) =>
    cut(`${visibleLine(name)} ${visibleLine(JSON.stringify(args))}`, CALL_WIDTH),
  );
  return [...(message.text === "" ? [] : [visible(message.text)]), ...calls.map((call) => `-> ${call}`)].join(
    "\n",
  );
}

/** Records that only the loop needs produce no line. */
function remark(record: Exclude<SessionRecord, { kind: "message" | "parked" }>): string | undefined {
  switch (record.kind) {
    case "pinned":
      return `system prompt of ${record.text.length} characters`;
    case "rolled_back":
      return `rolled back to ${record.to} messages`;
    case "cleared":
      return "cleared: no earlier message is used any more";
    case "compacted":
      return "from here on, the model was shown a shorter version of the messages above";
    case "turn": {
      const { status, reason, turns, toolCalls } = record.result;
      const why = reason === "" ? "" : `: ${visibleLine(reason)}`;
      return `${status}${why}; ${plural(turns, "turn")}, ${plural(toolCalls, "call")}`;
    }
    case "answered":
      return record.word === "never" ? "continued without an answer" : `answered: ${record.word}`;
    case "plan":
      return `the plan: ${planCounts(record.plan)}`;
    case "tasks":
      return record.open.length === 0
        ? undefined
        : `in the background: ${record.open.map(({ id }) => visibleLine(id)).join(", ")}`;
    case "seen":
    case "shell":
      return undefined;
  }
}

const MAX_LINES = 12;
const CALL_WIDTH = 200;

function shortened(text: string): string {
  const lines = text.trimEnd().split("\n");
  const rest = lines.length - MAX_LINES;
  const shown = lines.slice(0, MAX_LINES).map((line) => cut(line, CALL_WIDTH));
  return (rest > 0 ? [...shown, `… ${rest} more lines`] : shown).join("\n");
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, "  ");

/** Cuts only between characters. */
function cut(text: string, columns: number): string {
  const characters = Array.from(text);
  return characters.length <= columns ? text : `${characters.slice(0, columns - 1).join("")}…`;
}

const dayOf = ({ written }: Note): string => new Date(written).toISOString().slice(0, 10);

/** One line per note. */
export function noteLines(notes: readonly Note[], stream: Output): string {
  const width = Math.max(...notes.map(({ number }) => String(number).length));
  return notes
    .map((note) => {
      const tags = note.tags.length === 0 ? "" : `  ${styleText("dim", tagsOf(note), { stream })}`;
      return `${String(note.number).padStart(width)}  ${dayOf(note)}  ${visibleLine(note.title)}${tags}\n`;
    })
    .join("");
}

const tagsOf = ({ tags }: Note): string => tags.map((tag) => `#${visibleLine(tag)}`).join(" ");

/** A whole note. */
export function noteText(note: Note, stream: Output): string {
  const about = [`note ${note.number}`, dayOf(note), ...(note.tags.length === 0 ? [] : [tagsOf(note)])];
  const head = [
    styleText("bold", visibleLine(note.title), { stream }),
    styleText("dim", about.join(", "), { stream }),
  ];
  return `${[...head, ...(note.body === "" ? [] : ["", visible(note.body)])].join("\n")}\n`;
}
