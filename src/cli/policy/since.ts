import { DURATION_FORM, parseDuration } from "../../core/bounds.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";

const DAY = 86_400_000;

/** The moment that `--since` names: so long before now, or a date. */
export function sinceMoment(text: string, now: number): number {
  const days = /^(\d{1,6}(?:\.\d+)?)d$/i.exec(text.trim())?.[1];
  const ago = days === undefined ? parseDuration(text) : Number(days) * DAY;
  if (ago !== undefined) return now - ago;
  const date = /^\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$/.test(text.trim())
    ? Date.parse(text)
    : Number.NaN;
  if (!Number.isNaN(date)) return date;
  throw new HarnessError(
    EXIT.usage,
    `--since ${text}: expected ${DURATION_FORM}, 7d, or a date such as 2026-01-31`,
    "harness policy replay --since 7d",
  );
}
