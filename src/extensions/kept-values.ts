import { createHash } from "node:crypto";
import { closeSync, readFileSync } from "node:fs";
import path from "node:path";
import { reasonOf } from "../core/errors.ts";
import type { HookOwner } from "../core/hook-form.ts";
import { fieldsOf, parsedJson } from "../core/text/json-values.ts";
import { openRegularSync, replaceFileSync } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";

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
        makeFolder(folder);
        const [{ FileLock }, { privateFile }] = await Promise.all([
          import("../platform/lock.ts"),
          import("../platform/sqlite-connection.ts"),
        ]);
        using lock = new FileLock(privateFile(path.join(folder, "lock")), PATIENCE_MS);
        lock.take("reserved");
        const next = afterChanges(valuesIn(file), changes);
        if (typeof next === "string") return next;
        replaceFileSync(file, `${JSON.stringify(next)}\n`, { aside: `${file}.new`, lasts: "name" });
        return undefined;
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
    const { descriptor, stats } = openRegularSync(file, "refuse");
    try {
      if (stats.size > 2 * MAX_VALUES_BYTES) return {};
      return fieldsOf(parsedJson(readFileSync(descriptor, "utf8")));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return {};
  }
}
