/** How to wait for a server that says "later", whichever server it is. Pure: callers supply clock and randomness. */

export interface RetryRules {
  /** Most attempts of one request if every failure is a passing one. */
  readonly attempts: number;
  /** The same if the server says that it is overloaded (429, 503). */
  readonly busyAttempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** The longest wait that a server may ask for. */
  readonly longestMs: number;
  /** Most time added to a wait that the server asked for, as a share of it; none if only one client is known. */
  readonly spread?: number;
}

/** For several clients that were told to wait for the same time. */
export const SPREAD = 0.1;

/** Waits at most half a minute in all for a busy server that names no time; else as long as it says, each time. */
export const RETRIES: RetryRules = {
  attempts: 5,
  busyAttempts: 7,
  baseMs: 500,
  capMs: 30_000,
  longestMs: 120_000,
};

export interface PassingFailure {
  readonly passing: boolean;
  /** The server is there but overloaded. */
  readonly busy: boolean;
  /** The wait that the server asked for, in milliseconds. */
  readonly retryAfterMs: number | null;
}

/**
 * Milliseconds before the next attempt after this many failures; null when there is none. Many clients of one server
 * must not come back together: a wait of our own choice has full jitter; for a busy server half of it is fixed. A wait
 * that the server asks for is obeyed, with `spread` added, unless it is too long.
 */
export function delayAfter(
  failures: number,
  { passing, busy, retryAfterMs }: PassingFailure,
  rules: RetryRules,
  random: () => number,
): number | null {
  if (!passing || failures >= (busy ? rules.busyAttempts : rules.attempts)) return null;
  if (retryAfterMs !== null && retryAfterMs > 0) {
    if (retryAfterMs > rules.longestMs) return null;
    const spread = Math.min(retryAfterMs * (rules.spread ?? 0), MAX_SPREAD_MS) * random();
    return Math.min(Math.ceil(retryAfterMs + spread), rules.longestMs);
  }
  const most = Math.min(rules.capMs, rules.baseMs * 2 ** (failures - 1));
  return Math.round(busy ? most * (0.5 + random() / 2) : most * random());
}

const MAX_SPREAD_MS = 5000;

/** HTTP status codes of an overloaded server; 529 is Anthropic's. */
export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529;

/**
 * Milliseconds that a Retry-After header asks for: seconds, or an HTTP date. A date counts from the response's own
 * `date`, so that no second clock is involved, otherwise from `now` (milliseconds since 1970); a past date means 0.
 * Null for anything else.
 */
export function parseRetryAfter(
  header: string | null | undefined,
  now: number,
  date?: string | null,
): number | null {
  const text = header?.trim() ?? "";
  if (/^\d{1,12}(?:\.\d{1,9})?$/.test(text)) return clampToDay(Number(text) * 1000);
  const until = momentOf(text);
  return until === null ? null : clampToDay(until - (momentOf(date) ?? now));
}

/** An HTTP date in milliseconds since 1970; null if the text is not one. */
export function momentOf(header: string | null | undefined): number | null {
  const text = header?.trim() ?? "";
  // Date.parse accepts much that is not an HTTP date, such as "1" or "soon 7".
  if (!HTTP_DATE.test(text)) return null;
  // The oldest of the three forms names no zone, and means GMT as well.
  const moment = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isNaN(moment) ? null : moment;
}

const HTTP_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?:\d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})$/;
const DAY_MS = 24 * 3_600_000;
const clampToDay = (ms: number): number => Math.min(Math.max(Math.ceil(ms), 0), DAY_MS);

/** What several runs know together about a server that asked to be left alone for a while. */
export interface BackPressure {
  /** Milliseconds until the server may be asked again: 0 if nobody was told to wait. */
  readonly pending: () => number;
  /** The server asked one of us to wait this long. */
  readonly hold: (ms: number) => void;
}

export const NO_PRESSURE: BackPressure = { pending: () => 0, hold: () => undefined };

/**
 * How long a client waits that was not asked to, beside others that were: as long as they do, at most `longestMs`, plus
 * some time, so that not all come back at once. 0 if nobody was asked to wait, or that time is already over.
 */
export function backPressureMs({ pending }: BackPressure, longestMs: number, random: () => number): number {
  const left = Math.min(pending(), longestMs);
  if (left <= 0) return 0;
  return Math.ceil(left + random() * Math.min(Math.max(left / 4, MIN_SPREAD_MS), MAX_SPREAD_MS));
}

const MIN_SPREAD_MS = 250;
