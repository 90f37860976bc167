import { formatDuration } from "../core/text/bounds.ts";
import type { Price, Usage } from "../core/messages.ts";
import type { SpentBefore } from "../core/session.ts";
import { counted } from "../core/text/short-lists.ts";
import { costOf, NO_USAGE, sumUsage } from "../models/usage.ts";

/** What a run may spend; what is left out is not limited. */
export interface LimitsGiven {
  /** Requests of one loop: a subagent has its own. */
  readonly turns?: number;
  readonly ms?: number;
  /** Prompt and completion. */
  readonly tokens?: number;
  readonly cost?: number;
  readonly calls?: number;
}

type LimitName = keyof LimitsGiven;

interface Reached {
  readonly which: LimitName;
  /** For people: what is spent, and the flag that gives more. */
  readonly text: string;
}

/** What a request comes to by its bytes. */
interface Estimated {
  readonly prompt: number;
  readonly completion: number;
}

interface LimitsFrom {
  /** Of the model's tokens. */
  readonly price?: Price | undefined;
  /** The budget that it is a part of, or one attempt at. */
  readonly whole?: Limits;
  readonly isPart?: boolean;
}

const NEAR = 0.8;
const TURNS_LEFT = 5;
/** More than timers can wait for; 24 days. */
const MAX_TIMER_LENGTH = 2 ** 31 - 1;
const FLAGS: Readonly<Record<LimitName, string>> = {
  turns: "--max-turns",
  ms: "--max-time",
  tokens: "--max-tokens",
  cost: "--max-cost",
  calls: "--max-tool-calls",
};
/** What each of them does not use up. */
const FREE: Readonly<Record<"turn" | "call" | "aside", readonly LimitName[]>> = {
  turn: ["calls"],
  call: ["turns"],
  aside: ["turns", "calls"],
};
const NAMES = Object.keys(FLAGS) as readonly LimitName[];

/**
 * The budget of a run. Each limit is told of once when it is near, the turns once more before the last; the texts are
 * for the model, so that it can wrap up. As much as a limit says may be used: only what comes behind it is not begun.
 */
export class Limits {
  readonly #limits: LimitsGiven;
  readonly #now: () => number;
  #begin: number;
  /** Of the run, its subagents and all its candidates included. */
  readonly #spent: { tokens: number; cost: number };
  /** Of the run, its subagents included. */
  readonly #called: { calls: number };
  readonly #price: Price | undefined;
  readonly #isPart: boolean;
  #turns = 0;
  readonly #told = new Set<string>();

  get given(): LimitsGiven {
    return this.#limits;
  }

  /** Time counts from here on; `now` is in milliseconds and never goes back. */
  constructor(
    limits: LimitsGiven,
    now: () => number,
    { whole, isPart = whole !== undefined, price }: LimitsFrom = {},
  ) {
    this.#limits = limits;
    this.#now = now;
    this.#begin = whole === undefined ? now() : whole.#begin;
    this.#spent = whole === undefined ? { tokens: 0, cost: 0 } : whole.#spent;
    this.#called = whole !== undefined && isPart ? whole.#called : { calls: 0 };
    this.#price = whole === undefined ? price : whole.#price;
    this.#isPart = isPart;
  }

  /** For one of several candidates: the time, the tokens and the cost are those of all, turns and calls its own. */
  attempt(): Limits {
    return new Limits(this.#limits, this.#now, { whole: this, isPart: false });
  }

  /** For a subagent: the same budget but turns of its own, some of them spent; it is told of limits by itself. */
  part(turns: number, spent = 0): Limits {
    const part = new Limits({ ...this.#limits, turns }, this.#now, { whole: this });
    part.#turns = spent;
    return part;
  }

  /** Before a request of the loop is sent. */
  turn(): void {
    this.#turns += 1;
  }

  /** Before a tool is run. */
  call(): void {
    this.#called.calls += 1;
  }

  /** It was not run after all: it waits for a person. */
  uncall(): void {
    this.#called.calls -= 1;
  }

  /** Goes on from where a run was parked. */
  resume({ turns, ms, tokens, cost, calls, told }: Omit<SpentBefore, "usage">): void {
    this.#turns = turns;
    this.#begin = this.#now() - ms;
    Object.assign(this.#spent, { tokens, cost });
    this.#called.calls = calls;
    for (const key of told) this.#told.add(key);
  }

  /** For `resume` of a later one. */
  sofar(): Omit<SpentBefore, "usage"> {
    return {
      turns: this.#turns,
      ms: this.#spentOf("ms"),
      ...this.#spent,
      ...this.#called,
      told: [...this.#told],
    };
  }

  /** After a request, failed ones and side requests too. What the server did not say counts as it is estimated. */
  used(usage: Usage, { prompt, completion }: Estimated): void {
    const whole = {
      ...usage,
      prompt_tokens: usage.prompt_tokens ?? prompt,
      completion_tokens: usage.completion_tokens ?? completion,
    };
    this.#spent.tokens += whole.prompt_tokens + whole.completion_tokens;
    this.#spent.cost += usage.cost ?? costOf(whole, this.#price) ?? 0;
  }

  /** Of this loop. */
  get turns(): number {
    return this.#turns;
  }

  /** Of the run, its subagents included. */
  get calls(): number {
    return this.#called.calls;
  }

  /** Milliseconds until the time is up, 0 at least; undefined without a limit. */
  remainingMs(): number | undefined {
    return this.#limits.ms === undefined ? undefined : Math.max(0, this.#limits.ms - this.#spentOf("ms"));
  }

  /** Aborts with the given signal, or when the time is up and `reached` says so too. */
  deadline(signal: AbortSignal): AbortSignal {
    const left = this.remainingMs();
    if (left === undefined || left > MAX_TIMER_LENGTH - 2) return signal;
    return AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(left) + 1)]);
  }

  /**
   * The first limit that forbids to begin a turn, a call, or a request beside the turns. A spent limit of calls still lets
   * the model answer, and of turns still lets its last calls run.
   */
  reached(before: keyof typeof FREE): Reached | undefined {
    for (const which of NAMES) {
      const limit = this.#limits[which];
      if (limit === undefined || FREE[before].includes(which) || this.#spentOf(which) < limit) continue;
      const more = which === "turns" && this.#isPart ? "" : ` (${FLAGS[which]} gives more)`;
      return { which, text: `The limit of ${amount(which, limit)} is spent${more}.` };
    }
    return undefined;
  }

  /** What the model has not been told yet; undefined when there is nothing new. */
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
    if (this.#told.has(key)) return undefined;
    this.#told.add(key);
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

/** What all requests of a run have used, those of its subagents too. */
export class Spent {
  readonly #before: Usage;
  #usage = NO_USAGE;

  /** `before`: until the run was parked. */
  constructor(before = NO_USAGE) {
    this.#before = before;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** With what was used before. */
  get whole(): Usage {
    return sumUsage(this.#before, this.#usage);
  }

  add(more: Usage): void {
    this.#usage = sumUsage(this.#usage, more);
  }
}
