import { questionOpening } from "../../agent/ending/earned-end.ts";
import type { Mode } from "../../core/decision.ts";
import type { AgentEvent, ResultKind } from "../../core/events.ts";
import { type Intent, SERVER_FAILURES } from "../../core/model-provider.ts";
import type { ModelAsked } from "./asked-run.ts";

/** A session's conversation in replayable form: what was asked, what the model replied, and what came of it. */

type EventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

export interface RecordedCall {
  readonly call: string;
  /** The beginning of the task of the subagent that made the call; null for the agent itself. */
  readonly agent: string | null;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Null if the call was never judged. */
  readonly verdict: Pick<EventOf<"call.decided">, "decision" | "runs" | "by"> | null;
  /** Null if the call never ended. */
  readonly end: {
    readonly kind: ResultKind;
    readonly exit_code: number | null;
    readonly text: string;
    readonly ms: number;
  } | null;
}

/** What a person said to a call. */
export interface RecordedAnswer {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly runs: boolean;
  readonly told?: string;
  /** The command that the person wanted instead. */
  readonly edited?: string;
}

/** What a person did after the end of a request, before the next one. */
export type UndoEvent = EventOf<"rolled_back"> | EventOf<"files.undone">;

export interface RecordedRequest {
  readonly task: string;
  readonly mode: Mode;
  /** The request is part of a chat. */
  readonly chat: boolean;
  /** A box was made for the request: the earlier box, with everything in it, was gone by then. */
  readonly freshBox: boolean;
  /** Whether its end was judged strictly. */
  readonly strict: boolean;
  /** The number of the candidate, if the run had several. */
  readonly candidate: number | undefined;
  readonly model: ModelAsked;
  /** The request had a network. */
  readonly network: boolean;
  readonly intent: Intent | undefined;
  readonly turns: number | undefined;
  /** The command that had to prove the result. */
  readonly check: string | undefined;
  /** More than the model's word decided about the end, which is never so in a chat. */
  readonly earned: boolean;
  readonly replies: readonly RecordedReply[];
  /** What a small model expected of its command, if it was asked separately. */
  readonly asides: readonly RecordedAside[];
  readonly calls: readonly RecordedCall[];
  readonly said: readonly RecordedAnswer[];
  /** Null if the request was killed, and so has no end. */
  readonly end: Pick<EventOf<"run.finished">, "status" | "exit_code"> | null;
  readonly behind: readonly UndoEvent[];
}

interface RecordedReply {
  readonly agent: string | null;
  readonly text: string;
  readonly usage: EventOf<"model.finished">["usage"] | null;
  readonly calls: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly failed?: Pick<EventOf<"model.failed">, "kind" | "reason">;
}

/** Null if there was no reply, or none was recorded. */
type RecordedAside = Pick<RecordedReply, "text" | "usage"> | null;

/** The requests in order. A parked run and its continuation count as one request. */
export function recordedRequests(events: Iterable<AgentEvent>): readonly RecordedRequest[] {
  const requests: RequestReader[] = [];
  const open = new Map<string, RequestReader>();
  let before: RequestReader | undefined;
  for (const event of events) {
    if (event.type === "run.started" && !open.has(event.run)) {
      const goesOn = before?.isParked === true && event.resumed && event.task === before.task;
      const reader = goesOn && before !== undefined ? before : new RequestReader(event);
      if (reader !== before) requests.push(reader);
      open.set(event.run, reader);
      before = reader;
    }
    open.get(event.run)?.take(event);
  }
  return requests.map((each) => each.read());
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

class RequestReader {
  readonly #started: EventOf<"run.started">;
  readonly #replies: (Mutable<RecordedReply> & { calls: RecordedReply["calls"][number][] })[] = [];
  readonly #asides: RecordedAside[] = [];
  readonly #calls = new Map<string, Mutable<RecordedCall>>();
  readonly #agents = new Map<string, string>();
  readonly #told = new Map<string, string>();
  readonly #said: RecordedAnswer[] = [];
  /** The edited arguments that a person wants a call to run with. */
  readonly #edited = new Map<string, RecordedCall["args"]>();
  readonly #behind: UndoEvent[] = [];
  #freshBox = false;
  #granted = false;
  #intent: Intent | undefined;
  #parameters: number | undefined;
  #check: string | undefined;
  #end: RecordedRequest["end"] = null;

  constructor(started: EventOf<"run.started">) {
    this.#started = started;
  }

  get task(): string {
    return this.#started.task;
  }

  get isParked(): boolean {
    return this.#end?.status === "parked";
  }

  take(event: AgentEvent): void {
    const agent = this.#agentOf(event);
    switch (event.type) {
      case "run.started":
        // A parked run continues.
        this.#end = null;
        return;
      case "box.ready":
        this.#freshBox = true;
        return;
      case "rolled_back":
      case "files.undone":
        if (this.#end !== null) this.#behind.push(event);
        return;
      case "intent":
        this.#intent ??= event.intent;
        return;
      case "model.small":
        this.#parameters = event.parameters;
        return;
      case "check.started":
        this.#check = event.command;
        return;
      case "model.finished":
        this.#replies.push({ agent, text: event.text, usage: event.usage, calls: [] });
        return;
      case "model.aside":
        if (event.purpose === "expectation") this.#asides.push(asideOf(event));
        return;
      case "model.failed": {
        const { kind, reason } = event;
        this.#replies.push({ agent, text: "", usage: null, calls: [], failed: { kind, reason } });
        return;
      }
      case "call.proposed":
        this.#propose(event, agent);
        return;
      case "approval":
        if (event.told !== undefined) this.#told.set(event.call, event.told);
        return;
      case "call.edited":
        this.#edit(event, agent);
        return;
      case "call.decided":
        this.#decide(event, agent);
        return;
      case "call.ended": {
        const found = this.#calls.get(keyOf(agent, event.call));
        const { kind, text, ms, exit_code = null } = event;
        if (found !== undefined) found.end = { kind, exit_code, text, ms };
        return;
      }
      case "run.finished":
        this.#end = { status: event.status, exit_code: event.exit_code };
        return;
      default:
    }
  }

  /** A subagent's id is unique only within a process, so its task identifies it. */
  #agentOf(event: AgentEvent): string | null {
    if (event.agent === undefined) return null;
    const key = `${event.run} ${event.agent}`;
    if (event.type === "task" && event.status === "begun")
      this.#agents.set(key, event.text.replace(/…$/, ""));
    return this.#agents.get(key) ?? event.agent;
  }

  #propose({ call, tool, args }: EventOf<"call.proposed">, agent: string | null): void {
    const key = keyOf(agent, call);
    if (this.#calls.has(key)) return;
    this.#calls.set(key, { call, agent, tool, args, verdict: null, end: null });
    this.#replies.findLast((reply) => reply.agent === agent)?.calls.push({ tool, args });
  }

  /** A person who edits a command has refused the original one. */
  #edit({ call, args }: EventOf<"call.edited">, agent: string | null): void {
    const key = keyOf(agent, call);
    const found = this.#calls.get(key);
    const { command } = args;
    if (found === undefined || typeof command !== "string") return;
    const before = this.#edited.get(key) ?? found.args;
    this.#said.push({ tool: found.tool, args: before, runs: false, edited: command });
    this.#edited.set(key, args);
  }

  #decide({ call, decision, runs, by, told, grant }: EventOf<"call.decided">, agent: string | null): void {
    const key = keyOf(agent, call);
    const found = this.#calls.get(key);
    if (found === undefined) return;
    found.verdict = { decision, runs, by };
    this.#granted ||= grant !== undefined;
    if (by !== "person") return;
    const word = told ?? this.#told.get(call);
    const args = this.#edited.get(key) ?? found.args;
    this.#said.push({ tool: found.tool, args, runs, ...(word === undefined ? {} : { told: word }) });
  }

  read(): RecordedRequest {
    const { task, mode, max_turns, chat = false, strict = false, granted = [] } = this.#started;
    const { provider, model: name, candidate } = this.#started;
    const answers = this.#replies.filter(({ agent, calls }) => agent === null && calls.length === 0);
    return {
      task,
      mode,
      chat,
      strict,
      candidate,
      model: { provider, name, parameters: this.#parameters },
      freshBox: this.#freshBox,
      network: this.#granted || granted.length > 0,
      intent: this.#intent,
      turns: max_turns,
      check: this.#check,
      earned: this.#check !== undefined || this.#end?.status !== "done" || answers.length !== 1,
      replies: this.#replies,
      asides: this.#asides,
      calls: [...this.#calls.values()],
      said: this.#said,
      end: this.#end,
      behind: this.#behind,
    };
  }
}

const keyOf = (agent: string | null, call: string): string => JSON.stringify([agent, call]);

/**
 * The replies as a scenario: each conversation finds its own replies, and so do the questions asked aside. A question
 * without a recorded reply fails. The window is made very wide, so that nothing is compacted.
 */
export function scenarioOf({ task, replies, asides }: RecordedRequest): string {
  const steps = replies.map(({ agent, text, usage, calls, failed }) => ({
    ...(agent === null ? {} : { to: agent }),
    reply:
      failed === undefined
        ? [
            ...inert(text),
            ...calls.map(({ tool, args }) => ({ call: tool, args: withoutMarks(JSON.stringify(args)) })),
            ...usageOf(usage),
          ]
        : [{ fail: failureOf(failed.kind), reason: failed.reason }],
  }));
  const beside = [...asides, null].map((aside) => ({
    to: questionOpening(task),
    reply: aside === null ? [NOT_RECORDED] : [...inert(aside.text), ...usageOf(aside.usage)],
  }));
  const capabilities = { context: WIDE, tools: true };
  return [{ capabilities }, ...beside, ...steps].map((each) => `${JSON.stringify(each)}\n`).join("");
}

const WIDE = 100_000_000;
/** This failure is not retried. */
const NOT_RECORDED = { fail: "refused", reason: "what it expects was not recorded" };

const asideOf = ({ text, usage }: EventOf<"model.aside">): RecordedAside =>
  text === undefined ? null : { text, usage };

/** A scenario replaces a mark by the number of the request, so the text is split such that no part contains a mark. */
const inert = (text: string): readonly { readonly text: string }[] =>
  text.split(/(?<=\{)(?=\{request\}\})/).flatMap((part) => (part === "" ? [] : [{ text: part }]));

const withoutMarks = (json: string): string => json.replaceAll("{{request}}", String.raw`\u007b{request}}`);

function usageOf(usage: RecordedReply["usage"]): readonly object[] {
  if (usage === null) return [];
  const { prompt_tokens: prompt, completion_tokens: completion } = usage;
  const counts = { ...(prompt === null ? {} : { prompt }), ...(completion === null ? {} : { completion }) };
  return Object.keys(counts).length === 0 ? [] : [{ usage: counts }];
}

const FAILURES: ReadonlySet<string> = new Set(SERVER_FAILURES);

const failureOf = (kind: string): string => (FAILURES.has(kind) ? kind : "server");
