import { existsSync } from "node:fs";
import path from "node:path";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";

/** What SQLite and the file system have to say that a person can do something about. */
export type Trouble = "full" | "read-only" | "damaged" | "busy" | "unreachable" | "other";

/** Primary result codes of SQLite; extended ones hold them in their lowest byte. */
const OF_SQLITE: Readonly<Record<number, Trouble>> = {
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "unreachable",
  11: "damaged",
  13: "full",
  14: "unreachable",
  26: "damaged",
};

const OF_SYSTEM: Readonly<Record<string, Trouble>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  ENOTDIR: "unreachable",
  EEXIST: "unreachable",
  ENOENT: "unreachable",
  ELOOP: "unreachable",
  EIO: "unreachable",
};

export function troubleOf(thrown: unknown): Trouble {
  const code = errorCode(thrown) ?? "";
  if (code !== "ERR_SQLITE_ERROR") return OF_SYSTEM[code] ?? "other";
  return OF_SQLITE[sqliteCode(thrown) & 0xff] ?? "other";
}

function sqliteCode(thrown: unknown): number {
  if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return 0;
  return typeof thrown.errcode === "number" ? thrown.errcode : 0;
}

/** The failure in a person's words; what is a HarnessError already stays one. */
export function storeFailure(thrown: unknown, file: string): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const folder = nearest(path.dirname(file));
  const [why, remedy] = {
    full: ["no space is left on the disk", `df -h ${folder}`],
    "read-only": ["it may not be written", `ls -ld ${folder}`],
    damaged: [
      "it is damaged",
      "type the same again: the file is set aside, never deleted, and a new one begun",
    ],
    busy: [`another harness has kept it locked for ${PATIENCE_MS / 1000} s`, "try again when it is done"],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[troubleOf(thrown)] as [string, string];
  return new HarnessError(EXIT.failed, `sessions in ${file}: ${why} (${reasonOf(thrown)})`, remedy, thrown);
}

/** The folder, or the next one above it that is there. */
function nearest(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(folder) || above === folder ? folder : nearest(above);
}

/** How long one process waits for the others. A transaction takes well under a millisecond, a kept output some more. */
export const PATIENCE_MS = 10_000;
