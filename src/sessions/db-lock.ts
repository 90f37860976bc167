import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/**
 * shared: the database is in use, and stays where it is. reserved: one process changes its tables, others may use it.
 * exclusive: nobody else has it open, so that it may be moved: SQLite finds the files beside a database by their names.
 */
const LEVELS = ["shared", "reserved", "exclusive"] as const;
export type Level = (typeof LEVELS)[number];

const BEGIN: Readonly<Record<Level, string>> = {
  shared: "BEGIN; SELECT 1 FROM sqlite_schema",
  reserved: "BEGIN IMMEDIATE",
  exclusive: "BEGIN EXCLUSIVE",
};

export const suffices = (held: Level, wanted: Level): boolean =>
  LEVELS.indexOf(held) >= LEVELS.indexOf(wanted);

/** A lock among processes that a kill frees: SQLite's own, on a file that stays empty. */
export class FileLock implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #file: string;

  constructor(file: string, patienceMs: number) {
    this.#file = file;
    this.#sqlite = new DatabaseSync(file, { timeout: patienceMs });
  }

  /** Instead of the level held before. */
  take(level: Level): void {
    try {
      if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
      this.#sqlite.exec(BEGIN[level]);
    } catch (thrown) {
      throw this.#refusal(thrown, level);
    }
  }

  [Symbol.dispose](): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }

  #refusal(thrown: unknown, level: Level): unknown {
    const trouble = diskTroubleOf(thrown);
    if (trouble === "damaged")
      return new HarnessError(
        EXIT.failed,
        `${this.#file} is not empty as it should be`,
        `mv ${this.#file} ${this.#file}.old`,
      );
    if (trouble !== "busy" || level !== "exclusive") return thrown;
    const why = "the session database is damaged, and cannot be set aside while another harness has it open";
    return new HarnessError(EXIT.failed, why, "end the other runs, then type the same again", thrown);
  }
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
    taken: ["something that is no file has its name", `ls -ld ${file}; move it away`],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[diskTroubleOf(thrown)] as [string, string];
  return new HarnessError(EXIT.failed, `sessions in ${file}: ${why} (${reasonOf(thrown)})`, remedy, thrown);
}

/** The folder, or the next one above it that is there. */
function nearest(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(folder) || above === folder ? folder : nearest(above);
}

/** How long one process waits for the others. A transaction takes well under a millisecond, a kept output some more. */
export const PATIENCE_MS = 10_000;
