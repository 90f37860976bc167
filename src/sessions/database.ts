import { closeSync, openSync } from "node:fs";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { Connection } from "../platform/sqlite-connection.ts";
import { storeFailure } from "./db-lock.ts";

/** An open database with its statements. Every failure of it is a HarnessError. */
export class Database implements Disposable {
  readonly file: string;
  readonly #connection: Connection;
  /** Held for as long as the database is open. */
  readonly #lock: Disposable;

  constructor(sqlite: DatabaseSync, file: string, lock: Disposable) {
    this.#connection = new Connection(sqlite);
    this.file = file;
    this.#lock = lock;
  }

  /** What is in a row the statement says; whoever wrote it names the type. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly unknown[] {
    return this.#told(() => this.#connection.all(sql, ...values));
  }

  get(sql: string, ...values: readonly SQLInputValue[]): unknown {
    return this.#told(() => this.#connection.get(sql, ...values));
  }

  /** How many rows it changed. */
  run(sql: string, ...values: readonly SQLInputValue[]): number {
    return this.#told(() => this.#connection.run(sql, ...values).changes);
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
    return this.#told(() => this.#connection.atomically(work));
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
    this.#lock[Symbol.dispose]();
  }

  #told<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      if (diskTroubleOf(thrown) === "damaged") suspect(this.file);
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
