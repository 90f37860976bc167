import type { Change } from "../../core/changes.ts";
import type { FileResult } from "../../core/ports.ts";
import { FileRefused } from "../runner/files.ts";

/** Codes by which a wall answers, as against the file itself. */
const WALLS: ReadonlySet<string> = new Set(["EROFS", "EBUSY", "EPERM"]);

/** A file operation as a value; only the loss of the box is thrown on. */
export async function asResult<T>(work: Promise<T>): Promise<FileResult<T>> {
  try {
    return { kind: "ok", value: await work };
  } catch (thrown) {
    if (!(thrown instanceof FileRefused)) throw thrown;
    const { code, path, message } = thrown;
    const kind = WALLS.has(code) ? "blocked" : "failed";
    return { kind, cause: "filesystem", code, path, reason: message };
  }
}

/** Only what is in them: a folder is no change of its own. */
export const withoutFolders = (all: Iterable<Change>): Iterable<Change> => ({
  *[Symbol.iterator]() {
    for (const change of all) if (change.kind !== "folder") yield change;
  },
});
