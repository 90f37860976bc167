/** How a server that says "later" is waited for, whichever it is: pure, so that its callers bring clock and chance. */

export interface RetryRules {
  /** Attempts of one request in all, where each failure is a passing one. */
  readonly attempts: number;
  /** The same where the server says that it has too much to do (429, 503). */
  readonly busyAttempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** The longest wait that a server may ask for. */
  readonly longestMs: number;
  /** What is put on top of that at most, as a part of it; none where one client alone is known of. */
  readonly spread?: number;
}

/** Of several clients that were told the same. */
export const SPREAD = 0.1;

/** Of a busy server that names no time: half a minute in all at most. One that names it: as often, as long as it says. */
export const RETRIES: RetryRules = {
  attempts: 5,
  busyAttempts: 7,
  baseMs: 500,
  capMs: 30_000,
  longestMs: 120_000,
};

export interface PassingFailure {
  readonly passing: boolean;
  /** It is there and has too much to do. */
  readonly busy: boolean;
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
}

/**
 * Milliseconds before the next attempt, after so many that failed; null when there is none. Many clients of one server do
 * not come back together: what is waited of one's own accord has full jitter, of a busy server half of it is certain, and
 * what the server asks for is obeyed, with `spread` on top, unless it is too long to be waited for.
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
    const spread = Math.min(retryAfterMs * (rules.spread ?? 0), MOST_SPREAD_MS) * random();
    return Math.min(Math.ceil(retryAfterMs + spread), rules.longestMs);
  }
  const most = Math.min(rules.capMs, rules.baseMs * 2 ** (failures - 1));
  return Math.round(busy ? most * (0.5 + random() / 2) : most * random());
}

const MOST_SPREAD_MS = 5000;

/** HTTP's codes of a server that is there and has too much to do; 529 is Anthropic's. */
export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529;

/**
 * Milliseconds that a Retry-After header asks for: seconds, or an HTTP date, which counts from the answer's own `date`, so
 * that no second clock is asked, else from `now` (milliseconds since 1970), and asks for nothing once it is past; null where
 * it is neither.
 */
export function askedToWait(
  header: string | null | undefined,
  now: number,
  date?: string | null,
): number | null {
  const said = header?.trim() ?? "";
  if (/^\d{1,12}(?:\.\d{1,9})?$/.test(said)) return bounded(Number(said) * 1000);
  const until = momentOf(said);
  return until === null ? null : bounded(until - (momentOf(date) ?? now));
}

/** What a date of HTTP says, in milliseconds since 1970; null where it is none. */
export function momentOf(header: string | null | undefined): number | null {
  const said = header?.trim() ?? "";
  // Date.parse takes much that is no date of HTTP, such as "1" or "soon 7".
  if (!HTTP_DATE.test(said)) return null;
  // The oldest of its three forms names no zone, and means the same one.
  const moment = Date.parse(said.endsWith("GMT") ? said : `${said} GMT`);
  return Number.isNaN(moment) ? null : moment;
}

const HTTP_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?:\d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})$/;
const DAY_MS = 24 * 3_600_000;
const bounded = (ms: number): number => Math.min(Math.max(Math.ceil(ms), 0), DAY_MS);

/** What several runs know together of one server that asked to be left alone for a while. */
export interface BackPressure {
  /** Milliseconds until it may be asked again: 0 where nobody was told to wait. */
  readonly pending: () => number;
  /** It asked one of us to wait so long. */
  readonly hold: (ms: number) => void;
}

export const NO_PRESSURE: BackPressure = { pending: () => 0, hold: () => undefined };

/**
 * What a client waits that was not asked to, beside those that were: as long as they, at most `longestMs`, and some time
 * more, that not all come at once. 0 where nobody was asked, and where so long was waited already.
 */
export function heldBack({ pending }: BackPressure, longestMs: number, random: () => number): number {
  const left = Math.min(pending(), longestMs);
  if (left <= 0) return 0;
  return Math.ceil(left + random() * Math.min(Math.max(left / 4, LEAST_SPREAD_MS), MOST_SPREAD_MS));
}

const LEAST_SPREAD_MS = 250;
