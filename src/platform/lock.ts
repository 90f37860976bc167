import { DatabaseSync } from "node:sqlite";

/**
 * shared: the locked thing is in use, and stays in place. reserved: one process changes it, others may use it.
 * exclusive: nobody else has it.
 */
const LEVELS = ["shared", "reserved", "exclusive"] as const;
export type LockLevel = (typeof LEVELS)[number];

const BEGIN: Readonly<Record<LockLevel, string>> = {
  shared: "BEGIN; SELECT 1 FROM sqlite_schema",
  reserved: "BEGIN IMMEDIATE",
  exclusive: "BEGIN EXCLUSIVE",
};

export const suffices = (held: LockLevel, wanted: LockLevel): boolean =>
  LEVELS.indexOf(held) >= LEVELS.indexOf(wanted);

/**
 * A lock among processes that is freed when its process is killed: SQLite's own lock, on a file that stays empty.
 * Errors are SQLite's own; the file's owner translates them for people.
 */
export class FileLock implements Disposable {
  readonly #sqlite: DatabaseSync;

  /** Waits for another process at most this long. */
  constructor(file: string, patienceMs: number) {
    this.#sqlite = new DatabaseSync(file, { timeout: patienceMs });
  }

  /** Replaces the level held before. */
  take(level: LockLevel): void {
    if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
    this.#sqlite.exec(BEGIN[level]);
  }

  [Symbol.dispose](): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }
}
