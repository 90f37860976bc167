/** Durations (`90`, `90s`, `30m`, `2h`) and sizes (`256m`, `2g`) as people write them. */

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/;
const SIZE = /^(\d+(?:\.\d+)?)([kmgt])?(?:i?b)?$/;
const MS_PER = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
const BYTES_PER = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 } as const;

export const DURATION_FORM = "a duration such as 90, 90s, 30m or 2h";
export const SIZE_FORM = "a size such as 256m or 2g";

/** Milliseconds, or undefined when the text is no duration. A bare number is seconds. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim().toLowerCase());
  if (match === null) return undefined;
  const unit = (match[2] ?? "s") as keyof typeof MS_PER;
  const ms = Number(match[1]) * MS_PER[unit];
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined;
}

/** Bytes, or undefined when the text is no size. A bare number is bytes. */
export function parseSize(text: string): number | undefined {
  const match = SIZE.exec(text.trim().toLowerCase());
  if (match === null) return undefined;
  const unit = match[2] as keyof typeof BYTES_PER | undefined;
  const bytes = Math.round(Number(match[1]) * (unit === undefined ? 1 : BYTES_PER[unit]));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1000);
  return `${minutes} min ${seconds} s`;
}

export function formatSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ""}`;
}
