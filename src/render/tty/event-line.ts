import { formatDuration } from "../../core/bounds.ts";
import type { AgentEvent } from "../../core/events.ts";
import { questionRows } from "./approval.ts";
import { widthOfStream, wrapped } from "./fitted.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

/** What a person is told of an event that is not about a call; empty for most. */
export function eventLine(event: AgentEvent, stream: Output, indent = ""): string {
  const dim = (text: string): string => styleText("dim", text, { stream });
  const told = (mark: string, text: string): string =>
    lines(`${mark} ${text}`, stream, indent)
      .map((line) => styleText("yellow", line, { stream }))
      .join("\n");
  switch (event.type) {
    case "run.started":
      return indent === "" ? startedLines(event, stream).map(dim).join("\n") : "";
    case "intent":
      return event.by === "escalated" ? dim(`${indent}this needs more: ${event.intent}`) : "";
    case "box.ready":
      return dim(`${indent}box ready  ${formatDuration(event.ms)}`);
    case "model.waiting":
      return told(
        "~",
        `${event.reason}; asking again in ${formatDuration(event.ms)} (attempt ${event.attempt})`,
      );
    case "model.failed":
      return failedLine(event, stream, indent);
    case "call.parked":
      return parkedRows(event, stream)
        .map((row) => `${indent}${row}`)
        .join("\n");
    case "approval":
      return dim(`${indent}${saidWords(event)}`);
    case "notice":
      return told("!", event.text);
    case "compaction":
      return compactionLine(event, dim, told);
    case "rolled_back":
      return dim(`${indent}rolled back`);
    default:
      return "";
  }
}

/** What the model says beside its calls, the first lines of it. */
export function saidLines(text: string, stream: Output, indent = ""): string {
  const all = lines(text.trim(), stream, indent);
  const more = all.length - MOST_SAID;
  return [...all.slice(0, MOST_SAID), ...(more > 0 ? [`${indent}… ${more} more lines`] : [])].join("\n");
}

const MOST_SAID = 8;
/** Of one line that is wrapped. */
const LONGEST = 4000;

/** Each line keeps its depth. */
const lines = (text: string, stream: Output, indent: string): readonly string[] =>
  text
    .slice(0, LONGEST)
    .split("\n")
    .flatMap((line) => {
      const depth = indent + (/^ {0,8}/.exec(line)?.[0] ?? "");
      return wrapped(line.trim(), widthOfStream(stream) - depth.length).map((part) => `${depth}${part}`);
    });

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

function startedLines(event: Of<"run.started">, stream: Output): readonly string[] {
  const { model, provider, mode, workspace, session, resumed } = event;
  // A scenario is a file: its name says enough.
  const name = provider === "scripted" ? model.slice(model.lastIndexOf("/") + 1) : model;
  const words = [`${name} (${provider})`, mode, workspace, resumed ? `goes on with ${session}` : session];
  return lines(words.map(visibleLine).join(" · "), stream, "");
}

function failedLine({ reason, remedy }: Of<"model.failed">, stream: Output, indent: string): string {
  const head = lines(`✗ model: ${reason}`, stream, indent).map((line) => styleText("red", line, { stream }));
  const next = `${indent}    ${styleText("bold", "next:", { stream })} ${visibleLine(remedy)}`;
  return [...head, ...(remedy === "" ? [] : [next])].join("\n");
}

function parkedRows(
  { tool, text, mode, contained, rules }: Of<"call.parked">,
  stream: Output,
): readonly string[] {
  const decision = { decision: "ask", contained, rules } as const;
  return questionRows({ tool, text, mode, writes: false, decision }, stream);
}

const saidWords = ({ said, by, text }: Of<"approval">): string =>
  visibleLine(`${by} said ${said === "deny" ? "no" : `yes (${said})`} to: ${text}`);

const tokens = (count: number | null): string => count?.toLocaleString("en-US") ?? "?";

function compactionLine(
  { status, before, after, reason }: Of<"compaction">,
  dim: (text: string) => string,
  told: (mark: string, text: string) => string,
): string {
  const sizes = `about ${tokens(before)} -> ${tokens(after)} tokens`;
  switch (status) {
    case "started":
      return "";
    case "pruned":
      return dim(`≡ old results of tools left out: ${sizes}`);
    case "succeeded":
      return dim(`≡ older turns summarised: ${sizes}`);
    case "failed":
      return told("!", `older turns not summarised: ${reason}`);
  }
}
