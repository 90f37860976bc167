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
