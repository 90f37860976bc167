import type { AgentEvent, RunStatus } from "../core/events.ts";
import type { Usage } from "../core/model-provider.ts";
import { lastName } from "../core/file-names.ts";

/**
 * The events of one run as spans and measurements, by OpenTelemetry's conventions for generative AI. Pure: times come
 * with the events, ids from the caller. Every span that is begun is ended, at the latest with the run.
 */

export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/** Times are milliseconds since 1970. */
export interface TraceSpan {
  readonly id: string;
  /** Null for the span of the run itself. */
  readonly parent: string | null;
  readonly name: string;
  readonly kind: "internal" | "client";
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  readonly failed: boolean;
}

export type Metric =
  | "gen_ai.client.token.usage"
  | "gen_ai.client.operation.duration"
  | "gen_ai.client.operation.time_to_first_chunk"
  | "gen_ai.invoke_agent.duration"
  | "gen_ai.execute_tool.duration";

export interface SpanOptions {
  readonly version: string;
  readonly newId: () => string;
  /** Returns what is exported in place of a text of the run; left out, no such text is exported. */
  readonly content?: (text: string) => string;
  readonly span: (span: TraceSpan) => void;
  readonly measure: (metric: Metric, value: number, attributes: Attributes) => void;
}

type EventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;
type Value = Attributes[string] | null | undefined;

/** A span that has not ended. */
interface OpenSpan {
  readonly id: string;
  readonly parent: string | null;
  readonly name: string;
  readonly kind: TraceSpan["kind"];
  start: number;
  readonly attributes: Record<string, Attributes[string]>;
  readonly events: SpanEvent[];
}

/** The run itself, or one of its subagents. */
interface Agent {
  readonly span: OpenSpan;
  chat?: OpenSpan | undefined;
  /** The time of its last event. */
  last: number;
}

const ROOT = "";

/** Statuses of a run without an error. */
const FINE: ReadonlySet<RunStatus> = new Set(["done", "parked", "interrupted"]);

export class RunSpans {
  readonly #options: SpanOptions;
  readonly #agents = new Map<string, Agent>();
  readonly #calls = new Map<string, OpenSpan>();
  /** Calls of `task` whose subagent has not appeared yet. */
  readonly #tasks = new Map<string, { readonly span: OpenSpan; readonly prompt: string }>();
  #check: OpenSpan | undefined;
  #about: Attributes = {};
  #model = "";

  constructor(options: SpanOptions) {
    this.#options = options;
  }

  take(event: AgentEvent, at: number): void {
    if (event.type === "run.started") return this.#begin(event, at);
    const agent = this.#agentOf(event, at);
    if (agent === undefined) return;
    agent.last = at;
    switch (event.type) {
      case "run.finished":
      case "candidate.finished":
        return this.#finish(event, at);
      case "call.proposed":
      case "call.decided":
      case "call.parked":
      case "call.ended":
        return this.#call(agent, event, at);
      case "check.started":
      case "check.ended":
        return this.#checked(agent, event, at);
      case "task": {
        const error = event.status === "failed" ? "failed" : undefined;
        return put(agent.span, {
          "harness.task": event.task,
          "harness.task.status": event.status,
          "error.type": error,
        });
      }
      case "box.ready":
        return this.#end(this.#open("start_box", agent.span, at - event.ms), at);
      default:
        if (!this.#takeModelEvent(agent, event, at)) addEvent(agent.span, event, at);
    }
  }

  /** Ends everything that is still open: no more events of this run will come. */
  close(at: number): void {
    for (const call of this.#calls.values()) this.#unfinished(call, at);
    this.#calls.clear();
    this.#tasks.clear();
    if (this.#check !== undefined) this.#unfinished(this.#check, at);
    this.#check = undefined;
    for (const [name, agent] of [...this.#agents].toReversed()) {
      if (agent.chat !== undefined) this.#unfinished(agent.chat, at);
      this.#end(agent.span, name === ROOT ? at : Math.min(at, agent.last));
    }
    this.#agents.clear();
  }

  #begin(event: EventOf<"run.started">, at: number): void {
    this.close(at);
    const { provider, session, run, mode, resumed, candidate, task } = event;
    // A scripted model is named by its file, whose location is private.
    const model = provider === "scripted" ? lastName(event.model) : event.model;
    this.#model = model;
    this.#about = { "gen_ai.provider.name": provider, "gen_ai.request.model": model };
    const span = this.#open("invoke_agent harness", null, at);
    put(span, {
      ...this.#agent("harness"),
      "gen_ai.conversation.id": session,
      "harness.run.id": run,
      "harness.mode": mode,
      "harness.resumed": resumed,
      "harness.candidate": candidate,
      "gen_ai.input.messages": this.#messageJson("user", task),
    });
    this.#agents.set(ROOT, { span, last: at });
  }

  /** A subagent's span begins with its first event, below the call that it works for. */
  #agentOf(event: AgentEvent, at: number): Agent | undefined {
    const name = event.agent ?? ROOT;
    const known = this.#agents.get(name);
    if (known !== undefined || name === ROOT) return known;
    const root = this.#agents.get(ROOT);
    if (root === undefined) return undefined;
    const taskHead = event.type === "task" ? headOf(event.text) : "";
    const waiting = [...this.#tasks];
    const [key, own] = waiting.find(([, { prompt }]) => prompt.startsWith(taskHead)) ?? waiting[0] ?? [];
    if (key !== undefined) this.#tasks.delete(key);
    const task = own?.span;
    const span = this.#open("invoke_agent subagent", task ?? root.span, at);
    put(span, { ...this.#agent("subagent"), "gen_ai.agent.id": name });
    const agent = { span, last: at };
    this.#agents.set(name, agent);
    return agent;
  }

  #agent(name: string): Attributes {
    return {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": name,
      "gen_ai.agent.version": this.#options.version,
      ...this.#about,
    };
  }

  /** Handles an event about a request to the model; returns whether it was one. */
  #takeModelEvent(agent: Agent, event: AgentEvent, at: number): boolean {
    switch (event.type) {
      case "turn.started":
        if (agent.chat !== undefined) this.#unfinished(agent.chat, at);
        agent.chat = this.#chat(agent, at);
        put(agent.chat, { "harness.turn": event.turn });
        return true;
      case "text":
      case "thinking":
        return true;
      case "model.waiting": {
        const failed = agent.chat ?? this.#chat(agent, at);
        put(failed, { "harness.reason": this.#text(event.reason) });
        this.#endChat(failed, at, "retried");
        agent.chat = this.#chat(agent, at + event.ms);
        return true;
      }
      case "model.failed": {
        const failed = agent.chat ?? this.#chat(agent, at);
        put(failed, { "harness.reason": this.#text(event.reason) });
        this.#endChat(failed, at, event.kind);
        agent.chat = undefined;
        return true;
      }
      case "model.finished":
        this.#endReply(agent.chat ?? this.#chat(agent, at - event.ms), event, at);
        agent.chat = undefined;
        return true;
      case "model.aside":
        this.#endReply(this.#chat(agent, at - event.ms), event, at);
        if (agent.chat !== undefined) agent.chat.start = at;
        return true;
      default:
        return false;
    }
  }

  #chat({ span }: Agent, at: number): OpenSpan {
    const chat = this.#open(`chat ${this.#model}`, span, at, "client");
    put(chat, { "gen_ai.operation.name": "chat", ...this.#about });
    return chat;
  }

  #endReply(chat: OpenSpan, event: EventOf<"model.finished"> | EventOf<"model.aside">, at: number): void {
    const { usage, first_token_ms, prompt } = event;
    const first = first_token_ms === undefined ? undefined : first_token_ms / 1000;
    const parts = Object.entries(prompt ?? {}).map(
      ([part, tokens]) => [`harness.prompt.${part}`, tokens] as const,
    );
    put(chat, {
      ...usageOf(usage),
      "gen_ai.response.time_to_first_chunk": first,
      ...Object.fromEntries(parts),
      ...(event.type === "model.aside"
        ? { "harness.purpose": event.purpose }
        : {
            "harness.calls": event.calls,
            "harness.build_time": event.build_ms === undefined ? undefined : event.build_ms / 1000,
            "gen_ai.output.messages": this.#messageJson("assistant", event.text),
          }),
    });
    const { measure } = this.#options;
    const about = { "gen_ai.operation.name": "chat", ...this.#about };
    const counts = { input: usage.prompt_tokens, output: usage.completion_tokens };
    for (const [type, count] of Object.entries(counts))
      if (count !== null)
        measure("gen_ai.client.token.usage", count, { ...about, "gen_ai.token.type": type });
    if (first !== undefined) measure("gen_ai.client.operation.time_to_first_chunk", first, about);
    const failed = event.type === "model.aside" && event.outcome === "failed";
    this.#endChat(chat, at, failed ? "failed" : undefined);
  }

  #endChat(chat: OpenSpan, at: number, error?: string): void {
    const failed = error === undefined ? {} : { "error.type": error };
    put(chat, failed);
    this.#options.measure("gen_ai.client.operation.duration", secondsOf(chat, at), {
      "gen_ai.operation.name": "chat",
      ...this.#about,
      ...failed,
    });
    this.#end(chat, at);
  }

  #call(
    agent: Agent,
    event:
      | EventOf<"call.proposed">
      | EventOf<"call.decided">
      | EventOf<"call.parked">
      | EventOf<"call.ended">,
    at: number,
  ): void {
    const key = JSON.stringify([event.agent ?? ROOT, event.call]);
    if (event.type === "call.proposed") {
      const { call, tool, args } = event;
      const opened = this.#open(`execute_tool ${tool}`, agent.span, at);
      put(opened, {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": this.#text(JSON.stringify(args)),
      });
      const before = this.#calls.get(key);
      if (before !== undefined) this.#unfinished(before, at);
      this.#calls.set(key, opened);
      const { prompt } = args;
      // Without a prompt, the call only looks at a running task.
      if (tool === "task" && typeof prompt === "string")
        this.#tasks.set(call, { span: opened, prompt: prompt.trim() });
      return;
    }
    const open = this.#calls.get(key);
    if (open === undefined) return;
    if (event.type === "call.decided") {
      put(open, {
        "harness.decision": event.decision,
        "harness.decision.by": event.by,
        "harness.decision.rules": event.rules.map(({ id }) => id),
        "harness.contained": event.contained,
        "harness.runs": event.runs,
      });
    } else if (event.type === "call.parked") put(open, { "harness.parked": true });
    else {
      this.#calls.delete(key);
      this.#tasks.delete(event.call);
      this.#endCall(open, event, at);
    }
  }

  #endCall(open: OpenSpan, { kind, cause, exit_code, text }: EventOf<"call.ended">, at: number): void {
    const error = kind === "ok" ? undefined : kind === "failed" ? (cause ?? kind) : kind;
    put(open, {
      "harness.call.kind": kind,
      "harness.call.cause": cause,
      "harness.call.exit_code": exit_code,
      "error.type": error,
      "gen_ai.tool.call.result": this.#text(text),
    });
    this.#options.measure("gen_ai.execute_tool.duration", secondsOf(open, at), {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": String(open.attributes["gen_ai.tool.name"]),
      ...(error === undefined ? {} : { "error.type": error }),
    });
    this.#end(open, at);
  }

  #checked({ span }: Agent, event: EventOf<"check.started"> | EventOf<"check.ended">, at: number): void {
    const check = this.#check ?? this.#open("check", span, event.type === "check.ended" ? at - event.ms : at);
    put(check, { "harness.check.when": event.when, "harness.check.round": event.round });
    this.#check = check;
    if (event.type === "check.started") return;
    const error = event.exit_code === 0 ? undefined : "red";
    put(check, { "harness.check.exit_code": event.exit_code, "error.type": error });
    this.#end(check, at);
    this.#check = undefined;
  }

  #finish(event: EventOf<"run.finished"> | EventOf<"candidate.finished">, at: number): void {
    const root = this.#agents.get(ROOT);
    if (root === undefined) return;
    const { status, exit_code, turns, tool_calls, usage, denials, verified, grounded, answer } = event;
    const error = FINE.has(status) ? undefined : status;
    put(root.span, {
      ...usageOf(usage),
      "harness.status": status,
      "harness.exit_code": exit_code,
      "harness.turns": turns,
      "harness.tool_calls": tool_calls,
      "harness.denials": denials.length,
      "harness.cost": usage.cost,
      "harness.verified": verified ? verified.exit_code === 0 : undefined,
      "harness.grounded": grounded,
      "error.type": error,
      "gen_ai.output.messages": answer === null ? undefined : this.#messageJson("assistant", answer),
    });
    this.#options.measure("gen_ai.invoke_agent.duration", secondsOf(root.span, at), {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "harness",
      ...this.#about,
      ...(error === undefined ? {} : { "error.type": error }),
    });
    this.close(at);
  }

  #open(
    name: string,
    parent: OpenSpan | null,
    start: number,
    kind: TraceSpan["kind"] = "internal",
  ): OpenSpan {
    const id = this.#options.newId();
    return { id, parent: parent?.id ?? null, name, kind, start, attributes: {}, events: [] };
  }

  #unfinished(open: OpenSpan, at: number): void {
    put(open, { "harness.unfinished": true });
    this.#end(open, at);
  }

  #end({ id, parent, name, kind, start, attributes, events }: OpenSpan, at: number): void {
    // An interrupted wait ends before its next attempt would have begun.
    const begun = Math.min(start, at);
    const failed = "error.type" in attributes;
    this.#options.span({ id, parent, name, kind, start: begun, end: at, attributes, events, failed });
  }

  #text(text: string): string | undefined {
    return this.#options.content?.(text);
  }

  /** In the form of the convention's message schema. */
  #messageJson(role: "user" | "assistant", text: string): string | undefined {
    const content = this.#text(text);
    if (content === undefined) return undefined;
    const end = role === "assistant" ? { finish_reason: "stop" } : {};
    return JSON.stringify([{ role, parts: [{ type: "text", content }], ...end }]);
  }
}

/** A subagent's prompt is matched by its beginning, on one line. */
const headOf = (text: string): string =>
  text
    .split(/\s*(?:…|\n)/, 1)[0]
    ?.trim()
    .slice(0, 40) ?? "";

/** Leaves out null and undefined: a count that nobody reported is not zero. */
function put(span: OpenSpan, attributes: Readonly<Record<string, Value>>): void {
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== null) span.attributes[key] = value;
}

const secondsOf = ({ start }: OpenSpan, at: number): number => Math.max(0, at - start) / 1000;

const usageOf = ({
  prompt_tokens,
  completion_tokens,
  cached_tokens,
}: Usage): Readonly<Record<string, Value>> => ({
  "gen_ai.usage.input_tokens": prompt_tokens,
  "gen_ai.usage.output_tokens": completion_tokens,
  "gen_ai.usage.cache_read.input_tokens": cached_tokens,
});

/** Of a run that lasts for days, only the first events are kept. */
const MAX_EVENTS = 128;

/** Adds an event to a span, without any words of the run itself. */
function addEvent(span: OpenSpan, event: AgentEvent, at: number): void {
  const attributes = aboutEvent(event);
  if (attributes === undefined || span.events.length >= MAX_EVENTS) return;
  span.events.push({ name: `harness.${event.type.replace(".", "_")}`, at, attributes });
}

function aboutEvent(event: AgentEvent): Attributes | undefined {
  switch (event.type) {
    case "intent":
      return { intent: event.intent, by: event.by };
    case "approval":
      return { tool: event.tool, said: event.said, from: event.from };
    case "compaction": {
      const { status, trigger, before, after } = event;
      return { status, trigger, before, ...(after === null ? {} : { after }) };
    }
    case "rolled_back":
      return { record_count: event.record_count };
    case "call.missed":
      return { kind: event.kind };
    case "canary":
      return { canary: event.canary };
    case "connection":
      return event.verdict === "denied" ? { verdict: event.verdict, rule: event.rule } : undefined;
    default:
      return undefined;
  }
}
