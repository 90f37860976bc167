import type { ZodError } from "zod";
import { clipped, nearest } from "../core/wording.ts";
import { configError } from "./load-config.ts";
import { type Layer, layerSchema, ROW_KEYS } from "./setting-rules.ts";
import { ALIASES, SETTING_KEYS } from "./settings-schema.ts";

/** Checks one source of settings as a whole; `at` returns the position of a key in it. */
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
      throw configError(at([key]), `${key}: is an alias of ${real}, which is also set`);
    Object.defineProperty(plain, real ?? key, { value: entry, enumerable: true });
  }
  return plain;
}

/** A position that is a flag or variable already contains the name that was typed. */
const SAYS_ITS_NAME = /^(?:--|HARNESS_)/;

function firstIssue(error: ZodError, value: unknown, at: (keys: readonly PropertyKey[]) => string): Error {
  const [issue] = error.issues;
  if (issue === undefined) return configError(at([]), "is not valid");
  const path = asWritten(issue.path, value);
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const dotted = [...path, key].map(String).join(".");
    return configError(at([...path, key]), `${dotted}: unknown key; ${hintFor(key, path[0])}`);
  }
  const found = show(valueAt(value, path));
  const where = at(path);
  const name = SAYS_ITS_NAME.test(where) ? "" : `${path.map(String).join(".")}: `;
  const expected = issue.message.startsWith(ZOD_OBJECT) ? "expected an object" : issue.message;
  return configError(where, `${name}${expected}, found ${found}`);
}

/** The start of zod's own message, which goes on with what it found; we show that as it was written. */
const ZOD_OBJECT = "Invalid input: expected object";

/** The path with the name that this source uses for its first key. */
function asWritten(path: readonly PropertyKey[], value: unknown): readonly PropertyKey[] {
  const [head, ...rest] = path;
  const alias = Object.keys(ALIASES).find((other) => ALIASES[other] === head);
  return alias !== undefined && valueAt(value, [alias]) !== undefined ? [alias, ...rest] : path;
}

const valueAt = (value: unknown, keys: readonly PropertyKey[]): unknown =>
  keys.reduce<unknown>((inner, key) => {
    if (typeof inner !== "object" || inner === null) return undefined;
    return Object.entries(inner).find(([name]) => name === String(key))?.[1] as unknown;
  }, value);

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return clipped(text, 80);
}

/** What to write in place of an unknown key, either of the file or inside a setting. */
export function hintFor(key: string, setting?: PropertyKey): string {
  const inner =
    typeof setting === "string" && Object.hasOwn(ROW_KEYS, setting) ? ROW_KEYS[setting] : undefined;
  const known = inner ?? SETTING_KEYS;
  const spelt = key.toLowerCase().replaceAll("-", "_");
  const near = nearest(spelt, inner ?? [...SETTING_KEYS, ...Object.keys(ALIASES)]);
  return near === undefined ? `known keys: ${known.join(", ")}` : `did you mean ${near}?`;
}
