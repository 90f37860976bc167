import { createHash } from "node:crypto";
import path from "node:path";
import { reasonOf } from "../../core/errors.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { readRegularSync, replaceFileSync } from "../../platform/safe-files.ts";
import { whileLocked } from "../../platform/folders.ts";

/**
 * What a person typed in chats, for the keys that bring it back; kept per workspace, and only on this machine. One file
 * per workspace, replaced as a whole; an unreadable file counts as empty.
 */

export interface TypedHistory {
  /** Oldest first. */
  readonly read: () => readonly string[];
  /** Why the text could not be kept; undefined if it was kept, or should not be. */
  readonly keep: (text: string) => Promise<string | undefined>;
}

export const MAX_KEPT = 200;
/** Bytes of one text, and of the whole file. */
export const MAX_TEXT = 8 * 1024;
const MAX_BYTES = 256 * 1024;
const PATIENCE_MS = 1000;

interface TypedPlace {
  readonly stateDir: string;
  /** Absolute and resolved. */
  readonly workspace: string;
}

export function typedHistory({ stateDir, workspace }: TypedPlace): TypedHistory {
  const folder = path.join(stateDir, "typed");
  const file = path.join(folder, `${createHash("sha256").update(workspace).digest("hex").slice(0, 40)}.json`);
  return {
    read: () => textsIn(file),
    keep: async (text) => {
      if (!isKept(text)) return undefined;
      try {
        await whileLocked(folder, PATIENCE_MS, () => {
          const next = withTyped(textsIn(file), text);
          replaceFileSync(file, `${JSON.stringify(next)}\n`, { aside: `${file}.new`, lasts: "name" });
        });
        return undefined;
      } catch (thrown) {
        return reasonOf(thrown);
      }
    },
  };
}

/** A leading blank keeps a line out, as in a shell; so does anything that looks like a secret. */
export const isKept = (text: string): boolean =>
  text !== "" && !/^\s/.test(text) && Buffer.byteLength(text) <= MAX_TEXT && maskSecrets(text) === text;

/** A repeated text moves to its latest position. The oldest texts are dropped first. */
export function withTyped(before: readonly string[], text: string): readonly string[] {
  const all = [...before.filter((each) => each !== text), text].slice(-MAX_KEPT);
  let [first, bytes] = [all.length, 0];
  for (const each of all.toReversed()) {
    bytes += Buffer.byteLength(JSON.stringify(each)) + 1;
    if (bytes > MAX_BYTES) break;
    first -= 1;
  }
  return all.slice(first);
}

function textsIn(file: string): readonly string[] {
  try {
    const text = readRegularSync(file, { links: "refuse", max: 2 * MAX_BYTES }).toString();
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((each) => typeof each === "string").slice(-MAX_KEPT) : [];
  } catch {
    return [];
  }
}
