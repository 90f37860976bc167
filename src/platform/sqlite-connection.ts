import { chmodSync, closeSync, existsSync, fsyncSync, openSync, statSync } from "node:fs";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

export type Row = Readonly<Record<string, unknown>>;

/** An open database with its statements. What it throws is SQLite's own; whoever owns the file says it in a person's words. */
export class Connection implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    return this.#prepared(sql).all(...values);
  }

  /** Rows as lists of their columns, read in half the time of rows with names. The statement gives no others afterwards. */
  lists(sql: string, ...values: readonly SQLInputValue[]): readonly (readonly unknown[])[] {
    const statement = this.#prepared(sql);
    statement.setReturnArrays(true);
    return statement.all(...values) as unknown as readonly (readonly unknown[])[];
  }

  get(sql: string, ...values: readonly SQLInputValue[]): Row | undefined {
    return this.#prepared(sql).get(...values);
  }

  /** With a statement of its own: two of them may go on side by side. */
  each(sql: string, ...values: readonly SQLInputValue[]): Iterator<Row> {
    return this.#sqlite.prepare(sql).iterate(...values);
  }

  /** The same as lists of columns, as above. */
  eachList(sql: string, ...values: readonly SQLInputValue[]): Iterator<readonly unknown[]> {
    const statement = this.#sqlite.prepare(sql);
    statement.setReturnArrays(true);
    return statement.iterate(...values) as unknown as Iterator<readonly unknown[]>;
  }

  /** The row that was made, or how many were changed. */
  run(
    sql: string,
    ...values: readonly SQLInputValue[]
  ): { readonly rowid: number; readonly changes: number } {
    const { lastInsertRowid, changes } = this.#prepared(sql).run(...values);
    return { rowid: Number(lastInsertRowid), changes: Number(changes) };
  }

  /** All of it or nothing; no other process writes meanwhile. */
  atomically<T>(work: () => T): T {
    return this.#within("BEGIN IMMEDIATE", work);
  }

  /** What is read is of one moment. */
  consistently<T>(work: () => T): T {
    return this.#within("BEGIN", work);
  }

  /**
   * What was committed outlasts a power cut, too. All of it is in the journal or, where SQLite has moved it from there,
   * on the disk already. Only the database itself is locked, so that the journal may be opened and closed beside SQLite.
   */
  flush(): void {
    const journal = `${this.#sqlite.location() ?? ""}-wal`;
    if (!existsSync(journal)) return;
    const descriptor = openSync(journal, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }

  /** Gives back the room of what was removed. Nobody else may have it open for writing. */
  compact(): void {
    this.#sqlite.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }

  /** Inside of another it is a part of that one. */
  #within<T>(begin: string, work: () => T): T {
    if (this.#sqlite.isTransaction) return work();
    this.#sqlite.exec(begin);
    try {
      const made = work();
      this.#sqlite.exec("COMMIT");
      return made;
    } catch (thrown) {
      // SQLite has rolled back by itself after some failures, a full disk among them.
      if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
      throw thrown;
    }
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const made = this.#sqlite.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }
}

/**
 * A file that nobody else reads, made where there is none; its path. SQLite gives its other files the mode of this one.
 * Where something else has that name, nothing is changed of it, and what is thrown says so as the system does: EISDIR.
 */
export function privateFile(file: string): string {
  const there = statSync(file, { throwIfNoEntry: false });
  // One that is there is never opened here: closing it again would free the locks that SQLite has on it.
  if (there === undefined) return made(file);
  if (!there.isFile()) throw Object.assign(new Error(`${file} is no file`), { code: "EISDIR" });
  if ((there.mode & 0o077) !== 0) chmodSync(file, 0o600);
  return file;
}

/** Two may come here at once; the second finds what it wanted. */
function made(file: string): string {
  try {
    closeSync(openSync(file, "wx", 0o600));
    return file;
  } catch (thrown) {
    if ((thrown as { readonly code?: unknown } | null)?.code === "EEXIST") return file;
    throw thrown;
  }
}
