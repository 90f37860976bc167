import { styleText } from "node:util";
import { formatDuration } from "../../core/bounds.ts";
import type { AgentEvent } from "../../core/events.ts";
import { cellsOf, widthOf } from "./columns.ts";
import { fitted, widthOfStream, wrapped } from "./fitted.ts";
import { visibleLine } from "../../core/visible.ts";

type Ended = Extract<AgentEvent, { readonly type: "call.ended" }>;
export type Decided = Extract<AgentEvent, { readonly type: "call.decided" }>;

export interface ShownCall {
  readonly tool: string;
  readonly target: string;
  /** Missing where the input was invalid. */
  readonly decided: Decided | undefined;
}

const MARKS = {
  ok: ["green", "✓"],
  failed: ["red", "✗"],
  invalid: ["red", "✗"],
  timed_out: ["red", "✗"],
  cancelled: ["yellow", "✗"],
  denied: ["yellow", "⊘"],
  blocked: ["yellow", "⊘"],
} as const;

/** Of a target, however little room there is. */
const LEAST = 12;

/** One call with its verdict and its ending; a second line where the reason has no room in the first. */
export function callLine(call: ShownCall, ended: Ended, stream: NodeJS.WriteStream, indent = ""): string {
  const width = widthOfStream(stream);
  const [colour, mark] = MARKS[ended.kind];
  const tool = visibleLine(call.tool);
  const ending = endingOf(call, ended);
  const time = ended.kind === "denied" || ended.kind === "invalid" ? "" : formatDuration(ended.ms);
  const by = byOf(call.decided);
  const beside = [by, time].filter((word) => word !== "").map((word) => `  ${word}`);
  const room = width - widthOf(cellsOf(`${indent}x ${tool} ${beside.join("")}`));
  const wanted = Math.min(widthOf(cellsOf(fitted(call.target, width))), Math.max(LEAST, room >> 1));
  const below = ending !== "" && widthOf(cellsOf(ending)) + 2 > room - wanted;
  const target = fitted(call.target, Math.max(LEAST, below ? room : room - widthOf(cellsOf(ending)) - 2));
  const told = below || ending === "" ? "" : `  ${styleText(colour, ending, { stream })}`;
  const first = `${indent}${styleText(colour, mark, { stream })} ${styleText("bold", tool, { stream })}${target === "" ? "" : ` ${target}`}`;
  const rest = beside.map((word) => styleText("dim", word, { stream })).join("");
  const lines = below ? wrapped(ending, width - indent.length - 4) : [];
  return [
    `${first}${told}${rest}`,
    ...lines.map((line) => `${indent}    ${styleText(colour, line, { stream })}`),
  ].join("\n");
}

/** Who let it run where the policy asks. */
function byOf(decided: Decided | undefined): string {
  if (decided === undefined || !decided.runs) return "";
  const words = { policy: "", mode: "asks; the mode lets it", contained: "contained", person: "approved" };
  return decided.by === "nobody" ? "" : words[decided.by];
}

function endingOf({ decided }: ShownCall, { kind, cause, text }: Ended): string {
  if (kind === "ok") return "";
  if (kind === "timed_out") return "timed out";
  if (kind === "cancelled") return "cancelled";
  if (kind === "denied") return denialOf(decided) ?? `denied: ${firstLine(text)}`;
  if (kind !== "failed") return `${kind}: ${firstLine(text)}`;
  const code = exitOf(text);
  if (cause === "program" && code !== undefined) return `exit ${code}`;
  return `${WORDS[cause ?? "program"] ?? "failed"}: ${firstLine(text)}`;
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
  const who = decided.decision === "deny" ? "denied" : "nobody to ask";
  return `${who}: ${visibleLine(rule.reason)} (${visibleLine(rule.id)})`;
}

const firstLine = (text: string): string =>
  visibleLine(text.split("\n", 40).find((line) => line.trim() !== "") ?? "");

/** As the shell tool says it, in the first line of its text or in the last. */
function exitOf(text: string): string | undefined {
  const lines = text.trim().split("\n");
  return [lines[0], lines.at(-1)]
    .map((line) => /\bexit(?: code)?:? (\d{1,3})\b/.exec(line ?? "")?.[1])
    .find((code) => code !== undefined);
}
