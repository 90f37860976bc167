import { closeSync, openSync } from "node:fs";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { storeFailure, troubleOf } from "./failure.ts";

/** An open database with its statements. Every failure of it is a HarnessError. */
export class Database implements Disposable {
  readonly file: string;
  readonly #sqlite: DatabaseSync;
  /** Held for as long as the database is open. */
  readonly #lock: Disposable;
  readonly #statements = new Map<string, StatementSync>();

  constructor(sqlite: DatabaseSync, file: string, lock: Disposable) {
    this.#sqlite = sqlite;
    this.file = file;
    this.#lock = lock;
  }

  /** What is in a row the statement says; whoever wrote it names the type. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly unknown[] {
    return this.#told(() => this.#prepared(sql).all(...values));
  }

  get(sql: string, ...values: readonly SQLInputValue[]): unknown {
    return this.#told(() => this.#prepared(sql).get(...values));
  }

  /** How many rows it changed. */
  run(sql: string, ...values: readonly SQLInputValue[]): number {
    return this.#told(() => Number(this.#prepared(sql).run(...values).changes));
  }

  /** How many rows it made: none when there is one already that may be there only once, and that is not to fail. */
  insert(table: string, row: Readonly<Record<string, SQLInputValue>>, or: "" | "OR IGNORE" = ""): number {
    const columns = Object.keys(row);
    const marks = columns.map(() => "?").join(", ");
    return this.run(
      `INSERT ${or} INTO ${table} (${columns.join(", ")}) VALUES (${marks})`,
      ...Object.values(row),
    );
  }

  /** All of it or nothing; no other process writes meanwhile. */
  atomically<T>(work: () => T): T {
    // As part of the one that is under way.
    if (this.#sqlite.isTransaction) return work();
    this.run("BEGIN IMMEDIATE");
    try {
      const made = work();
      this.run("COMMIT");
      return made;
    } catch (thrown) {
      // SQLite has rolled back by itself after some failures, a full disk among them.
      if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
      throw storeFailure(thrown, this.file);
    }
  }

  [Symbol.dispose](): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
    this.#lock[Symbol.dispose]();
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const made = this.#sqlite.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }

  #told<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      if (troubleOf(thrown) === "damaged") suspect(this.file);
      throw storeFailure(thrown, this.file);
    }
  }
}

/** Its presence has the next one to open the database look at all of it. */
export const suspicionOf = (file: string): string => `${file}.suspect`;

function suspect(file: string): void {
  try {
    closeSync(openSync(suspicionOf(file), "a", 0o600));
  } catch {
    // The failure that led here is told all the same.
  }
}
