import { createHash } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { diskTroubleOf, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { plural } from "../core/wording.ts";
import { SqliteConnection, FileLock, type LockLevel, privateFile, suffices } from "../platform/sqlite.ts";
import { makeFolder } from "../platform/folders.ts";
import { STEPS } from "./schema.ts";

/** The database of all sessions: how it is opened, locked, migrated and, if it is damaged, set aside. */

interface Opening {
  readonly file: string;
  /** Called about a database that was set aside. */
  readonly warn: (text: string) => void;
  readonly now: () => number;
  readonly steps?: readonly string[];
  readonly patienceMs?: number;
}

interface Inspection {
  readonly sqlite: DatabaseSync;
  readonly standing: Standing | "damaged";
  readonly reason: string;
}

/** The lock that each state of the database requires. */
const NEEDS: Readonly<Record<Inspection["standing"], LockLevel>> = {
  current: "shared",
  behind: "reserved",
  empty: "reserved",
  foreign: "exclusive",
  damaged: "exclusive",
};

/** Opens the database; creates it if missing and migrates it if old. */
export function openDatabase(opening: Opening): Database {
  const { file, patienceMs = PATIENCE_MS } = opening;
  try {
    makeFolder(path.dirname(file));
    const lock = new DatabaseLock(privateFile(`${file}.lock`), patienceMs);
    try {
      return new Database(openUnderLock(opening, lock), file, lock);
    } catch (thrown) {
      lock[Symbol.dispose]();
      throw thrown;
    }
  } catch (thrown) {
    const failure = storeFailure(thrown, file);
    const opened = openedToRead(opening);
    if (opened === undefined) throw failure;
    return opened;
  }
}

/**
 * In a folder that nobody may write to, such as a mounted backup, the sessions can still be read. Undefined if that is
 * not the reason, or if the database would have to be changed first. Whatever writes fails later.
 */
function openedToRead({ file, steps = STEPS, patienceMs = PATIENCE_MS }: Opening): Database | undefined {
  if (mayWrite(path.dirname(file)) || !exists(file)) return undefined;
  const url = pathToFileURL(file);
  // SQLite needs no files beside a database that never changes. With a log beside it, those files are there.
  if (sizeOf(`${file}-wal`) === 0) url.searchParams.set("immutable", "1");
  let sqlite: DatabaseSync | undefined;
  try {
    sqlite = new DatabaseSync(url, { readOnly: true, timeout: patienceMs });
    if (standingOf(sqlite, steps, file) === "current") return new Database(sqlite, file, NO_LOCK);
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
  }
  sqlite?.close();
  return undefined;
}

const NO_LOCK: Disposable = { [Symbol.dispose]: () => undefined };

/**
 * Looks again under each stricter lock, because another process may have done the work meanwhile. Ends with the mildest
 * lock.
 */
function openUnderLock(opening: Opening, lock: DatabaseLock): DatabaseSync {
  for (let level: LockLevel = "shared"; ;) {
    lock.take(level);
    const look = inspect(opening);
    if (suffices(level, NEEDS[look.standing])) {
      const sqlite = madeReady(look, opening);
      if (level !== "shared") lock.take("shared");
      return sqlite;
    }
    look.sqlite.close();
    level = NEEDS[look.standing];
  }
}

function madeReady({ sqlite, standing, reason }: Inspection, opening: Opening): DatabaseSync {
  if (standing === "current") return sqlite;
  if (standing === "empty") warnOfLoss(opening);
  if (standing === "empty" || standing === "behind") return migrated(sqlite, opening);
  const { file, warn, now } = opening;
  const aside = setAside(file, now());
  // Closed only after the move: the last one to close a database removes the files beside it.
  sqlite.close();
  rmSync(suspicionOf(file), { force: true });
  warn(
    `the session database was damaged (${reason}); it was set aside as ${aside}, and a new one was created. To recover what is readable: sqlite3 ${aside} .recover. ${FILES_ARE_LEFT}`,
  );
  return migrated(inspect(opening).sqlite, opening);
}

const FILES_ARE_LEFT =
  "The states of folders that runs saved can still be read: harness sessions checkpoints --all";

/** A database without tables is usually that of a first start. But where sessions left audits, there was another. */
function warnOfLoss({ file, warn }: Opening): void {
  const audits = namesIn(path.join(path.dirname(file), "audit")).length;
  if (audits === 0) return;
  warn(
    `the session database ${file} was empty or missing, although there are audits of ${plural(audits, "session")}; a new one was created. ${FILES_ARE_LEFT}`,
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function migrated(sqlite: DatabaseSync, { steps = STEPS, now }: Opening): DatabaseSync {
  try {
    // Has an effect only before the first table is created: lets freed space return to the disk.
    sqlite.exec("PRAGMA auto_vacuum = INCREMENTAL");
    sqlite.exec("PRAGMA journal_mode = WAL");
    migrate(sqlite, steps, now());
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

function inspect({ file, steps = STEPS, patienceMs = PATIENCE_MS }: Opening): Inspection {
  const sqlite = new DatabaseSync(privateFile(file), {
    enableForeignKeyConstraints: true,
    timeout: patienceMs,
  });
  try {
    // A kill of this process loses nothing that was committed; a power cut may lose only the last moments.
    sqlite.exec("PRAGMA synchronous = NORMAL");
    // Removed data is also overwritten.
    sqlite.exec("PRAGMA secure_delete = ON");
    const standing = standingOf(sqlite, steps, file);
    if (standing === "foreign") return { sqlite, standing, reason: "it contains tables of another program" };
    const fault = faultOf(sqlite, file);
    return fault === undefined
      ? { sqlite, standing, reason: "" }
      : { sqlite, standing: "damaged", reason: fault };
  } catch (thrown) {
    if (diskTroubleOf(thrown) === "damaged") return { sqlite, standing: "damaged", reason: reasonOf(thrown) };
    sqlite.close();
    throw thrown;
  }
}

/** SQLite's files beside a database hold data that is not in it yet, so they move along with it. */
const FILE_SUFFIXES = ["-wal", "-shm", "-journal", ""];

/** Moves a database to an unused name. The main file goes last: until then nobody creates a new one. */
function setAside(file: string, now: number): string {
  const free = freeName(`${file}.damaged-${stampOf(now)}`);
  for (const suffix of FILE_SUFFIXES) if (exists(file + suffix)) renameSync(file + suffix, free + suffix);
  return free;
}

function freeName(wanted: string): string {
  for (let turn = 1; ; turn += 1) {
    const name = turn === 1 ? wanted : `${wanted}-${turn}`;
    if (FILE_SUFFIXES.every((suffix) => !exists(name + suffix))) return name;
  }
}

const stampOf = (now: number): string => new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, "");

const exists = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined;

/** Up to this size the whole database is checked, which takes a few milliseconds; a larger one only after a failure. */
const CHECKED_BYTES = 2 * 1024 * 1024;

/** Damage in an openable database that SQLite would notice only on reaching it. */
function faultOf(sqlite: DatabaseSync, file: string): string | undefined {
  return missingPart(sqlite, file) ?? brokenStructure(sqlite, file);
}

/** Reads the page count first: other writers can only make the file larger than that. */
function missingPart(sqlite: DatabaseSync, file: string): string | undefined {
  const wanted = numberFrom(sqlite, "page_count") * numberFrom(sqlite, "page_size");
  // Pages still in the log are not in the file yet.
  if (sizeOf(`${file}-wal`) > 0) return undefined;
  const size = sizeOf(file);
  if (wanted === 0 && size > 0) return "it is too short to be a database";
  return size < wanted ? `${wanted - size} bytes are missing at its end` : undefined;
}

function brokenStructure(sqlite: DatabaseSync, file: string): string | undefined {
  const suspicion = suspicionOf(file);
  const suspected = statSync(suspicion, { throwIfNoEntry: false }) !== undefined;
  if (sizeOf(file) > CHECKED_BYTES && !suspected) return undefined;
  const result = String(sqlite.prepare("PRAGMA quick_check(1)").get()?.["quick_check"]);
  if (result === "ok" && suspected) rmSync(suspicion, { force: true });
  return result === "ok" ? undefined : result;
}

const numberFrom = (sqlite: DatabaseSync, pragma: "page_count" | "page_size"): number =>
  Number(sqlite.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** The hash covers the step's text, so versions with different steps of the same number notice the conflict. */
const LEDGER = `
CREATE TABLE IF NOT EXISTS migrations (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT`;

type Standing = "empty" | "foreign" | "behind" | "current";

/** How far the database is migrated; only reads. Exits with 2 if this version would misread the database. */
function standingOf(sqlite: DatabaseSync, steps: readonly string[], file: string): Standing {
  const tables = sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  if (tables.length === 0) return "empty";
  if (!tables.some(({ name }) => name === "migrations")) return "foreign";
  const done = sqlite.prepare("SELECT number, hash FROM migrations ORDER BY number").all();
  if (done.length > steps.length)
    throw newerVersionError(file, `it is at migration ${done.length}, this version knows ${steps.length}`);
  const different = done.findIndex(
    ({ number, hash }, at) => number !== at + 1 || hash !== hashOf(steps[at] ?? ""),
  );
  if (different !== -1)
    throw newerVersionError(file, `its migration ${different + 1} is not the one of this version`);
  return done.length < steps.length ? "behind" : "current";
}

/** Runs all missing steps or none. */
function migrate(sqlite: DatabaseSync, steps: readonly string[], now: number): void {
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    sqlite.exec(LEDGER);
    const done = Number(sqlite.prepare("SELECT count(*) AS n FROM migrations").get()?.["n"]);
    const note = sqlite.prepare("INSERT INTO migrations VALUES (?, ?, ?)");
    for (const [at, step] of steps.entries()) {
      if (at < done) continue;
      sqlite.exec(step);
      note.run(at + 1, hashOf(step), now);
    }
    sqlite.exec("COMMIT");
  } catch (thrown) {
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw thrown;
  }
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

const newerVersionError = (file: string, how: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `sessions in ${file} were written by a newer harness: ${how}; nothing was changed`,
    "use that version, or another XDG_STATE_HOME",
  );

/** An open database with its statements. Every failure becomes a HarnessError. */
export class Database implements Disposable {
  readonly file: string;
  readonly #connection: SqliteConnection;
  /** Held while the database is open. */
  readonly #lock: Disposable;

  constructor(sqlite: DatabaseSync, file: string, lock: Disposable) {
    this.#connection = new SqliteConnection(sqlite);
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
const suspicionOf = (file: string): string => `${file}.suspect`;

function suspect(file: string): void {
  try {
    closeSync(openSync(suspicionOf(file), "a", 0o600));
  } catch {
    // The original failure is reported anyway.
  }
}

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
function storeFailure(thrown: unknown, file: string): HarnessError {
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
  const closed = trouble === "unreachable" ? othersFile(file) : undefined;
  if (closed !== undefined)
    return new HarnessError(
      EXIT.failed,
      `sessions in ${file}: you may not read and write ${closed.name}, which belongs to user ${closed.uid}`,
      `sudo chown -R "$(id -un)" ${folder}   (a command run as another user, such as with sudo, leaves such files)`,
      thrown,
    );
  return new HarnessError(EXIT.failed, `sessions in ${file}: ${why} (${reasonOf(thrown)})`, remedy, thrown);
}

/** SQLite does not say which of its files another user owns. */
function othersFile(file: string): { readonly name: string; readonly uid: number } | undefined {
  for (const name of [...FILE_SUFFIXES, ".lock"].map((suffix) => file + suffix)) {
    const stats = statsOf(name);
    if (stats === undefined || stats.uid === process.geteuid?.()) continue;
    if ((stats.mode & OPEN_TO_ALL) !== OPEN_TO_ALL) return { name, uid: stats.uid };
  }
  return undefined;
}

const OPEN_TO_ALL = 0o006;

function statsOf(name: string): Stats | undefined {
  try {
    return statSync(name, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
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
const PATIENCE_MS = 10_000;
