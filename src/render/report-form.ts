import type { Mode } from "../core/decision.ts";
import type { AgentEvent, Denial, Recorded, RunStatus } from "../core/events.ts";
import type { Price, PromptParts, Usage } from "../core/model-provider.ts";
import { type Installed, installedWords, type Plan, planCounts, type PlanStep } from "../core/run-record.ts";
import type { AuditVerdict, SessionInfo } from "../core/session.ts";
import { formatCount, formatDuration, formatSize, plural } from "../core/wording.ts";

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;
type Own<T extends AgentEvent["type"], K extends keyof Of<T>> = Pick<Of<T>, K>;

/**
 * The history of a session. It is rendered for people, or printed unchanged as JSON. Times are milliseconds since 1970.
 */
export interface Report {
  readonly session: SessionInfo;
  readonly runs: readonly RunReport[];
  /** Whether the audit of the session is valid; null when it was not checked. */
  readonly audit: AuditVerdict | null;
  /** What the session changed, as a unified diff; null when it was not kept. */
  readonly diff: string | null;
  /** The file that the session was read from; left out for a session of this machine. */
  readonly bundle?: FromBundle;
}

/** A session in a file, and what a report about it cannot contain. */
export interface FromBundle {
  readonly file: string;
  readonly sha256: string;
  readonly not_held: readonly string[];
}

/** One request of the user. */
export interface RunReport {
  readonly run: string;
  readonly task: string;
  readonly mode: Mode;
  readonly provider: string;
  readonly model: string;
  /** The price used to calculate the cost; null if none was known. */
  readonly price: Price | null;
  readonly resumed: boolean;
  readonly intent: string | null;
  /** The plan at the end of the run; empty if there was none. */
  readonly plan: Plan;
  readonly started: number;
  /** Time of the last event. */
  readonly last: number;
  /** Null when there is no end: the run was killed, or is still going on. */
  readonly end: RunEnd | null;
  readonly turns: readonly TurnReport[];
  /** All requests to the model, including those that are not turns. */
  readonly requests: readonly RequestReport[];
  readonly refusals: readonly Denial[];
  readonly limits: readonly string[];
  readonly hosts: readonly HostTried[];
  /** The hosts that the box reached, and those it was refused. */
  readonly network: readonly Reached[];
}

export type RunEnd = Own<
  "run.finished",
  "status" | "exit_code" | "reason" | "answer" | "turns" | "tool_calls" | "usage" | "changes" | "handoff"
> &
  Partial<Own<"run.finished", "recorded">> &
  Required<
    Own<"run.finished", "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">
  > & {
    /** Null if no registry was granted, or if the box could not tell. */
    readonly installed: Installed | null;
  };

/** All connections to one host with one outcome. */
export interface Reached extends Own<
  "connection",
  "host" | "port" | "verdict" | "rule" | "reason" | "up" | "down"
> {
  readonly times: number;
}

export interface HostTried {
  readonly host: string;
  readonly call: string;
  /** Whether the call was allowed to run. Its result says what happened to the connection. */
  readonly ran: boolean;
}

/** One request to the model and its calls; turn 0 holds everything before the first request. */
export interface TurnReport {
  readonly turn: number;
  readonly at: number;
  readonly steps: readonly ReportStep[];
}

export type ReportStep = ReplyReport | CallReport | Remark;

interface ReplyReport {
  readonly kind: "said";
  readonly at: number;
  readonly agent: string | null;
  readonly text: string;
  readonly usage: Usage;
  readonly ms: number;
}

export interface CallReport {
  readonly kind: "call";
  readonly at: number;
  readonly agent: string | null;
  readonly call: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The call was put to a person who has not answered yet. */
  readonly waits?: true;
  /** Null for a call that was never judged because its input was invalid. */
  readonly verdict: Own<"call.decided", "decision" | "contained" | "rules" | "runs" | "by" | "judged"> | null;
  /** Null when the call has no end. */
  readonly end:
    | (Own<"call.ended", "kind" | "cause" | "text" | "full" | "ms"> & {
        readonly exit_code: number | null;
        /** Null if no command ran, and in older records. */
        readonly peak: NonNullable<Of<"call.ended">["peak"]> | null;
      })
    | null;
}

export interface Remark {
  readonly kind: "remark";
  readonly at: number;
  readonly agent: string | null;
  readonly tone: "quiet" | "warning" | "error";
  readonly text: string;
}

/** The cost of one request to a model, and its parts. A value that was not reported is null, and never shown as zero. */
export interface RequestReport {
  /** 0 if before the first turn. */
  readonly turn: number;
  readonly agent: string | null;
  readonly purpose: "turn" | Of<"model.aside">["purpose"];
  readonly failed: boolean;
  readonly usage: Usage;
  readonly ms: number;
  /** Null if the reply was not streamed. */
  readonly first_token_ms: number | null;
  /** Null if it was not measured. */
  readonly build_ms: number | null;
  /** Null in the records of older versions. */
  readonly prompt: PromptParts | null;
}

/** The most memory and processes that the command used at one time; empty if unknown. */
export const peakWords = (end: CallReport["end"]): string =>
  end === null || end.peak === null || end.peak.memory_bytes === 0
    ? ""
    : `, ${formatSize(end.peak.memory_bytes)} and ${plural(end.peak.pids, "process", "processes")} at most`;

/** All calls of a run, in order. */
export const callsOf = ({ turns }: RunReport): readonly CallReport[] =>
  turns.flatMap(({ steps }) => steps.filter((step) => step.kind === "call"));

/** An outcome that decides a colour; the words beside it say the same. */
export type Tone = "good" | "bad" | "held" | "plain";

export interface Worded {
  readonly tone: Tone;
  readonly text: string;
}

const BY: Readonly<Record<NonNullable<CallReport["verdict"]>["by"], string>> = {
  policy: "by the policy",
  mode: "by the mode",
  contained: "contained",
  person: "by a person",
  nobody: "nobody there to ask",
  hook: "by a hook",
};

/** The decision about a call, and who made it. */
export function verdictWords({ verdict, waits }: CallReport): Worded {
  if (waits === true) return { tone: "held", text: "asked: waits for approval" };
  if (verdict === null) return { tone: "plain", text: "not judged" };
  const { decision, runs, by } = verdict;
  if (decision === "allow") return { tone: "good", text: "allowed" };
  if (decision === "deny") return { tone: "bad", text: "denied" };
  const outcome = runs ? "asked: ran" : "asked: refused";
  return { tone: runs ? "held" : "bad", text: `${outcome}, ${BY[by]}` };
}

export function endWords({ end, waits }: CallReport): Worded {
  if (waits === true) return { tone: "held", text: "not run yet" };
  if (end === null) return { tone: "bad", text: "no end" };
  const exit = end.exit_code === null || end.exit_code === 0 ? "" : `, exit ${end.exit_code}`;
  const cause =
    end.cause === null || end.cause === "program" || end.kind === "denied" ? "" : `: ${end.cause}`;
  const word = end.kind === "timed_out" ? "timed out" : end.kind;
  const tone = end.kind === "ok" ? "good" : end.kind === "cancelled" ? "plain" : "bad";
  return { tone, text: `${word}${end.kind === "timed_out" ? "" : cause}${exit}` };
}

const STATUS: Readonly<Record<RunStatus, Worded>> = {
  done: { tone: "good", text: "done" },
  failed: { tone: "bad", text: "failed" },
  budget: { tone: "held", text: "stopped at a limit" },
  refused: { tone: "bad", text: "something the task needs was refused" },
  model: { tone: "bad", text: "the model gave no answer" },
  sandbox: { tone: "bad", text: "no box was available" },
  parked: { tone: "held", text: "parked: a call waits for approval" },
  interrupted: { tone: "held", text: "interrupted" },
};

export const statusWords = ({ end }: RunReport): Worded =>
  end === null ? { tone: "bad", text: "no end: killed or still running" } : STATUS[end.status];

export const countWords = (value: number | null): string => (value === null ? "unknown" : formatCount(value));

export interface RunCost {
  readonly run: string;
  readonly cost: number | null;
  readonly price: Price | null;
}

/** One entry for every run that has ended. */
export function costsIn(events: Iterable<AgentEvent>): readonly RunCost[] {
  const prices = new Map<string, Price>();
  const costs: RunCost[] = [];
  for (const event of events) {
    const { run } = event;
    if (event.type === "run.started" && event.price !== undefined) prices.set(run, event.price);
    if (event.type === "run.finished")
      costs.push({ run, cost: event.usage.cost, price: prices.get(run) ?? null });
  }
  return costs;
}

const priceWords = ({ model, input, output, cached, from }: Price): string =>
  `${model}: ${input} in, ${output} out${cached === undefined ? "" : `, ${cached} cached`} per million tokens${from === undefined ? "" : `, from ${from}`}`;

/** Never shows a cost that nobody reported. */
export function costWords(cost: number | null, price: Price | null): string {
  if (cost === null) return "unknown";
  const amount = cost.toLocaleString("en-US", { maximumSignificantDigits: 3 });
  return price === null ? amount : `${amount} (${priceWords(price)})`;
}

export function tokenWords({ prompt_tokens, completion_tokens, cached_tokens }: Usage): string {
  if (prompt_tokens === null && completion_tokens === null) return "tokens unknown";
  const cached = cached_tokens === null ? "" : ` (${countWords(cached_tokens)} cached)`;
  return `${countWords(prompt_tokens)} in${cached}, ${countWords(completion_tokens)} out`;
}

/** Changes in the workspace beside the calls: one line each, and a count of those that do not fit. */
export function besideWords(end: RunEnd): {
  readonly moved: readonly string[];
  readonly commits: readonly string[];
  readonly looks: readonly string[];
  readonly recorded: readonly string[];
} {
  const { quarantined, quarantined_total, commits, commits_total, staged, handoff, recorded } = end;
  const moved = quarantined.map(({ from, to }) => (to === null ? `${from}: removed` : `${from} -> ${to}`));
  const made = commits.map(({ hash, subject, files, protected: obeyed }) => {
    const holds = obeyed.length === 0 ? "" : `; the host obeys ${obeyed.join(", ")}`;
    return `${hash.slice(0, 12)} (${plural(files, "file")}): ${subject}${holds}`;
  });
  return {
    moved: [...moved, ...moreOf(quarantined_total - moved.length)],
    commits: [
      ...made,
      ...moreOf(commits_total - made.length),
      ...(staged.length === 0 ? [] : [`staged, and the host obeys it: ${staged.join(", ")}`]),
    ],
    looks: handoff.map(({ path, tier, reason }) => `${tier === "dangerous" ? "!" : "?"} ${path}: ${reason}`),
    recorded: recorded === undefined ? [] : recordedWords(recorded),
  };
}

/** The proposal of `--record`. */
export function recordedWords(recorded: Recorded): readonly string[] {
  const { policy, rules, allow_domains, left, refused } = recorded;
  const aside = [
    ...(left === 0 ? [] : [`${left} that no rule allows`]),
    ...(refused === 0 ? [] : [`${refused} refused`]),
  ];
  return [
    `${[plural(rules, "rule"), ...aside].join(", ")}: ${policy}`,
    ...(allow_domains.length === 0 ? [] : [`hosts: ${allow_domains.join(",")}`]),
  ];
}

/** How many packages there are, and the new ones. */
export function packageWords({ installed }: Pick<RunEnd, "installed">): readonly string[] {
  if (installed === null) return [];
  const { new: fresh, packages } = installed;
  const named = packages.map(({ ecosystem, name, version }) => `${ecosystem} ${name} ${version}`);
  return [installedWords(installed), ...named, ...moreOf(fresh - named.length)];
}

/** One line for each host that was reached, and one for each that was refused. */
export function networkWords(network: readonly Reached[]): {
  readonly reached: readonly string[];
  readonly refused: readonly string[];
} {
  const place = ({ host, port }: Reached): string =>
    host === "" ? "a host that could not be read" : `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const of = (verdict: Reached["verdict"]): readonly Reached[] =>
    network.filter((each) => each.verdict === verdict);
  return {
    reached: of("allowed").map(
      (each) =>
        `${place(each)}: ${plural(each.times, "connection")}, ${formatSize(each.up)} sent, ${formatSize(each.down)} received`,
    ),
    refused: of("denied").map((each) => `${place(each)}: ${plural(each.times, "time")}: ${each.reason}`),
  };
}

const STEP_WORDS: Readonly<Record<PlanStep["status"], Worded>> = {
  done: { tone: "good", text: "done" },
  doing: { tone: "held", text: "doing" },
  pending: { tone: "plain", text: "to come" },
  dropped: { tone: "plain", text: "dropped" },
};

/** The model's plan, and its progress. */
export const planWords = (
  plan: Plan,
): { readonly counts: string; readonly steps: readonly (PlanStep & { readonly word: Worded })[] } => ({
  counts: planCounts(plan),
  steps: plan.map((step) => ({ ...step, word: STEP_WORDS[step.status] })),
});

const moreOf = (count: number): readonly string[] => (count > 0 ? [`and ${count} more`] : []);

/** Formats a time in UTC, because a report may be read anywhere. */
export const momentWords = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** Whether the audit file can be trusted. */
export const auditWords = ({ audit }: Report): Worded => {
  if (audit === null) return { tone: "plain", text: "not checked" };
  if (audit.broken !== null)
    return { tone: "bad", text: `broken at line ${audit.broken.line}: ${audit.broken.why}` };
  return audit.lines === 0
    ? { tone: "plain", text: "none was recorded" }
    : { tone: "good", text: `unbroken, ${plural(audit.lines, "line")}` };
};

/** A request whose prompt is known; older versions did not record it. */
export interface MeasuredRequest extends RequestReport {
  readonly prompt: PromptParts;
}

export const measured = (requests: readonly RequestReport[]): readonly MeasuredRequest[] =>
  requests.filter((request): request is MeasuredRequest => request.prompt !== null);

/** The parts of a prompt, in its order. */
export const PROMPT_PARTS = [
  "system",
  "instructions",
  "tools",
  "summary",
  "requests",
  "replies",
  "results",
] as const satisfies readonly (keyof PromptParts)[];

export const promptSize = (prompt: PromptParts): number =>
  PROMPT_PARTS.reduce((sum, part) => sum + prompt[part], 0);

/** The parts that are not empty, with their sizes. */
export const partsIn = (prompt: PromptParts): readonly string[] =>
  PROMPT_PARTS.flatMap((part) => (prompt[part] === 0 ? [] : [`${part} ${formatCount(prompt[part])}`]));

/** Requests shown for people; JSON has all of them. */
export const MAX_REQUESTS = 100;

/** A text table: a head, then for each request a row and a row of its parts; empty if nothing is known. */
export function requestRows(requests: readonly RequestReport[]): readonly string[] {
  const all = measured(requests);
  if (all.length === 0) return [];
  const shown = all.slice(0, MAX_REQUESTS);
  const rows = [
    ["", "first token", "total", "built in", "tokens in", "out"],
    ...shown.map((each) => [
      nameOf(each),
      time(each.first_token_ms),
      time(each.ms),
      time(each.build_ms),
      tokensIn(each),
      countWords(each.usage.completion_tokens),
    ]),
  ];
  const widthAt = (at: number): number => Math.max(...rows.map((row) => row[at]?.length ?? 0));
  const widths = rows[0]?.map((_, at) => widthAt(at)) ?? [];
  const [head = "", ...lines] = rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  "),
  );
  const more = all.length > MAX_REQUESTS ? [`and ${all.length - MAX_REQUESTS} more: --json`] : [];
  const figures = shown.flatMap(({ prompt }, at) => [lines[at] ?? "", `  ${partsIn(prompt).join(" · ")}`]);
  return [head, ...figures, ...more];
}

/** The figures of one request in a sentence. */
export function requestWords(request: RequestReport): string {
  const { usage, ms, first_token_ms, build_ms } = request;
  const words = [
    `${tokensIn(request)} in, ${countWords(usage.completion_tokens)} out`,
    `${time(ms)} in total`,
    ...(first_token_ms === null ? [] : [`first token after ${time(first_token_ms)}`]),
    ...(build_ms === null ? [] : [`prompt built in ${time(build_ms)}`]),
  ];
  return `${nameOf(request)}: ${words.join(", ")}`;
}

const time = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

const nameOf = ({ turn, agent, purpose, failed }: RequestReport): string => {
  const what = purpose === "turn" ? `turn ${turn}` : `${purpose}${failed ? ", failed" : ""}`;
  return agent === null ? what : `${what} (${agent})`;
};

/** The counted tokens, or else an estimate, marked as such. */
function tokensIn({ usage, prompt }: RequestReport): string {
  if (usage.prompt_tokens !== null) return formatCount(usage.prompt_tokens);
  return prompt === null ? "unknown" : `~${formatCount(promptSize(prompt))}`;
}
