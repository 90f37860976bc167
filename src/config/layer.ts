import type { ZodError } from "zod";
import { configError } from "./document.ts";
import { ALIASES, type Layer, layerSchema, SETTING_KEYS } from "./schema.ts";

/** Checks one source of settings as a whole; `at` says where a key of it stands. */
export function readLayer(value: unknown, at: (keys: readonly PropertyKey[]) => string): Layer {
  const parsed = layerSchema.safeParse(withoutAliases(value, at));
  if (parsed.success) return parsed.data;
  throw firstIssue(parsed.error, value, at);
}

function withoutAliases(value: unknown, at: (keys: readonly PropertyKey[]) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  const plain: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value)) {
    const real = Object.hasOwn(ALIASES, key) ? ALIASES[key] : undefined;
    if (real !== undefined && Object.hasOwn(value, real))
      throw configError(at([key]), `${key}: is another name of ${real}, which is set too`);
    Object.defineProperty(plain, real ?? key, { value: entry, enumerable: true });
  }
  return plain;
}

function firstIssue(error: ZodError, value: unknown, at: (keys: readonly PropertyKey[]) => string): Error {
  const [issue] = error.issues;
  if (issue === undefined) return configError(at([]), "is not valid");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const near = nearestKey(key);
    const hint = near === undefined ? `known keys: ${SETTING_KEYS.join(", ")}` : `did you mean ${near}?`;
    return configError(at([...issue.path, key]), `${[...issue.path, key].join(".")}: unknown key; ${hint}`);
  }
  const found = show(valueAt(value, issue.path));
  return configError(at(issue.path), `${issue.path.map(String).join(".")}: ${issue.message}, found ${found}`);
}

const valueAt = (value: unknown, keys: readonly PropertyKey[]): unknown =>
  keys.reduce<unknown>((inner, key) => {
    if (typeof inner !== "object" || inner === null) return undefined;
    return Object.entries(inner).find(([name]) => name === String(key))?.[1] as unknown;
  }, value);

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** The known key within two edits of a misspelt one. */
export function nearestKey(key: string): string | undefined {
  const ranked = [...SETTING_KEYS, ...Object.keys(ALIASES)]
    .map((known) => ({ known, distance: editDistance(key.toLowerCase().replaceAll("-", "_"), known) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= 2 ? best.known : undefined;
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
