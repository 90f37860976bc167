import { parseDuration, parseSize } from "../../core/bounds.ts";

/** A published port; only loopback addresses are representable. */
export interface Port {
  readonly address: string;
  readonly host: number;
  readonly container: number;
  readonly protocol: "tcp" | "udp";
}

export interface Mount {
  readonly volume: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/*
 * Readers of the short forms of a compose file: the value, or undefined when the text is of another form.
 */

const PORT = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]):(\d{1,5}):(\d{1,5})(?:\/(tcp|udp))?$/;
const MOUNT = /^([A-Za-z0-9][A-Za-z0-9_.-]*):(\/[^:]*)(?::(ro|rw))?$/;
const DURATION_PARTS = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

export function portFrom(value: unknown): Port | undefined {
  const match = typeof value === "string" ? PORT.exec(value) : null;
  if (match === null) return undefined;
  const [host, container] = [Number(match[2]), Number(match[3])];
  if (![host, container].every((port) => port >= 1 && port <= 65_535)) return undefined;
  const address = (match[1] ?? "").replaceAll(/[[\]]/g, "");
  if (address.split(".").some((part) => Number(part) > 255)) return undefined;
  return { address, host, container, protocol: match[4] === "udp" ? "udp" : "tcp" };
}

export function mountFrom(value: unknown): Mount | undefined {
  const match = typeof value === "string" ? MOUNT.exec(value) : null;
  if (match === null) return undefined;
  return { volume: match[1] ?? "", target: match[2] ?? "", readOnly: match[3] === "ro" };
}

/** Milliseconds of `10s`, `1m30s`; unlike the settings, a bare number is refused, as compose does. */
export function durationFrom(value: unknown): number | undefined {
  if (typeof value !== "string" || !DURATION_PARTS.test(value)) return undefined;
  const parts = value.match(/[\d.]+[a-z]+/g) ?? [];
  return parts.reduce((sum, part) => sum + (parseDuration(part) ?? Number.NaN), 0);
}

export function sizeFrom(value: unknown): number | undefined {
  const bytes = typeof value === "string" || typeof value === "number" ? parseSize(String(value)) : undefined;
  return bytes === undefined || bytes < 1 ? undefined : bytes;
}

export function textsFrom(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
}

/** A list of words, or one line of plain words: quotes and escapes would need a shell's reading. */
export function wordsFrom(value: unknown): readonly string[] | undefined {
  if (typeof value !== "string") return textsFrom(value);
  return /["'\\]/.test(value) || value.trim() === "" ? undefined : value.trim().split(/\s+/);
}

/** One text or a list of them. */
export const oneOrMoreFrom = (value: unknown): readonly string[] | undefined =>
  typeof value === "string" ? [value] : textsFrom(value);

/** `KEY: value` or `- KEY=value`. A key without a value would come from the caller's environment: refused. */
export function pairsFrom(value: unknown): Readonly<Record<string, string>> | undefined {
  const entries = Array.isArray(value) ? value.map(pairFrom) : mapEntries(value);
  if (entries === undefined) return undefined;
  const pairs = entries.filter((entry) => entry !== undefined);
  return pairs.length === entries.length ? Object.fromEntries(pairs) : undefined;
}

type Pair = readonly [string, string];

function mapEntries(value: unknown): (Pair | undefined)[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).map(([key, entry]: [string, unknown]) =>
    typeof entry === "string" || typeof entry === "number" || typeof entry === "boolean"
      ? ([key, String(entry)] as const)
      : undefined,
  );
}

function pairFrom(value: unknown): Pair | undefined {
  const match = typeof value === "string" ? /^([^=]+)=(.*)$/s.exec(value) : null;
  return match === null ? undefined : [match[1] ?? "", match[2] ?? ""];
}

/** The command of a health check in the engine's form: CMD, CMD-SHELL or NONE first. */
export function probeFrom(value: unknown): readonly string[] | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : ["CMD-SHELL", value];
  const words = textsFrom(value);
  if (words === undefined) return undefined;
  const [kind] = words;
  if (kind === "NONE") return words.length === 1 ? words : undefined;
  return (kind === "CMD" || kind === "CMD-SHELL") && words.length > 1 ? words : undefined;
}
