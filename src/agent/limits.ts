/**
 * What ends a run that does not end by itself: its limits, calls that lead nowhere, and replies without a valid call.
 */

import type { Message, Price, ToolCall, Usage } from "../core/model-provider.ts";
import type { SpentBefore } from "../core/session.ts";
import { plural, formatDuration } from "../core/wording.ts";
import { costOf, NO_USAGE, sumUsage } from "../models/token-usage.ts";
import { NOTICE } from "./context/history.ts";

/** What a run may spend. A field that is left out sets no limit. */
export interface LimitValues {
  /** Requests of one loop. A subagent has its own count. */
  readonly turns?: number;
  readonly ms?: number;
  /** Prompt and completion tokens together. */
  readonly tokens?: number;
  readonly cost?: number;
  readonly calls?: number;
}

type LimitName = keyof LimitValues;

interface SpentLimit {
  readonly which: LimitName;
  /** For people: which limit is spent, and the flag that raises it. */
  readonly text: string;
}

/** Token counts estimated from the size of the request in bytes. */
interface TokenEstimate {
  readonly prompt: number;
  readonly completion: number;
}

interface LimitsOptions {
  /** Price of the model's tokens. */
  readonly price?: Price | undefined;
  /** The budget that this one shares: a subagent's whole run, or the run that this is one candidate of. */
  readonly whole?: Limits;
  readonly isPart?: boolean;
}

const NEARLY_SPENT_SHARE = 0.8;
const TURNS_LEFT = 5;
/** Longer delays overflow a timer; 24 days. */
const MAX_TIMER_LENGTH = 2 ** 31 - 1;
const FLAGS: Readonly<Record<LimitName, string>> = {
  turns: "--max-turns",
  ms: "--max-time",
  tokens: "--max-tokens",
  cost: "--max-cost",
  calls: "--max-tool-calls",
};
/** Limits that each kind of step does not count against. */
const FREE: Readonly<Record<"turn" | "call" | "aside", readonly LimitName[]>> = {
  turn: ["calls"],
  call: ["turns"],
  aside: ["turns", "calls"],
};
const NAMES = Object.keys(FLAGS) as readonly LimitName[];

/**
 * The budget of a run. The model is warned once when a limit is near, and once more before its last turn, so that it
 * can wrap up. A limit may be used up fully: only what would exceed it is not started.
 */
export class Limits {
  readonly #limits: LimitValues;
  readonly #now: () => number;
  #begin: number;
  /** Spent by the run, including its subagents and all its candidates. */
  readonly #spent: { tokens: number; cost: number };
  /** Calls of the run, including its subagents. */
  readonly #called: { calls: number };
  readonly #price: Price | undefined;
  readonly #isPart: boolean;
  #turns = 0;
  readonly #warned = new Set<string>();

  get values(): LimitValues {
    return this.#limits;
  }

  /** Time counts from this moment. `now` returns milliseconds and never goes back. */
  constructor(
    limits: LimitValues,
    now: () => number,
    { whole, isPart = whole !== undefined, price }: LimitsOptions = {},
  ) {
    this.#limits = limits;
    this.#now = now;
    this.#begin = whole === undefined ? now() : whole.#begin;
    this.#spent = whole === undefined ? { tokens: 0, cost: 0 } : whole.#spent;
    this.#called = whole !== undefined && isPart ? whole.#called : { calls: 0 };
    this.#price = whole === undefined ? price : whole.#price;
    this.#isPart = isPart;
  }

  /** Budget of one of several candidates: time, tokens and cost are shared, turns and calls are its own. */
  attempt(): Limits {
    return new Limits(this.#limits, this.#now, { whole: this, isPart: false });
  }

  /** Budget of a subagent: shared but for its own turns, `spent` of them used. It gets its own limit warnings. */
  part(turns: number, spent = 0): Limits {
    const part = new Limits({ ...this.#limits, turns }, this.#now, { whole: this });
    part.#turns = spent;
    return part;
  }

  /** Call before each request of the loop. */
  turn(): void {
    this.#turns += 1;
  }

  /** Call before each tool runs. */
  call(): void {
    this.#called.calls += 1;
  }

  /** The call did not run after all: it waits for a person. */
  uncall(): void {
    this.#called.calls -= 1;
  }

  /** Continues from where a run was parked. */
  resume({ turns, ms, tokens, cost, calls, told }: Omit<SpentBefore, "usage">): void {
    this.#turns = turns;
    this.#begin = this.#now() - ms;
    Object.assign(this.#spent, { tokens, cost });
    this.#called.calls = calls;
    for (const key of told) this.#warned.add(key);
  }

  /** The state to pass to `resume` in a later process. */
  sofar(): Omit<SpentBefore, "usage"> {
    return {
      turns: this.#turns,
      ms: this.#spentOf("ms"),
      ...this.#spent,
      ...this.#called,
      told: [...this.#warned],
    };
  }

  /**
   * Call after each request, including failed and side requests. The estimate replaces counts that the server omits.
   */
  used(usage: Usage, { prompt, completion }: TokenEstimate): void {
    const whole = {
      ...usage,
      prompt_tokens: usage.prompt_tokens ?? prompt,
      completion_tokens: usage.completion_tokens ?? completion,
    };
    this.#spent.tokens += whole.prompt_tokens + whole.completion_tokens;
    this.#spent.cost += usage.cost ?? costOf(whole, this.#price) ?? 0;
  }

  /** Turns of this loop. */
  get turns(): number {
    return this.#turns;
  }

  /** Calls of the run, including its subagents. */
  get calls(): number {
    return this.#called.calls;
  }

  /** Milliseconds until the time is up, at least 0; undefined without a time limit. */
  remainingMs(): number | undefined {
    return this.#limits.ms === undefined ? undefined : Math.max(0, this.#limits.ms - this.#spentOf("ms"));
  }

  /** Aborts with the given signal, or once the time is up. `reached` then reports the time limit, too. */
  deadline(signal: AbortSignal): AbortSignal {
    return this.#within(this.remainingMs(), signal);
  }

  /** Aborts with the given signal, or halfway to the deadline: for what the run can do without. */
  halfway(signal: AbortSignal): AbortSignal {
    const left = this.remainingMs();
    return this.#within(left === undefined ? undefined : left / 2, signal);
  }

  #within(ms: number | undefined, signal: AbortSignal): AbortSignal {
    if (ms === undefined || ms > MAX_TIMER_LENGTH - 2) return signal;
    return AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(ms) + 1)]);
  }

  /**
   * The first limit that forbids starting a turn, a call, or a request beside the turns. When the calls are spent, the
   * model may still answer; when the turns are spent, its last calls may still run.
   */
  reached(before: keyof typeof FREE): SpentLimit | undefined {
    for (const which of NAMES) {
      const limit = this.#limits[which];
      if (limit === undefined || FREE[before].includes(which) || this.#spentOf(which) < limit) continue;
      const more = which === "turns" && this.#isPart ? "" : ` (raise it with ${FLAGS[which]})`;
      return { which, text: `The limit of ${amount(which, limit)} is used up${more}.` };
    }
    return undefined;
  }

  /** Warnings that the model has not had yet; undefined when there is nothing new. */
  note(): string | undefined {
    const lines = NAMES.flatMap((which) => this.#noteOf(which) ?? []);
    return lines.length === 0 ? undefined : lines.join(" ");
  }

  #noteOf(which: LimitName): string | undefined {
    const limit = this.#limits[which];
    if (limit === undefined) return undefined;
    const left = limit - this.#spentOf(which);
    if (which === "turns") return this.#turnsNote(left, limit);
    if (which === "calls" && left <= 0)
      return this.#once("no calls", "No tool calls are left: give your final answer now.");
    if (left <= 0 || this.#spentOf(which) < NEARLY_SPENT_SHARE * limit) return undefined;
    return this.#once(which, `Only ${amount(which, left)} of ${amount(which, limit)} left: wrap up.`);
  }

  #turnsNote(left: number, limit: number): string | undefined {
    if (left === 1)
      return this.#once("last turn", "This is your last turn: give your final answer now, without calls.");
    const few = Math.min(TURNS_LEFT, Math.ceil((1 - NEARLY_SPENT_SHARE) * limit));
    return left > 0 && left <= few
      ? this.#once("turns", `Only ${left} of ${limit} turns left: wrap up.`)
      : undefined;
  }

  #once(key: string, text: string): string | undefined {
    if (this.#warned.has(key)) return undefined;
    this.#warned.add(key);
    return text;
  }

  #spentOf(which: LimitName): number {
    if (which === "ms") return this.#now() - this.#begin;
    if (which === "calls") return this.#called.calls;
    return which === "turns" ? this.#turns : this.#spent[which];
  }
}

function amount(which: LimitName, value: number): string {
  switch (which) {
    case "turns":
      return plural(value, "turn");
    case "calls":
      return plural(value, "tool call");
    case "ms":
      return formatDuration(value);
    case "tokens":
      return plural(Math.round(value), "token");
    default:
      return `${Number(value.toPrecision(3))} (cost)`;
  }
}

/** Usage of all requests of a run, including those of its subagents. */
export class Spent {
  readonly #before: Usage;
  #usage = NO_USAGE;

  /** `before`: the usage up to the point where the run was parked. */
  constructor(before = NO_USAGE) {
    this.#before = before;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** Includes the usage before the run was parked. */
  get whole(): Usage {
    return sumUsage(this.#before, this.#usage);
  }

  add(more: Usage): void {
    this.#usage = sumUsage(this.#usage, more);
  }
}

export type ToolAndArgs = Pick<ToolCall, "name" | "args">;

/** `broken`: the call is not run, and this text is the model's result instead. */
export type GuardVerdict = "run" | "stop" | { readonly broken: string };

const REPEATED_ROUNDS = 3;
/** A cycle that alternates a pause with a look at a job may go on longer: that is how one waits for a job. */
const ROUNDS_OF_POLLS = 10;
const MAX_CYCLE_LENGTH = 4;
/** Stops a model that changes course each time it is told to, and then comes back to the same calls. */
const MAX_BREAKS = 3;
/** How the text that replaces a result begins. */
const NOT_RUN = "Not run: ";

interface Entry {
  readonly key: string;
  readonly polls: boolean;
  /** Null while the call runs. */
  result: string | null;
  readonly broken: boolean;
}

/**
 * Breaks up calls that lead nowhere: the same call three times in a row, or two to four calls in a cycle three times
 * over with the same results. The last call of the third round is not run. A model that continues after being told is
 * stopped; so is the fourth break of one run. Looks at a background job count only while they show the same.
 *
 * `check` is called in the order of the calls, `ended` for every call that ran, in any order.
 */
export class Guard {
  #entries: Entry[] = [];
  #breaks = 0;
  /** The reply in which the current repetition was broken up. */
  #brokenIn: number | undefined;

  /** `reply` is any growing number; it tells what the model did before it was told from what it did after. */
  check(call: ToolAndArgs, reply: number): GuardVerdict {
    const entry: Entry = { key: keyOf(call), polls: isPoll(call), result: null, broken: false };
    const period = this.#periodWith(entry);
    this.#push(period === undefined ? entry : { ...entry, broken: true });
    if (period === undefined) {
      this.#brokenIn = undefined;
      return "run";
    }
    if (this.#brokenIn !== undefined && this.#brokenIn < reply) return "stop";
    if (this.#brokenIn === undefined) {
      this.#breaks += 1;
      this.#brokenIn = reply;
    }
    return this.#breaks > MAX_BREAKS ? "stop" : { broken: brokenText(call, period) };
  }

  /** Records the result that the model got from a call. */
  ended(call: ToolAndArgs, resultText: string): void {
    const key = keyOf(call);
    const entry = this.#entries.find((each) => each.key === key && each.result === null && !each.broken);
    if (entry !== undefined) entry.result = resultText;
  }

  #push(entry: Entry): void {
    this.#entries = [...this.#entries, entry].slice(-MAX_CYCLE_LENGTH * ROUNDS_OF_POLLS);
  }

  /** The length of the cycle that the entry would close; 1 for the same call in a row. */
  #periodWith(entry: Entry): number | undefined {
    for (let period = 1; period <= MAX_CYCLE_LENGTH; period += 1) {
      const cycle = [...this.#entries, entry].slice(-period);
      const polls = cycle.some((each) => each.polls);
      const rounds = polls && period > 1 ? ROUNDS_OF_POLLS : REPEATED_ROUNDS;
      const round = this.#entries.slice(1 - period * rounds);
      if (round.length < period * rounds - 1) continue;
      const sameResults = period > 1 || polls;
      if ([...round, entry].every((each, at, all) => isSame(each, all[at - period], sameResults, entry)))
        return period;
    }
    return undefined;
  }
}

/** A call that has not run has no result to compare. */
function isSame(each: Entry, before: Entry | undefined, results: boolean, last: Entry): boolean {
  if (before === undefined) return true;
  if (each.key !== before.key) return false;
  if (!results || each === last || each.broken || before.broken) return true;
  return each.result !== null && each.result === before.result;
}

/** A look at a background job or task, whose result may differ each time. */
function isPoll({ name, args }: ToolAndArgs): boolean {
  return (name === "bash" && args["job"] !== undefined) || (name === "task" && args["task"] !== undefined);
}

function brokenText(call: ToolAndArgs, period: number): string {
  if (call.name === "task" && isPoll(call))
    return `${NOT_RUN}the task shows the same as the last times. Wait for it with a timeout, do something else meanwhile, or cancel it.`;
  if (isPoll(call))
    return `${NOT_RUN}the job shows the same as the last times. Wait for it in one command (sleep 30), do something else meanwhile, or end it.`;
  const what =
    period === 1
      ? `this is the same ${call.name} call for the third time in a row`
      : `you go round in the same ${period} calls, with the same results`;
  return `${NOT_RUN}${what}. The result is above and will not change. Do something else: other arguments, another tool, another idea. If nothing is left to do, or you are stuck, give your final answer and say so. Repeating it once more stops the run.`;
}

interface FoundRepetition {
  /** The history up to this count predates the repetition. */
  readonly mark: number;
  /** Told to the model in place of the repeated calls, which it would only take up again. */
  readonly text: string;
}

/**
 * Finds the repetition at the end of a history that the guard broke up, so that a continued conversation does not show
 * the model the same calls again. Undefined when the history ends otherwise. Words of a person are never part of it.
 */
export function repetitionAtEnd(messages: readonly Message[]): FoundRepetition | undefined {
  const own = messages.findLastIndex(({ role, text }) => role === "user" && !text.startsWith(NOTICE)) + 1;
  const made = messages.flatMap((message, at) =>
    at >= own && message.role === "assistant" ? message.calls.map((call) => ({ call, at })) : [],
  );
  const isLast = (at: number): boolean => messages.findLastIndex(({ role }) => role === "assistant") === at;
  // Of the stopped reply, only the calls before the stop count.
  for (let end = made.length; end > 0 && isLast(made[end - 1]?.at ?? -1); end -= 1) {
    const found = cycleOf(made.slice(0, end).map(({ call }) => keyOf(call)));
    if (found === undefined) continue;
    const mark = firstWhole(made, end - found.length);
    if (mark === undefined || !messages.slice(mark).some(isBroken)) continue;
    const names = [...new Set(made.slice(end - found.period, end).map(({ call }) => call.name))];
    return { mark, text: stuckText(names, found) };
  }
  return undefined;
}

interface Cycle {
  readonly period: number;
  /** Calls of all rounds together. */
  readonly length: number;
}

/** The shortest cycle that ends the list and is there at least three times. */
function cycleOf(keys: readonly string[]): Cycle | undefined {
  for (let period = 1; period <= MAX_CYCLE_LENGTH; period += 1) {
    let length = Math.min(period, keys.length);
    while (length < keys.length && keys.at(-1 - length) === keys.at(period - 1 - length)) length += 1;
    if (length >= period * REPEATED_ROUNDS) return { period, length };
  }
  return undefined;
}

/** The position of the first reply that lies wholly within the cycle. */
function firstWhole(made: readonly { readonly at: number }[], from: number): number | undefined {
  const before = made[from - 1]?.at ?? -1;
  return made.slice(from).find(({ at }) => at > before)?.at;
}

const isBroken = ({ role, text }: Message): boolean => role === "tool" && text.startsWith(NOT_RUN);

const stuckText = (names: readonly string[], { period, length }: Cycle): string =>
  `Before this you were stopped: you made the same ${period === 1 ? `${names.join()} call ${length} times` : `${period} calls (${names.join(", ")}) over and over, ${length} in all`}, with the same results. They are left out here. Take another way.`;

function keyOf({ name, args }: ToolAndArgs): string {
  return `${name} ${JSON.stringify(sorted(args))}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

const MAX_MALFORMED = 5;

interface RepliedCalls {
  readonly good: number;
  readonly bad: number;
  /** The reply is meant as an answer but contains calls that were not run. */
  readonly unrun?: boolean;
}

/** Counts replies in a row whose calls all failed to parse or to fit their tool's schema. */
export class Malformed {
  #inRow = 0;
  #unrun = 0;

  /** Call after each reply that had calls. Returns the reason to give up once there were too many. */
  replied({ good, bad, unrun = false }: RepliedCalls): string | undefined {
    this.#inRow = good > 0 || bad === 0 ? 0 : this.#inRow + 1;
    this.#unrun = good > 0 ? 0 : this.#unrun + (unrun ? 1 : 0);
    if (this.#unrun > 1)
      return "The model's answer contains calls that were not run, even after it was told which tools there are.";
    return this.#inRow < MAX_MALFORMED
      ? undefined
      : `The model made no valid tool call in ${this.#inRow} replies in a row.`;
  }
}
