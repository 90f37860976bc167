import { DatabaseSync } from "node:sqlite";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { diskTroubleOf } from "../../core/disk-trouble.ts";

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
