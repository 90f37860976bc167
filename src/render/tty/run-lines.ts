import { hookWords } from "../../core/added-programs.ts";
import { canaryWords } from "../../core/behaviour.ts";
import type { AgentEvent } from "../../core/events.ts";
import { lastName } from "../../core/file-names.ts";
import { type Plan, planCounts, type PlanStep } from "../../core/run-record.ts";
import { visibleLine } from "../../core/visible.ts";
import { formatCount, formatDuration } from "../../core/wording.ts";
import { approvalWords, callLine, questionRows, type ShownCall, targetOf } from "./call-lines.ts";
import { fitToWidth, mark, widthOfStream, wrapped } from "./columns.ts";
import { type Clock, LiveStatus } from "./live-lines.ts";
import { type Output, styleText } from "./output.ts";
import { Activities, callKey } from "./run-activity.ts";

interface DisplayOptions {
  /** Show errors only. */
  readonly quiet: boolean;
  /** The chat streams the model's answer on the same terminal; it receives each event after this class. */
  readonly answerIsSeen: boolean;
  readonly clock: Clock;
}

const INDENT = "    ";

/** Shows a run as lines: each call and its result and, on a terminal, a live line with what the run is waiting for. */
export class RunLines {
  readonly #stream: Output;
  readonly #options: DisplayOptions;
  readonly #activities: Activities;
  readonly #live: LiveStatus;
  readonly #calls = new Map<string, ShownCall>();
  /** The task of each subagent. */
  readonly #names = new Map<string, string>();
  /** The plan as last shown; of the next one, only differences are shown. */
  #plan: Plan = [];
  /** The agent whose lines were written last. */
  #agent: string | undefined;
  #paused = 0;

  constructor(stream: Output, showing: DisplayOptions) {
    this.#stream = stream;
    this.#options = showing;
    const activities = new Activities(showing.answerIsSeen);
    this.#activities = activities;
    const status = (now: number) => activities.status(now);
    this.#live = new LiveStatus(stream, showing.clock, showing.quiet ? undefined : status);
  }

  take(event: AgentEvent): void {
    this.#remember(event);
    const text = this.#textOf(event);
    this.#follow(event);
    if (text !== "") this.#live.write(`${this.#headOf(event)}${text}\n`);
    if (event.type === "run.finished") this.#live.stop();
    else if (this.#paused === 0) this.#live.start();
    if ("call" in event && event.type === "call.ended") this.#calls.delete(callKey(event));
  }

  /** Holds back all lines while a person is asked something; the returned function resumes. */
  pause(): () => void {
    this.#paused += 1;
    const resume = this.#live.pause();
    return () => {
      this.#paused -= 1;
      resume();
      if (this.#paused === 0) this.#live.start();
    };
  }

  /** Removes the live line and writes what was held back. */
  end(): void {
    this.#live.stop();
  }

  #remember(event: AgentEvent): void {
    if (event.type === "task" && event.status === "begun")
      this.#names.set(event.agent ?? "", `${event.task ?? "task"} ${event.text}`);
    if (event.type === "call.proposed")
      this.#calls.set(callKey(event), { tool: event.tool, target: targetOf(event.args), decided: undefined });
    if (event.type === "call.edited" || event.type === "call.decided") {
      const call = this.#calls.get(callKey(event));
      const news = event.type === "call.edited" ? { target: targetOf(event.args) } : { decided: event };
      if (call !== undefined) this.#calls.set(callKey(event), { ...call, ...news });
    }
  }

  #textOf(event: AgentEvent): string {
    const indent = event.agent === undefined ? "" : INDENT;
    if (this.#options.quiet)
      return event.type === "model.failed" ? eventLine(event, this.#stream, indent) : "";
    if (event.type === "call.ended") {
      const call = this.#calls.get(callKey(event)) ?? { tool: "?", target: "", decided: undefined };
      // The plan's own event has already shown it.
      if (call.tool === "plan" && event.kind === "ok") return "";
      return callLine(call, event, this.#stream, indent);
    }
    if (this.#isSeen(event)) return "";
    if (event.type === "plan") {
      const before = this.#plan;
      this.#plan = event.steps;
      return planLines(event.steps, before, this.#stream);
    }
    if (event.type === "model.finished")
      return event.calls === 0 ? "" : replyLines(event.text, this.#stream, indent);
    return eventLine(event, this.#stream, indent);
  }

  /** Events that the chat shows in its own way. */
  #isSeen({ type, agent }: AgentEvent): boolean {
    if (!this.#options.answerIsSeen) return false;
    return (
      type === "run.started" || type === "rolled_back" || (type === "model.finished" && agent === undefined)
    );
  }

  /** A heading with the subagent's task, when its lines start or resume. */
  #headOf({ agent }: AgentEvent): string {
    if (agent === this.#agent) return "";
    this.#agent = agent;
    if (agent === undefined) return "";
    const call = this.#calls.get(callKey({ call: agent }));
    const width = widthOfStream(this.#stream);
    const name = this.#names.get(agent) ?? `${call?.tool ?? "task"} ${call?.target ?? agent}`;
    const words = fitToWidth(name, width - 2);
    return `${styleText("dim", `${mark("task", this.#stream)} ${words}`, { stream: this.#stream })}\n`;
  }

  #follow(event: AgentEvent): void {
    const call = "call" in event && event.type !== "hook" ? this.#calls.get(callKey(event)) : undefined;
    const callWords = call === undefined ? "" : wordsOf(call);
    this.#activities.take(event, { now: this.#options.clock.now(), callWords });
  }
}

/** For bash, only the command is shown. */
export const wordsOf = ({ tool, target }: ShownCall): string =>
  fitToWidth(tool === "bash" ? target : `${tool} ${target}`, 60);

/** The line for an event that is not about a call; empty for most events. */
export function eventLine(event: AgentEvent, stream: Output, indent = ""): string {
  const dim = (text: string): string => styleText("dim", text, { stream });
  const marked = (name: "warning" | "waiting", text: string): string =>
    lines(`${mark(name, stream)} ${text}`, stream, indent)
      .map((line) => styleText("yellow", line, { stream }))
      .join("\n");
  switch (event.type) {
    case "run.started":
      return indent === "" ? startedLines(event, stream).map(dim).join("\n") : "";
    case "intent":
      return event.by === "escalated"
        ? dim(`${indent}the task turned out to need more: ${event.intent}`)
        : "";
    case "box.ready":
      return dim(`${indent}box ready  ${formatDuration(event.ms)}`);
    case "model.waiting":
      return marked(
        "waiting",
        `${event.reason}; retrying ${event.ms === 0 ? "at once" : `in ${formatDuration(event.ms)}`} (attempt ${event.attempt})`,
      );
    case "model.failed":
      return failedLine(event, stream, indent);
    case "call.parked":
      return parkedRows(event, stream)
        .map((row) => `${indent}${row}`)
        .join("\n");
    case "approval":
      return dim(`${indent}${visibleLine(approvalWords(event))}`);
    case "task":
      return taskLine(event, stream, indent);
    case "check.ended":
      return checkLine(event, stream, indent);
    case "call.missed":
      return marked("warning", missedWords(event));
    case "canary":
      return marked("warning", canaryWords(event));
    case "notice":
      return marked("warning", event.text);
    case "hook":
      if (event.did === "failed") return marked("warning", hookWords(event));
      return hookWords(event) && dim(`${indent}${visibleLine(hookWords(event))}`);
    case "compaction":
      return compactionLine(event, stream, { dim, marked });
    case "rolled_back":
      return dim(`${indent}the unfinished turn is left out`);
    default:
      return "";
  }
}

/** If a call waits for the task, the call reports its end. */
function taskLine({ task, status, text }: Of<"task">, stream: Output, indent: string): string {
  if (task === undefined || status === "begun") return "";
  const row = `${indent}${mark(status === "done" ? "done" : "failed", stream)} ${task} ${status}${text === "" ? "" : `: ${text}`}`;
  const colour = status === "done" ? "green" : status === "failed" ? "red" : "yellow";
  return styleText(colour, fitToWidth(row, widthOfStream(stream)), { stream });
}

const STEP_STYLES: Readonly<Record<PlanStep["status"], Parameters<typeof styleText>[0]>> = {
  done: "green",
  doing: "bold",
  pending: "dim",
  dropped: "dim",
};

/** A new plan is shown whole; of a changed plan, only the steps with a new status. */
export function planLines(plan: Plan, before: Plan, stream: Output): string {
  const isSame = plan.length === before.length && plan.every(({ text }, at) => text === before[at]?.text);
  const shown = isSame ? plan.filter(({ status }, at) => status !== before[at]?.status) : plan;
  if (shown.length === 0 && plan.length > 0) return "";
  const rows = shown.map(({ text, status }) => {
    const row = `  ${mark(status, stream)} ${text}`;
    return styleText(STEP_STYLES[status], fitToWidth(row, widthOfStream(stream)), { stream });
  });
  return [styleText("dim", `plan: ${planCounts(plan)}`, { stream }), ...rows].join("\n");
}

/** A failed check shows its output, except before the first turn, where the failure is what the task is about. */
function checkLine(event: Of<"check.ended">, stream: Output, indent: string): string {
  const { command, when, exit_code, ms, text } = event;
  const green = exit_code === 0;
  const ended = green ? "passed" : exit_code === 124 ? "timed out" : `exit ${exit_code}`;
  const moment = when === "before" ? "before the first turn" : "check";
  const head = `${indent}${mark(green ? "done" : "failed", stream)} ${moment}: ${fitToWidth(command, 60)}  ${ended}  ${formatDuration(ms)}`;
  const color = green ? "green" : "yellow";
  const headLine = styleText(color, head, { stream });
  if (green || when === "before") return headLine;
  const all = text.trimEnd().split("\n");
  const last = lines(all.slice(-MAX_CHECK_LINES).join("\n"), stream, `${indent}  `);
  return [headLine, ...last.map((line) => styleText("dim", line, { stream }))].join("\n");
}

const MAX_CHECK_LINES = 6;

/** The first lines of what the model says beside its calls. */
function replyLines(text: string, stream: Output, indent = ""): string {
  const all = lines(text.trim(), stream, indent);
  const more = all.length - MAX_SAID;
  return [...all.slice(0, MAX_SAID), ...(more > 0 ? [`${indent}… ${more} more lines`] : [])].join("\n");
}

const MAX_SAID = 8;
/** Most characters of one text that are wrapped and shown. */
const MAX_LINE = 4000;

/** Wrapped lines keep their indentation. */
const lines = (text: string, stream: Output, indent: string): readonly string[] =>
  text
    .slice(0, MAX_LINE)
    .split("\n")
    .flatMap((line) => {
      const depth = indent + (/^ {0,8}/.exec(line)?.[0] ?? "");
      return wrapped(line.trim(), widthOfStream(stream) - depth.length).map((part) => `${depth}${part}`);
    });

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

function startedLines(event: Of<"run.started">, stream: Output): readonly string[] {
  const { session, resumed } = event;
  const words = [...startedWords(event), resumed ? `continues ${session}` : session];
  return lines(words.map(visibleLine).join(mark("between", stream)), stream, "");
}

/** The model, its provider, the mode and the workspace. */
export function startedWords({ model, provider, mode, workspace }: Of<"run.started">): readonly string[] {
  // A scenario is a file: its base name is enough.
  const name = provider === "scripted" ? lastName(model) : model;
  return [`${name} (${provider})`, mode, workspace];
}

function failedLine({ reason, remedy }: Of<"model.failed">, stream: Output, indent: string): string {
  const head = lines(`${mark("failed", stream)} model: ${reason}`, stream, indent).map((line) =>
    styleText("red", line, { stream }),
  );
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

function missedWords({ kind, tool, nearest }: Of<"call.missed">): string {
  const name = visibleLine(tool) || "a tool";
  switch (kind) {
    case "not_offered":
      return `not run: there is no tool ${name}${nearest.length === 0 ? "" : `; nearest: ${nearest.join(", ")}`}`;
    case "not_alone":
      return `not run: ${name} is one of several calls within a text`;
    case "other_form":
      return `not run: ${name} is written in a form that is not read as a call`;
    case "unread":
      return `${name} on a file that was not read: the file was shown instead`;
  }
}

const tokens = (count: number | null): string => (count === null ? "?" : formatCount(count));

interface LineStyles {
  readonly dim: (text: string) => string;
  readonly marked: (name: "warning", text: string) => string;
}

function compactionLine(
  { status, before, after, reason }: Of<"compaction">,
  stream: Output,
  { dim, marked }: LineStyles,
): string {
  const sizes = `about ${tokens(before)} -> ${tokens(after)} tokens`;
  switch (status) {
    case "started":
      return "";
    case "pruned":
      return dim(`${mark("shorter", stream)} old tool results left out: ${sizes}`);
    case "succeeded":
      return dim(`${mark("shorter", stream)} older turns summarised: ${sizes}`);
    case "failed":
      return marked("warning", `older turns not summarised: ${reason}`);
  }
}
