/**
 * Values as people write and read them: durations, sizes, counts, short lists, near words, patterns, completed words.
 */
import { visibleLine } from "./visible.ts";

/** Durations (`90`, `90s`, `30m`, `2h`) and sizes (`256m`, `2g`) as people write them. */

/** Without the u flag, i folds ASCII letters only: no look-alike counts as a unit. */
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/i;
const SIZE = /^(\d+(?:\.\d+)?)([kmgt])?(?:i?b)?$/i;
const MS_PER = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
const BYTES_PER = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 } as const;

export const DURATION_FORM = "a duration such as 90, 90s, 30m or 2h";
export const SIZE_FORM = "a size such as 256m or 2g";

/** Milliseconds, or undefined when the text is no duration. A bare number is seconds. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim());
  if (match === null) return undefined;
  const unit = (match[2] ?? "s").toLowerCase() as keyof typeof MS_PER;
  const ms = Number(match[1]) * MS_PER[unit];
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined;
}

/** Bytes, or undefined when the text is no size. A bare number is bytes. */
export function parseSize(text: string): number | undefined {
  const match = SIZE.exec(text.trim());
  if (match === null) return undefined;
  const unit = match[2]?.toLowerCase() as keyof typeof BYTES_PER | undefined;
  const bytes = Math.round(Number(match[1]) * (unit === undefined ? 1 : BYTES_PER[unit]));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  if (Math.round(ms / 100) < 600) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.max(60, Math.floor(ms / 1000));
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `12,345`: the same as `toLocaleString("en-US")` for whole numbers, without loading its language data (10 ms). */
export const formatCount = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");

export function formatSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (Math.round(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ""}`;
}

/** As a person writes it, exact, and read back by parseDuration. */
export function writtenDuration(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/** As a person writes it, exact, and read back by parseSize. */
export function writtenSize(bytes: number): string {
  const unit = (["t", "g", "m", "k"] as const).find((name) => bytes > 0 && bytes % BYTES_PER[name] === 0);
  return unit === undefined ? String(bytes) : `${bytes / BYTES_PER[unit]}${unit}`;
}

/** Counts and shortened lists, as shown to people. */

/** The first characters, with a mark when there were more; no character is split. */
export const truncate = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, wholeBefore(text, most))}…` : text;

/** This place, or the one before or after it if a cut here would split a character. */
export const wholeBefore = (text: string, at: number): number => (splitsPair(text, at) ? at - 1 : at);
export const wholeFrom = (text: string, at: number): number => (splitsPair(text, at) ? at + 1 : at);

/** Whether a cut here would split a character into its two halves. */
export const splitsPair = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** `1 file`, `2 files`; `many` is needed when adding an s is not enough. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** The first entries, each formatted by `write`, followed by how many more there are. */
export const firstLines = <T>(
  all: readonly T[],
  most: number,
  write: (each: T) => string = String,
): readonly string[] => [
  ...all.slice(0, most).map((each) => write(each)),
  ...(all.length > most ? [`and ${all.length - most} more`] : []),
];

/** The same in one line: `a, b and 3 more`. */
export const firstOf = <T>(all: readonly T[], most: number, write: (each: T) => string = String): string =>
  all
    .slice(0, most)
    .map((each) => write(each))
    .join(", ") + (all.length > most ? ` and ${all.length - most} more` : "");

/** The nearest known word, at most two edits away from a misspelt one. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= 2 ? best.candidate : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Patterns in which `*` stands for any text. */

/** The literal parts between the `*` of a pattern. */
export type Wildcard = readonly string[];

export const readWildcard = (text: string): Wildcard => text.split("*");

/** Linear: between the first and the last part, the leftmost match of each part suffices. */
export function fitsWildcard([first = "", ...rest]: Wildcard, text: string): boolean {
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}

/** A word that a shell may complete, and the description shown beside it. */
export interface CompletionCandidate {
  readonly value: string;
  readonly about: string;
}

export const candidate = (value: string, about = ""): CompletionCandidate => ({ value, about });

/** Characters that have no meaning to any shell, wherever they stand in a word; other words are not offered. */
const PLAIN_WORD = /^[\w./@%,:+-][\w./@%,:+=-]*$/;
const MAX_WORD = 200;
const MAX_ABOUT = 60;

/** Titles and names come from others: no part of a line may be read as a second line, or by a terminal. */
export function candidateLine({ value, about }: CompletionCandidate): string | undefined {
  if (!PLAIN_WORD.test(value) || value.length > MAX_WORD) return undefined;
  const shown = visibleLine(about);
  const short = shown.length <= MAX_ABOUT ? shown : `${shown.slice(0, MAX_ABOUT - 1).toWellFormed()}…`;
  return short === "" ? value : `${value}\t${short}`;
}
