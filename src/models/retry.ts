import type { WireFailure } from "./wire.ts";

export interface RetryRules {
  /** Attempts of one request in all, where each failure is a passing one. */
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** The longest wait that a server may ask for. */
  readonly longestMs: number;
}

export const RETRIES: RetryRules = { attempts: 5, baseMs: 500, capMs: 30_000, longestMs: 120_000 };

/**
 * Milliseconds before the next attempt, after so many that failed; null when there is none. Full jitter: many clients of
 * one server do not come back together. What the server asks for is obeyed, unless it is too long to be waited for.
 */
export function delayAfter(
  failures: number,
  { passing, retryAfterMs }: Pick<WireFailure, "passing" | "retryAfterMs">,
  rules: RetryRules,
  random: () => number,
): number | null {
  if (!passing || failures >= rules.attempts) return null;
  const own = random() * Math.min(rules.capMs, rules.baseMs * 2 ** (failures - 1));
  if (retryAfterMs === null || !(retryAfterMs > 0)) return Math.round(own);
  return retryAfterMs > rules.longestMs ? null : Math.ceil(retryAfterMs);
}
