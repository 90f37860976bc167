import { formatDuration } from "../../core/wording.ts";
import type { AgentEvent } from "../../core/events.ts";
import { visibleLine } from "../../core/visible.ts";
import { cellsOf, fitted, widthOf, widthOfStream, wrapped } from "./columns.ts";
import { mark } from "./line-marks.ts";
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

/** Fewest columns that a target gets. */
const MIN_COUNT = 12;
/** Most columns of a tool's name, since a model may invent one of any length. */
const MAX_TOOL_NAME = 32;

/** One call with its verdict and its result; a second line if the reason does not fit on the first. */
export function callLine(call: ShownCall, ended: Ended, stream: Output, indent = ""): string {
  const [colour, name] = MARKS[ended.kind];
  const marked = mark(name, stream);
  const tool = fitted(call.tool, MAX_TOOL_NAME);
  const ending = endingOf(call, ended);
  const suffix = suffixOf(call, ended);
  const width = widthOfStream(stream);
  const room = width - columns(`${indent}${marked} ${tool} ${suffix}`);
  const { target, below } = dividedLine(call.target, ending, room);
  const first = [
    `${indent}${styleText(colour, marked, { stream })}`,
    styleText("bold", tool, { stream }),
    ...(target === "" ? [] : [target]),
    ...(below || ending === "" ? [] : [` ${styleText(colour, ending, { stream })}`]),
  ].join(" ");
  const lines = below ? wrapped(ending, width - columns(indent) - BELOW.length) : [];
  return [
    `${first}${suffix === "" ? "" : styleText("dim", suffix, { stream })}`,
    ...lines.map((line) => `${indent}${BELOW}${styleText(colour, line, { stream })}`),
  ].join("\n");
}

const BELOW = "    ";

const columns = (text: string): number => widthOf(cellsOf(text));

/** Divides a line between target and result; the target may take up to half of it. */
function dividedLine(
  whole: string,
  ending: string,
  room: number,
): { readonly target: string; readonly below: boolean } {
  const needed = ending === "" ? 0 : columns(ending) + 2;
  const least = Math.min(columns(fitted(whole, Math.max(MIN_COUNT, room))), Math.max(MIN_COUNT, room >> 1));
  const below = needed > room - least;
  return { target: fitted(whole, Math.max(MIN_COUNT, below ? room : room - needed)), below };
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
