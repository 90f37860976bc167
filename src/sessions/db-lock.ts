import { accessSync, constants, existsSync } from "node:fs";
import path from "node:path";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { FileLock, type LockLevel } from "../platform/lock.ts";

/**
 * The lock of a database. Only its exclusive holder may move the file, because SQLite finds the companion files by
 * name.
 */
export class DatabaseLock extends FileLock {
  readonly #file: string;

  constructor(file: string, patienceMs: number) {
    super(file, patienceMs);
    this.#file = file;
  }

  override take(level: LockLevel): void {
    try {
      super.take(level);
    } catch (thrown) {
      throw this.#refusal(thrown, level);
    }
  }

  #refusal(thrown: unknown, level: LockLevel): unknown {
    const trouble = diskTroubleOf(thrown);
    if (trouble === "damaged")
      return new HarnessError(
        EXIT.failed,
        `${this.#file} should be empty, but is not`,
        `mv ${this.#file} ${this.#file}.old`,
      );
    if (trouble !== "busy" || level !== "exclusive") return thrown;
    const why = "the session database is damaged, and cannot be set aside while another harness has it open";
    return new HarnessError(EXIT.failed, why, "end the other runs, then run the same command again", thrown);
  }
}

/** The failure in words for a person; a HarnessError stays unchanged. */
export function storeFailure(thrown: unknown, file: string): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const folder = nearest(path.dirname(file));
  const trouble = diskTroubleOf(thrown);
  const [why, remedy] = {
    full: ["no space is left on the disk", `df -h ${folder}`],
    "read-only": ["it is not writable", `ls -ld ${folder}`],
    damaged: [
      "it is damaged",
      "run the same command again: the file is set aside, not deleted, and a new one is created",
    ],
    busy: [`another harness has kept it locked for ${PATIENCE_MS / 1000} s`, "try again when it is done"],
    taken: ["something that is not a file has its name", `ls -ld ${file}; move it away`],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[trouble === "unreachable" && !mayWrite(folder) ? "read-only" : trouble] as [string, string];
  return new HarnessError(EXIT.failed, `sessions in ${file}: ${why} (${reasonOf(thrown)})`, remedy, thrown);
}

/** SQLite opens nothing in a folder where it cannot create files, and does not give that as the reason. */
function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The folder, or its nearest existing parent. */
function nearest(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(folder) || above === folder ? folder : nearest(above);
}

/**
 * How long one process waits for others. A transaction takes well under a millisecond, storing an output somewhat
 * longer.
 */
export const PATIENCE_MS = 10_000;
