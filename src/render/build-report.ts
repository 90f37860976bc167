import { hookWords } from "../core/added-programs.ts";
import { canaryWords } from "../core/behaviour.ts";
import type { AgentEvent, Denial } from "../core/events.ts";
import type { Plan } from "../core/run-record.ts";
import type { AuditVerdict, SessionInfo } from "../core/session.ts";
import { inertJson } from "../core/visible.ts";
import { formatDuration } from "../core/wording.ts";
import type {
  CallReport,
  HostTried,
  Reached,
  Remark,
  Report,
  RequestReport,
  RunEnd,
  RunReport,
  ReportStep,
  TurnReport,
} from "./report-form.ts";
import { approvalWords, targetOf } from "./tty/call-lines.ts";

export interface Timed {
  readonly at: number;
  readonly event: AgentEvent;
}

interface ReportParts {
  readonly session: SessionInfo;
  readonly timeline: Iterable<Timed>;
  readonly audit: AuditVerdict | null;
  readonly diff: string | null;
}

export function reportOf({ session, timeline, audit, diff }: ReportParts): Report {
  const all: RunBuilder[] = [];
  const runs = new Map<string, RunBuilder>();
  for (const timed of timeline) {
    const { event } = timed;
    if (event.type === "run.started") {
      // Older versions gave the number of a killed run to the next run as well.
      const run = new RunBuilder(timed.at, event);
      all.push(run);
      runs.set(event.run, run);
    }
    runs.get(event.run)?.take(timed);
  }
  return { session, runs: all.map((run) => run.report()), audit, diff };
}

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const keyOf = ({ agent = null, call }: { readonly agent?: string | null; readonly call: string }): string =>
  JSON.stringify([agent, call]);

class RunBuilder {
  readonly #started: Of<"run.started">;
  readonly #at: number;
  readonly #turns: { readonly turn: number; readonly at: number; readonly steps: ReportStep[] }[];
  readonly #calls = new Map<string, Mutable<CallReport>>();
  readonly #all: CallReport[] = [];
  readonly #network = new Map<string, Reached>();
  readonly #requests: RequestReport[] = [];
  /** Per agent: a subagent counts its own turns. */
  readonly #turnOf = new Map<string | null, number>();
  #last: number;
  #intent: string | null = null;
  #plan: Plan = [];
  #end: Of<"run.finished"> | undefined;

  constructor(at: number, started: Of<"run.started">) {
    this.#started = started;
    this.#at = at;
    this.#last = at;
    this.#turns = [{ turn: 0, at, steps: [] }];
  }

  take({ at, event }: Timed): void {
    this.#last = at;
    const { agent = null } = event;
    switch (event.type) {
      case "turn.started":
        this.#turnOf.set(agent, event.turn);
        if (agent === null) this.#turns.push({ turn: event.turn, at, steps: [] });
        return;
      case "intent":
        this.#intent = event.intent;
        break;
      case "model.aside":
        this.#requests.push(requestOf(event, this.#turnOf.get(agent) ?? 0));
        return;
      case "plan":
        this.#plan = event.steps;
        return;
      case "model.finished":
        this.#requests.push(requestOf(event, this.#turnOf.get(agent) ?? 0));
        this.#push({ kind: "said", at, agent, text: event.text, usage: event.usage, ms: event.ms });
        return;
      case "run.finished":
        this.#end = event;
        return;
      case "call.proposed":
      case "call.decided":
      case "call.ended":
        this.#call(at, event);
        return;
      case "call.parked": {
        const known = this.#calls.get(keyOf(event));
        if (known !== undefined) known.waits = true;
        break;
      }
      case "connection":
        this.#reached(event);
        return;
      default:
    }
    const remark = remarkOf(event);
    if (remark !== undefined) this.#push({ kind: "remark", at, agent, ...remark });
  }

  report(): RunReport {
    const { run, task, mode, provider, model, price = null, resumed } = this.#started;
    return {
      run,
      task,
      mode,
      provider,
      model,
      price,
      resumed,
      intent: this.#intent,
      plan: this.#plan,
      started: this.#at,
      last: this.#last,
      end: this.#end === undefined ? null : endOf(this.#end),
      turns: this.#turns.filter(({ turn, steps }) => turn > 0 || steps.length > 0) satisfies TurnReport[],
      refusals: this.#end?.denials ?? this.#all.flatMap(deniedIn),
      limits: this.#limits(),
      hosts: this.#all.flatMap(hostsIn),
      requests: this.#requests,
      network: [...this.#network.values()],
    };
  }

  #call(at: number, event: Of<"call.proposed" | "call.decided" | "call.ended">): void {
    const { agent = null, call } = event;
    const key = keyOf(event);
    if (event.type === "call.proposed") {
      const { tool, args } = event;
      const newCall = { kind: "call", at, agent, call, tool, args, verdict: null, end: null } as const;
      this.#calls.set(key, newCall);
      this.#all.push(newCall);
      this.#push(newCall);
      return;
    }
    const known = this.#calls.get(key);
    if (known === undefined) return;
    delete known.waits;
    if (event.type === "call.decided") known.verdict = verdictOf(event);
    else {
      const { kind, cause, text, full, ms, exit_code = null, peak = null } = event;
      known.end = { kind, cause, text, full, ms, exit_code, peak };
    }
  }

  #reached({ host, port, verdict, rule, reason, up, down }: Of<"connection">): void {
    const key = JSON.stringify([host, port, verdict, rule]);
    const { times = 0, up: sent = 0, down: received = 0 } = this.#network.get(key) ?? {};
    const all = { times: times + 1, up: sent + up, down: received + down };
    this.#network.set(key, { host, port, verdict, rule, reason, ...all });
  }

  #push(step: ReportStep): void {
    this.#turns.at(-1)?.steps.push(step);
  }

  #limits(): readonly string[] {
    const met = this.#all.flatMap((call) => {
      const cause = call.end?.cause;
      const wall = LIMITS.find((each) => each === cause);
      return wall === undefined ? [] : [`${call.tool} ${targetOf(call.args)}: ${wall}`];
    });
    return this.#end?.status === "budget" ? [...met, this.#end.reason] : met;
  }
}

function requestOf(event: Of<"model.finished"> | Of<"model.aside">, turn: number): RequestReport {
  const { agent = null, usage, ms, first_token_ms = null, prompt = null } = event;
  const isTurn = event.type === "model.finished";
  return {
    turn,
    agent,
    purpose: isTurn ? "turn" : event.purpose,
    failed: !isTurn && event.outcome === "failed",
    usage,
    ms,
    first_token_ms,
    build_ms: (isTurn ? event.build_ms : undefined) ?? null,
    prompt,
  };
}

const LIMITS = ["timeout", "memory", "pids", "disk"] as const;

function endOf(event: Of<"run.finished">): RunEnd {
  const { status, exit_code, reason, answer, turns, tool_calls, usage, changes } = event;
  const { handoff, quarantined = [], commits = [], staged = [], installed = null } = event;
  const recorded = event.recorded === undefined ? {} : { recorded: event.recorded };
  const { quarantined_total = quarantined.length, commits_total = commits.length } = event;
  const extras = { handoff, quarantined, quarantined_total, commits, commits_total, staged, installed };
  return { status, exit_code, reason, answer, turns, tool_calls, usage, changes, ...extras, ...recorded };
}

function verdictOf(event: Of<"call.decided">): NonNullable<CallReport["verdict"]> {
  const { decision, contained, rules, runs, by, judged } = event;
  return { decision, contained, rules, runs, by, ...(judged === undefined ? {} : { judged }) };
}

/** The refusals of a call, for a run without a final event that would list them. */
function deniedIn({ call, tool, args, verdict }: CallReport): readonly Denial[] {
  if (verdict === null || verdict.runs) return [];
  const [rule] = verdict.rules;
  const { id = "none", reason = "" } = rule ?? {};
  return [{ call, tool, target: targetOf(args), decision: verdict.decision, rule: id, reason }];
}

const hostsIn = ({ call, verdict }: CallReport): readonly HostTried[] =>
  (verdict?.judged?.hosts ?? []).map((host) => ({ host, call, ran: verdict?.runs === true }));

/** The note for an event that is neither a reply nor a call. */
function remarkOf(event: AgentEvent): Pick<Remark, "tone" | "text"> | undefined {
  switch (event.type) {
    case "intent":
      return { tone: "quiet", text: `kind of task: ${event.intent} (by ${event.by})` };
    case "box.ready":
      return { tone: "quiet", text: `box ready after ${formatDuration(event.ms)}` };
    case "model.waiting":
      return {
        tone: "warning",
        text: `${event.reason}; retried after ${formatDuration(event.ms)} (attempt ${event.attempt})`,
      };
    case "model.failed":
      return {
        tone: "error",
        text: [`model: ${event.reason}`, event.remedy].filter(Boolean).join("; next: "),
      };
    case "call.parked":
      return { tone: "warning", text: `waits for approval: ${event.tool} ${event.text}` };
    case "call.edited":
      return { tone: "warning", text: `the user changed it to: ${inertJson(event.args)}` };
    case "approval":
      return { tone: "warning", text: approvalWords(event) };
    case "canary":
      return { tone: "error", text: canaryWords(event) };
    case "task":
      return taskOf(event);
    case "notice":
      return { tone: "warning", text: event.text };
    case "hook":
      return hookWords(event) === ""
        ? undefined
        : { tone: event.did === "failed" ? "warning" : "quiet", text: hookWords(event) };
    case "compaction":
      return compactionOf(event);
    case "rolled_back":
      return { tone: "warning", text: `rolled back to ${event.record_count} messages` };
    case "files.undone":
      return { tone: "warning", text: undoneWords(event) };
    default:
      return undefined;
  }
}

function undoneWords({ to, whole }: Extract<AgentEvent, { readonly type: "files.undone" }>): string {
  const what = to === null ? "files were restored" : `files were taken back to step ${to}`;
  return `${what}${whole ? "" : ", but not all of them"}`;
}

/** If a call waits for the task, the call reports its end. */
function taskOf({
  task,
  status,
  text,
}: Extract<AgentEvent, { readonly type: "task" }>): Pick<Remark, "tone" | "text"> | undefined {
  if (task === undefined && status !== "begun") return undefined;
  const how = `${task ?? "task"} ${status}${text === "" ? "" : `: ${text}`}`;
  return { tone: status === "begun" || status === "done" ? "quiet" : "warning", text: how };
}

function compactionOf({
  status,
  before,
  after,
  reason,
}: Extract<AgentEvent, { readonly type: "compaction" }>): Pick<Remark, "tone" | "text"> | undefined {
  const sizes = `about ${before} to ${after ?? "?"} tokens`;
  switch (status) {
    case "started":
      return undefined;
    case "pruned":
      return { tone: "quiet", text: `old tool results left out: ${sizes}` };
    case "succeeded":
      return { tone: "quiet", text: `older turns summarised: ${sizes}` };
    case "failed":
      return { tone: "warning", text: `older turns not summarised: ${reason}` };
  }
}
