import { DatabaseSync } from "node:sqlite";

/**
 * shared: what is locked is in use, and stays where it is. reserved: one process changes it, others may use it.
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
 * A lock among processes that a kill frees: SQLite's own, on a file that stays empty. What it throws is SQLite's own;
 * whoever owns the file says it in a person's words.
 */
export class FileLock implements Disposable {
  readonly #sqlite: DatabaseSync;

  /** Another process is waited for so long, and no longer. */
  constructor(file: string, patienceMs: number) {
    this.#sqlite = new DatabaseSync(file, { timeout: patienceMs });
  }

  /** Instead of the level held before. */
  take(level: LockLevel): void {
    if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
    this.#sqlite.exec(BEGIN[level]);
  }

  [Symbol.dispose](): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }
}
