import { closeSync, openSync } from "node:fs";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { Connection } from "../platform/sqlite-connection.ts";
import { storeFailure } from "./db-lock.ts";

/** An open database with its statements. Every failure becomes a HarnessError. */
export class Database implements Disposable {
  readonly file: string;
  readonly #connection: Connection;
  /** Held while the database is open. */
  readonly #lock: Disposable;

  constructor(sqlite: DatabaseSync, file: string, lock: Disposable) {
    this.#connection = new Connection(sqlite);
    this.file = file;
    this.#lock = lock;
  }

  /** The statement determines what a row contains; the caller names its type. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly unknown[] {
    return this.#reportingFailure(() => this.#connection.all(sql, ...values));
  }

  get(sql: string, ...values: readonly SQLInputValue[]): unknown {
    return this.#reportingFailure(() => this.#connection.get(sql, ...values));
  }

  /** Returns the number of changed rows. */
  run(sql: string, ...values: readonly SQLInputValue[]): number {
    return this.#reportingFailure(() => this.#connection.run(sql, ...values).changes);
  }

  /** Returns the number of inserted rows: 0 if "OR IGNORE" applies to a row that violates uniqueness. */
  insert(table: string, row: Readonly<Record<string, SQLInputValue>>, or: "" | "OR IGNORE" = ""): number {
    const columns = Object.keys(row);
    const marks = columns.map(() => "?").join(", ");
    return this.run(
      `INSERT ${or} INTO ${table} (${columns.join(", ")}) VALUES (${marks})`,
      ...Object.values(row),
    );
  }

  /** Runs all of `work` or nothing; no other process writes meanwhile. */
  atomically<T>(work: () => T): T {
    return this.#reportingFailure(() => this.#connection.atomically(work));
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
    this.#lock[Symbol.dispose]();
  }

  #reportingFailure<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      if (diskTroubleOf(thrown) === "damaged") suspect(this.file);
      throw storeFailure(thrown, this.file);
    }
  }
}

/** If this file exists, the next process that opens the database checks all of it. */
export const suspicionOf = (file: string): string => `${file}.suspect`;

function suspect(file: string): void {
  try {
    closeSync(openSync(suspicionOf(file), "a", 0o600));
  } catch {
    // The original failure is reported anyway.
  }
}
