import type { Changes, FileResult } from "../../core/ports.ts";
import { type Change, FileRefused } from "../runner/files.ts";

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

export function changesOf(list: readonly Change[], incomplete: boolean): Changes {
  // Only what is in them: a folder is no change of its own.
  const files = list.filter(({ kind }) => kind !== "folder");
  const of = (what: Change["what"]): readonly string[] =>
    files.filter((change) => change.what === what).map(({ path }) => path);
  const odd = files.filter(({ kind, what }) => kind === "odd" && what !== "deleted").map(({ path }) => path);
  return { added: of("added"), modified: of("modified"), deleted: of("deleted"), odd, incomplete };
}
