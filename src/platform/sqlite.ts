import { chmodSync, closeSync, existsSync, fsyncSync, openSync, statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

export type Row = Readonly<Record<string, unknown>>;

/** An open database with its statements. Errors are SQLite's own; the file's owner translates them for people. */
export class SqliteConnection implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    return this.#prepared(sql).all(...values);
  }

  /**
   * Rows as lists of columns, read in half the time of rows with names. The statement gives only lists from then on.
   */
  lists(sql: string, ...values: readonly SQLInputValue[]): readonly (readonly unknown[])[] {
    const statement = this.#prepared(sql);
    statement.setReturnArrays(true);
    return statement.all(...values) as unknown as readonly (readonly unknown[])[];
  }

  get(sql: string, ...values: readonly SQLInputValue[]): Row | undefined {
    return this.#prepared(sql).get(...values);
  }

  /** Uses a new statement each time, so that two iterations may run side by side. */
  each(sql: string, ...values: readonly SQLInputValue[]): Iterator<Row> {
    return this.#sqlite.prepare(sql).iterate(...values);
  }

  /** The same with rows as lists of columns. */
  eachList(sql: string, ...values: readonly SQLInputValue[]): Iterator<readonly unknown[]> {
    const statement = this.#sqlite.prepare(sql);
    statement.setReturnArrays(true);
    return statement.iterate(...values) as unknown as Iterator<readonly unknown[]>;
  }

  /** The id of the inserted row, and the number of changed rows. */
  run(
    sql: string,
    ...values: readonly SQLInputValue[]
  ): { readonly rowid: number; readonly changes: number } {
    const { lastInsertRowid, changes } = this.#prepared(sql).run(...values);
    return { rowid: Number(lastInsertRowid), changes: Number(changes) };
  }

  /** All or nothing; no other process writes in the meantime. */
  atomically<T>(work: () => T): T {
    return this.#within("BEGIN IMMEDIATE", work);
  }

  /** All reads see the same state. */
  consistently<T>(work: () => T): T {
    return this.#within("BEGIN", work);
  }

  /**
   * Makes everything committed survive a power cut. It is in the journal, or SQLite has moved it from there to the disk
   * already. Only the database file is locked, so the journal may be opened and closed beside SQLite.
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

  /** Frees the space of removed data. Nobody else may have the database open for writing. */
  compact(): void {
    this.#sqlite.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }

  /** Inside another transaction, the work becomes part of that one. */
  #within<T>(begin: string, work: () => T): T {
    if (this.#sqlite.isTransaction) return work();
    this.#sqlite.exec(begin);
    try {
      const made = work();
      this.#sqlite.exec("COMMIT");
      return made;
    } catch (thrown) {
      // SQLite rolls back by itself after some failures, such as a full disk.
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
 * Makes sure that the file exists and only its owner can read it; returns its path. SQLite gives its other files the
 * same mode. If the name is taken by something else, nothing is changed, and the error has the system's code EISDIR.
 */
export function privateFile(file: string): string {
  const there = statSync(file, { throwIfNoEntry: false });
  // An existing file is never opened here: closing it again would free SQLite's locks on it.
  if (there === undefined) return makePrivate(file);
  if (!there.isFile()) throw Object.assign(new Error(`${file} is not a file`), { code: "EISDIR" });
  if ((there.mode & 0o077) !== 0) chmodSync(file, 0o600);
  return file;
}

/** Two processes may get here at once; the second finds the file made. */
function makePrivate(file: string): string {
  try {
    closeSync(openSync(file, "wx", 0o600));
    return file;
  } catch (thrown) {
    if ((thrown as { readonly code?: unknown } | null)?.code === "EEXIST") return file;
    throw thrown;
  }
}

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
