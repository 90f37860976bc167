import { canaryWords } from "../../core/behaviour.ts";
import { formatDuration } from "../../core/bounds.ts";
import type { AgentEvent } from "../../core/events.ts";
import { hookWords } from "../../core/hook-form.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Plan, planCounts, type PlanStep } from "../../core/work-plan.ts";
import { questionRows } from "./approval.ts";
import { callLine, type ShownCall, targetOf } from "./call-lines.ts";
import { fitted, widthOfStream, wrapped } from "./columns.ts";
import { type Clock, LiveStatus, type Status } from "./live-status.ts";
import { ModelPace } from "./model-pace.ts";
import { type Output, styleText } from "./output.ts";

interface Showing {
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
  readonly #showing: Showing;
  readonly #activities: Activities;
  readonly #live: LiveStatus | undefined;
  readonly #calls = new Map<string, ShownCall>();
  /** What each subagent was asked. */
  readonly #names = new Map<string, string>();
  /** As it was shown last: only what is new of the next is shown. */
  #plan: Plan = [];
  /** The agent whose lines were written last. */
  #agent: string | undefined;
  #paused = 0;
  #held = "";

  constructor(stream: Output, showing: Showing) {
    this.#stream = stream;
    this.#showing = showing;
    const activities = new Activities(showing.answerIsSeen);
    this.#activities = activities;
    const watched = stream.isTTY && !showing.quiet && process.env["TERM"] !== "dumb";
    this.#live = watched ? new LiveStatus(stream, showing.clock, (now) => activities.status(now)) : undefined;
  }

  take(event: AgentEvent): void {
    this.#remember(event);
    const text = this.#textOf(event);
    if (text !== "") this.#write(`${this.#headOf(event)}${text}\n`);
    this.#follow(event);
    if ("call" in event && event.type === "call.ended") this.#calls.delete(callKey(event));
  }

  /** Holds all lines back while a person is asked something; call the returned function to go on. */
  pause(): () => void {
    this.#paused += 1;
    this.#live?.stop();
    return () => {
      this.#paused -= 1;
      if (this.#paused > 0) return;
      this.#stream.write(this.#held);
      this.#held = "";
      this.#live?.start();
    };
  }

  /** Removes the live line and writes what was held back. */
  end(): void {
    this.#live?.stop();
    this.#stream.write(this.#held);
    this.#held = "";
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
    if (this.#showing.quiet)
      return event.type === "model.failed" ? eventLine(event, this.#stream, indent) : "";
    if (event.type === "call.ended") {
      const call = this.#calls.get(callKey(event)) ?? { tool: "?", target: "", decided: undefined };
      // Its event has shown it.
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
      return event.calls === 0 ? "" : saidLines(event.text, this.#stream, indent);
    return eventLine(event, this.#stream, indent);
  }

  /** Events that the chat shows in its own way. */
  #isSeen({ type, agent }: AgentEvent): boolean {
    if (!this.#showing.answerIsSeen) return false;
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
    const words = fitted(name, width - 2);
    return `${styleText("dim", `▸ ${words}`, { stream: this.#stream })}\n`;
  }

  #write(text: string): void {
    if (this.#paused > 0) this.#held += text;
    else if (this.#live === undefined) this.#stream.write(text);
    else this.#live.around(text);
  }

  #follow(event: AgentEvent): void {
    if (this.#live === undefined) return;
    const call = "call" in event && event.type !== "hook" ? this.#calls.get(callKey(event)) : undefined;
    const callWords = call === undefined ? "" : wordsOf(call);
    this.#activities.take(event, { now: this.#showing.clock.now(), callWords });
    if (event.type === "run.finished") return this.#live.stop();
    if (this.#paused > 0) return;
    this.#live.start();
    this.#live.refresh();
  }
}

/** For bash, the command alone is shown. */
const wordsOf = ({ tool, target }: ShownCall): string =>
  fitted(tool === "bash" ? target : `${tool} ${target}`, 60);

interface Activity {
  readonly kind: "model" | "call" | "summary";
  readonly since: number;
  /** For a model: when it last sent something, and what it is doing. */
  readonly heard: number;
  readonly words: string;
}

/** Waits shorter than this are not shown. */
const SHORT_MS = 1000;
const STUCK_MS = 60_000;

/** Tracks from events what a run is waiting for. The activity that started last is shown. */
class Activities {
  readonly #going = new Map<string, Activity>();
  readonly #answerIsSeen: boolean;
  /** One per agent, because each has its own conversation. */
  readonly #paces = new Map<string, ModelPace>();
  #model = "the model";

  /** When the chat streams the answer, no status is shown while the model answers. */
  constructor(answerIsSeen: boolean) {
    this.#answerIsSeen = answerIsSeen;
  }

  take(event: AgentEvent, about: { readonly now: number; readonly callWords: string }): void {
    const { now, callWords } = about;
    const model = `model ${event.agent ?? ""}`;
    this.#pace(event, now);
    switch (event.type) {
      case "run.started":
        if (event.agent === undefined) this.#model = event.model;
        return;
      case "turn.started":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now });
      case "text":
        return this.#heard(model, "answering", now);
      case "thinking":
        return this.#heard(model, "thinking", now);
      case "model.waiting":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now + event.ms });
      case "compaction":
        this.#going.delete(model);
        if (event.status === "started")
          this.#begin(model, { kind: "summary", words: "summarising older turns", since: now });
        return;
      case "model.finished":
      case "model.failed":
      case "rolled_back":
        this.#going.delete(model);
        return;
      case "check.started":
        return this.#begin("check", {
          kind: "call",
          words: `checking: ${fitted(event.command, 50)}`,
          since: now,
        });
      case "check.ended":
        this.#going.delete("check");
        return;
      case "call.decided":
        if (event.runs)
          this.#begin(callKey(event), { kind: "call", words: `running ${callWords}`, since: now });
        return;
      case "call.ended":
        this.#going.delete(callKey(event));
        return;
      case "run.finished":
        this.#going.clear();
        return;
      default:
    }
  }

  status(now: number): Status | undefined {
    const [key, last] = [...this.#going].at(-1) ?? ["", undefined];
    if (last === undefined) return undefined;
    const { kind, since, words } = last;
    if (now < since)
      return { text: `asking ${this.#model} again in ${seconds(since - now)}`, alarming: false };
    if (now - since < SHORT_MS || (words === "answering" && this.#answerIsSeen)) return undefined;
    if (kind === "model") return this.#ofModel(last, now, this.#paces.get(key));
    const others = [...this.#going.values()].filter((one) => one.kind === "call").length - 1;
    const beside = kind === "call" && others > 0 ? ` (and ${others} more)` : "";
    return { text: `${words}${beside} ${seconds(now - since)}`, alarming: false };
  }

  #ofModel({ words, since, heard }: Activity, now: number, pace: ModelPace | undefined): Status {
    const waiting = words === "waiting for";
    const doing = waiting ? `waiting for ${this.#model}` : `${this.#model}: ${words}`;
    const silent = now - heard;
    const text = `${doing} ${seconds(now - since)}`;
    const rate = (waiting ? pace?.reading(now) : pace?.writing()) ?? "";
    // Nothing is sent while a long prompt is read.
    const patience = Math.max(STUCK_MS, waiting ? (pace?.silenceMs ?? 0) : 0);
    return silent < patience
      ? { text: `${text}${rate}`, alarming: false }
      : { text: `${text}, no sign of life for ${seconds(silent)} - stuck?`, alarming: true };
  }

  /** Learns each model's speed from its own requests. */
  #pace(event: AgentEvent, now: number): void {
    const key = `model ${event.agent ?? ""}`;
    const pace = this.#paces.get(key) ?? new ModelPace();
    this.#paces.set(key, pace);
    switch (event.type) {
      case "turn.started":
        return pace.asked(event.tokens, now);
      case "text":
      case "thinking":
        return pace.heard(event.text, now);
      case "model.waiting":
        return pace.again(now + event.ms);
      case "model.finished":
        return pace.finished(event, now);
      case "compaction":
      case "rolled_back":
        return pace.changed();
      default:
    }
  }

  #begin(key: string, activity: Omit<Activity, "heard">): void {
    this.#going.delete(key);
    this.#going.set(key, { ...activity, heard: activity.since });
  }

  #heard(key: string, words: string, now: number): void {
    const activity = this.#going.get(key);
    if (activity !== undefined) this.#going.set(key, { ...activity, heard: now, words });
  }
}

const callKey = ({ agent, call }: { readonly agent?: string; readonly call: string }): string =>
  `call ${agent ?? ""} ${call}`;

export const seconds = (ms: number): string => {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? `${whole} s` : formatDuration(whole * 1000);
};

/** The line for an event that is not about a call; empty for most events. */
function eventLine(event: AgentEvent, stream: Output, indent = ""): string {
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
    case "task":
      return taskLine(event, stream, indent);
    case "check.ended":
      return checkLine(event, stream, indent);
    case "call.missed":
      return told("!", missedWords(event));
    case "canary":
      return told("!", canaryWords(event));
    case "notice":
      return told("!", event.text);
    case "hook":
      if (event.did === "failed") return told("!", hookWords(event));
      return hookWords(event) && dim(`${indent}${visibleLine(hookWords(event))}`);
    case "compaction":
      return compactionLine(event, dim, told);
    case "rolled_back":
      return dim(`${indent}rolled back`);
    default:
      return "";
  }
}

/** Of one that somebody waits for its call tells the end. */
function taskLine({ task, status, text }: Of<"task">, stream: Output, indent: string): string {
  if (task === undefined || status === "begun") return "";
  const row = `${indent}${status === "done" ? "✓" : "✗"} ${task} ${status}${text === "" ? "" : `: ${text}`}`;
  const colour = status === "done" ? "green" : status === "failed" ? "red" : "yellow";
  return styleText(colour, fitted(row, widthOfStream(stream)), { stream });
}

const STEP_MARKS: Readonly<Record<PlanStep["status"], readonly [string, Parameters<typeof styleText>[0]]>> = {
  done: ["✓", "green"],
  doing: ["▸", "bold"],
  pending: ["·", "dim"],
  dropped: ["✗", "dim"],
};

/** The whole of a new plan; of one that goes on the steps that stand otherwise now. */
function planLines(plan: Plan, before: Plan, stream: Output): string {
  const isSame = plan.length === before.length && plan.every(({ text }, at) => text === before[at]?.text);
  const shown = isSame ? plan.filter(({ status }, at) => status !== before[at]?.status) : plan;
  if (shown.length === 0 && plan.length > 0) return "";
  const rows = shown.map(({ text, status }) => {
    const [mark, style] = STEP_MARKS[status];
    const row = `  ${mark} ${fitted(text, widthOfStream(stream) - 4)}`;
    return styleText(style, row, { stream });
  });
  return [styleText("dim", `plan: ${planCounts(plan)}`, { stream }), ...rows].join("\n");
}

/** A check that fails says why; before the first turn that is what the task is about. */
function checkLine(event: Of<"check.ended">, stream: Output, indent: string): string {
  const { command, when, exit_code, ms, text } = event;
  const green = exit_code === 0;
  const ended = green ? "succeeds" : exit_code === 124 ? "timed out" : `exit ${exit_code}`;
  const moment = when === "before" ? "before the first turn" : "check";
  const head = `${indent}${green ? "✓" : "✗"} ${moment}: ${fitted(command, 60)}  ${ended}  ${formatDuration(ms)}`;
  const color = green ? "green" : "yellow";
  const told = styleText(color, head, { stream });
  if (green || when === "before") return told;
  const all = text.trimEnd().split("\n");
  const last = lines(all.slice(-MAX_CHECK_LINES).join("\n"), stream, `${indent}  `);
  return [told, ...last.map((line) => styleText("dim", line, { stream }))].join("\n");
}

const MAX_CHECK_LINES = 6;

/** The first lines of what the model says beside its calls. */
function saidLines(text: string, stream: Output, indent = ""): string {
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
  const words = [...startedWords(event), resumed ? `goes on with ${session}` : session];
  return lines(words.map(visibleLine).join(" · "), stream, "");
}

/** What works, how and where. */
export function startedWords({ model, provider, mode, workspace }: Of<"run.started">): readonly string[] {
  // A scenario is a file: its base name is enough.
  const name = provider === "scripted" ? model.slice(model.lastIndexOf("/") + 1) : model;
  return [`${name} (${provider})`, mode, workspace];
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

function missedWords({ kind, tool, nearest }: Of<"call.missed">): string {
  const name = visibleLine(tool) || "a tool";
  switch (kind) {
    case "not_offered":
      return `not run: there is no tool ${name}${nearest.length === 0 ? "" : `; nearest: ${nearest.join(", ")}`}`;
    case "not_alone":
      return `not run: ${name}, one of several calls among words`;
    case "unread":
      return `${name} of a file that was not read: the file was shown instead`;
  }
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
