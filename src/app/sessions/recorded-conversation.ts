/**
 * A session's conversation in replayable form: what was asked, what the model replied, and what came of it; and those who
 * repeat it: the model as a scenario, the person at the same places.
 */
import { questionOpening } from "../../agent/ending/expected-output.ts";
import type { Mode } from "../../core/decision.ts";
import type { AgentEvent, ResultKind } from "../../core/events.ts";
import { type Intent, SERVER_FAILURES } from "../../core/model-provider.ts";
import type { RequestedModel } from "../run/person-request.ts";
import { unattended } from "../../agent/approvers.ts";
import { EXIT, Interrupted, type Signal } from "../../core/errors.ts";
import type { Approver } from "../../core/ports.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { settledByMode } from "../run/prompter.ts";

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
  readonly model: RequestedModel;
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
  readonly answers: readonly RecordedAnswer[];
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
  readonly #words = new Map<string, string>();
  readonly #answers: RecordedAnswer[] = [];
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
        if (event.purpose === "expectation") this.#asides.push(recordedAside(event));
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
        if (event.told !== undefined) this.#words.set(event.call, event.told);
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
    this.#answers.push({ tool: found.tool, args: before, runs: false, edited: command });
    this.#edited.set(key, args);
  }

  #decide({ call, decision, runs, by, told, grant }: EventOf<"call.decided">, agent: string | null): void {
    const key = keyOf(agent, call);
    const found = this.#calls.get(key);
    if (found === undefined) return;
    found.verdict = { decision, runs, by };
    this.#granted ||= grant !== undefined;
    if (by !== "person") return;
    const word = told ?? this.#words.get(call);
    const args = this.#edited.get(key) ?? found.args;
    this.#answers.push({ tool: found.tool, args, runs, ...(word === undefined ? {} : { told: word }) });
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
      answers: this.#answers,
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
  const capabilities = { context: UNBOUNDED_WINDOW, tools: true };
  return [{ capabilities }, ...beside, ...steps].map((each) => `${JSON.stringify(each)}\n`).join("");
}

const UNBOUNDED_WINDOW = 100_000_000;
/** This failure is not retried. */
const NOT_RECORDED = { fail: "refused", reason: "what it expects was not recorded" };

const recordedAside = ({ text, usage }: EventOf<"model.aside">): RecordedAside =>
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

interface RecordedAnswers {
  readonly answers: readonly RecordedAnswer[];
  /** The request was of a chat: a person was there, but was not asked what the mode settles. */
  readonly chat: boolean;
}

/** Answers a call as it was answered then; for all other calls nobody is there. */
export function recordedApprover({ answers, chat }: RecordedAnswers): Approver {
  const left = [...answers];
  const nobody = unattended("contained");
  return {
    ask: (question, signal) => {
      const settled = chat ? settledByMode(question) : undefined;
      if (settled !== undefined) return Promise.resolve(settled);
      const args = JSON.stringify(question.args);
      const at = left.findIndex((each) => each.tool === question.tool && JSON.stringify(each.args) === args);
      const [found] = at === -1 ? [] : left.splice(at, 1);
      if (found === undefined) return nobody.ask(question, signal);
      const { runs, told, edited } = found;
      const word = told === undefined ? {} : { word: told };
      const instead = edited === undefined ? {} : { edited };
      return Promise.resolve({ runs, by: "person", reason: "", ...word, ...instead });
    },
  };
}

/** Answers a question as it was answered then; all other questions get no answer. */
export function recordedPerson(calls: readonly RecordedCall[]): AskPerson {
  const left = calls.filter(({ tool }) => tool === "ask_user");
  return ({ question }) => {
    const at = left.findIndex(({ args }) => args["question"] === question);
    const [found] = at === -1 ? [] : left.splice(at, 1);
    return Promise.resolve(found?.end?.kind === "ok" ? found.end.text : undefined);
  };
}

/** The place where a person, or a kill, ended a request. */
type Stop =
  | {
      readonly at: "call";
      readonly tool: string;
      readonly args: string;
      readonly nth: number;
      readonly ms: number;
    }
  | { readonly at: "reply"; readonly replies: number };

/**
 * A call that was cancelled then, or never ended; otherwise the reply that never came. Undefined: the request ended by
 * itself.
 */
function stopOf({ calls, replies, end }: RecordedRequest): Stop | undefined {
  if (end !== null && end.status !== "interrupted") return undefined;
  const open = calls.findIndex(
    ({ verdict, end: own }) => verdict?.runs === true && (own === null || own.kind === "cancelled"),
  );
  const found = calls[open];
  if (found === undefined)
    return { at: "reply", replies: replies.filter(({ agent }) => agent === null).length };
  const nth = calls
    .slice(0, open)
    .filter((each) => each.tool === found.tool && argsKey(each) === argsKey(found)).length;
  // The time that a person thought about an answer without giving one need not be waited for.
  const ms = found.tool === "ask_user" ? 0 : (found.end?.ms ?? 0);
  return { at: "call", tool: found.tool, args: argsKey(found), nth, ms };
}

const argsKey = ({ args }: Pick<RecordedCall, "args">): string => JSON.stringify(args);

const SIGNALS: ReadonlyMap<number | undefined, Signal> = new Map([
  [EXIT.hangup, "SIGHUP"],
  [EXIT.terminated, "SIGTERM"],
]);

/** A longer timer would fire after a millisecond. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Ends a request where it was ended then: at the same call after the same time, or at the model request that had no
 * reply.
 */
export class PastInterrupt implements Disposable {
  readonly #stop: Stop | undefined;
  readonly #ending = new AbortController();
  readonly #signal: Signal;
  #seen = 0;
  #call: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(request: RecordedRequest) {
    this.#stop = stopOf(request);
    this.#signal = SIGNALS.get(request.end?.exit_code) ?? "SIGINT";
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  take(event: AgentEvent): void {
    const stop = this.#stop;
    if (stop === undefined) return;
    if (stop.at === "reply") {
      if (event.type === "turn.started" && event.agent === undefined && event.turn > stop.replies)
        this.#end();
      return;
    }
    if (event.type === "call.proposed" && event.tool === stop.tool && argsKey(event) === stop.args) {
      if (this.#seen === stop.nth) this.#call = event.call;
      this.#seen += 1;
    }
    if (event.type === "call.decided" && event.call === this.#call && event.runs)
      this.#timer ??= setTimeout(() => this.#end(), Math.min(stop.ms, MAX_MS));
  }

  #end(): void {
    this.#ending.abort(new Interrupted(this.#signal));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
