import { formatDuration } from "../core/text/bounds.ts";
import type { Price, Usage } from "../core/messages.ts";
import type { SpentBefore } from "../core/session.ts";
import { counted } from "../core/text/short-lists.ts";
import { costOf, NO_USAGE, sumUsage } from "../models/usage.ts";

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

const NEAR = 0.8;
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

  get given(): LimitValues {
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
    const left = this.remainingMs();
    if (left === undefined || left > MAX_TIMER_LENGTH - 2) return signal;
    return AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(left) + 1)]);
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
    if (left <= 0 || this.#spentOf(which) < NEAR * limit) return undefined;
    return this.#once(which, `Only ${amount(which, left)} of ${amount(which, limit)} left: wrap up.`);
  }

  #turnsNote(left: number, limit: number): string | undefined {
    if (left === 1)
      return this.#once("last turn", "This is your last turn: give your final answer now, without calls.");
    const few = Math.min(TURNS_LEFT, Math.ceil((1 - NEAR) * limit));
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
      return counted(value, "turn");
    case "calls":
      return counted(value, "tool call");
    case "ms":
      return formatDuration(value);
    case "tokens":
      return `${Math.round(value)} tokens`;
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
