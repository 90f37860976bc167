/** Files of the programs that users add: a project's hooks and tools, and the values that both keep between calls. */
import { createHash } from "node:crypto";
import path from "node:path";
import { parse, type ParseError } from "jsonc-parser";
import type * as z from "zod";
import {
  type CustomToolDefinition,
  type HookDefinition,
  type HookOwner,
  hooksForm,
  projectToolsForm,
} from "../core/added-programs.ts";
import { reasonOf } from "../core/errors.ts";
import { fieldsOf, parsedJson } from "../core/raw-data.ts";
import { readRegularSync, replaceFileSync } from "../platform/safe-files.ts";
import { whileLocked } from "../platform/folders.ts";

/** Throws a one-line error if something is wrong with the file; so does the next one. */
export const projectHooks = (file: string, text: string): readonly HookDefinition[] =>
  readAs(hooksForm, file, text);

export const projectTools = (file: string, text: string): Readonly<Record<string, CustomToolDefinition>> =>
  readAs(projectToolsForm, file, text);

function readAs<T>(form: z.ZodType<T>, file: string, text: string): T {
  const errors: ParseError[] = [];
  if (isNestedTooDeep(text)) throw new Error(`${file}: it is nested too deep`);
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  if (errors.length > 0) throw new Error(`${file}: it is not JSON`);
  const read = form.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const at = (issue?.path ?? []).map(String).join(".");
  throw new Error(`${file}: ${at === "" ? "" : `${at}: `}${issue?.message ?? "unexpected value"}`);
}

const MAX_DEPTH = 32;

/**
 * Checked before parsing, because the parser recurses. Counts brackets in strings too: valid files never have that
 * many.
 */
function isNestedTooDeep(text: string): boolean {
  let depth = 0;
  for (const sign of text) {
    if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/**
 * A few small values that hooks and tools keep between calls, per workspace, the user's separate from the project's.
 * Each set is one file, replaced as a whole; an unreadable file counts as empty.
 */

export interface KeptValues {
  readonly read: () => Readonly<Record<string, unknown>>;
  /** Applies all changes or none; null removes a value. Returns why nothing was stored, or undefined. */
  readonly change: (changes: Readonly<Record<string, unknown>>) => Promise<string | undefined>;
}

export const MAX_VALUES = 64;
/** Bytes of one value; the next bounds all values together with their names. */
export const MAX_VALUE = 4 * 1024;
const MAX_VALUES_BYTES = 32 * 1024;
const NAME = /^[\w.:-]{1,64}$/;
const PATIENCE_MS = 5000;

interface KeptPlace {
  readonly stateDir: string;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly owner: HookOwner;
}

export function keptValues({ stateDir, workspace, owner }: KeptPlace): KeptValues {
  const folder = path.join(stateDir, "kept-values");
  const hash = createHash("sha256").update(workspace).digest("hex").slice(0, 40);
  const file = path.join(folder, `${hash}.${owner}.json`);
  return {
    read: () => valuesIn(file),
    change: async (changes) => {
      try {
        return await whileLocked(folder, PATIENCE_MS, () => {
          const next = afterChanges(valuesIn(file), changes);
          if (typeof next === "string") return next;
          replaceFileSync(file, `${JSON.stringify(next)}\n`, { aside: `${file}.new`, lasts: "name" });
          return undefined;
        });
      } catch (thrown) {
        return reasonOf(thrown);
      }
    },
  };
}

/** The values after the change, or why the change is not possible. Pure. */
export function afterChanges(
  before: Readonly<Record<string, unknown>>,
  changes: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | string {
  const next = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(changes)) {
    if (!NAME.test(name)) return `${JSON.stringify(name.slice(0, 80))} is not a valid name for a value`;
    if (value === null) next.delete(name);
    else if (Buffer.byteLength(JSON.stringify(value) ?? "") > MAX_VALUE)
      return `${name} has more than ${MAX_VALUE} bytes`;
    else next.set(name, value);
  }
  const all = Object.fromEntries(next);
  if (next.size > MAX_VALUES) return `there would be more than ${MAX_VALUES} values`;
  return Buffer.byteLength(JSON.stringify(all)) > MAX_VALUES_BYTES
    ? `the values would have more than ${MAX_VALUES_BYTES} bytes in total`
    : all;
}

function valuesIn(file: string): Readonly<Record<string, unknown>> {
  try {
    const text = readRegularSync(file, { links: "refuse", max: 2 * MAX_VALUES_BYTES }).toString();
    return fieldsOf(parsedJson(text));
  } catch {
    return {};
  }
}
