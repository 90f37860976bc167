import { chmodSync, closeSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorCode } from "../../core/errors.ts";
import { setAside } from "./aside.ts";
import { Database, suspicionOf } from "./database.ts";
import { PATIENCE_MS, storeFailure, troubleOf } from "./failure.ts";
import { migrate, type Standing, standingOf } from "./migrate.ts";
import { STEPS } from "./schema.ts";

export interface Opening {
  readonly file: string;
  /** Told of a database that was set aside. */
  readonly warn: (text: string) => void;
  readonly now: () => number;
  readonly steps?: readonly string[];
}

interface Look {
  readonly sqlite: DatabaseSync;
  readonly standing: Standing | "damaged";
  readonly reason: string;
}

/** Up to this size all of it is looked at, which takes a few milliseconds; above it, when a failure has cast doubt on it. */
const CHECKED_BYTES = 2 * 1024 * 1024;

/** The database, made where there is none, brought up to date where it is old. */
export function openDatabase(opening: Opening): Database {
  const { file } = opening;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const look = exists(file) ? lookAt(opening) : undefined;
    const sqlite = look?.standing === "current" ? look.sqlite : underLock(opening, look);
    return new Database(sqlite, file);
  } catch (thrown) {
    throw storeFailure(thrown, file);
  }
}

/** Making, changing and setting aside is done by one process at a time; a kill frees the lock. */
function underLock(opening: Opening, before: Look | undefined): DatabaseSync {
  const { file } = opening;
  const lock = new DatabaseSync(makePrivate(`${file}.lock`), { timeout: PATIENCE_MS });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    const look = lookAt({ ...opening, file: makePrivate(file) });
    if (look.standing === "current") return look.sqlite;
    if (look.standing !== "damaged" && look.standing !== "foreign") return bringUp(look.sqlite, opening);
    const damaged = setAside(file, opening.now());
    look.sqlite.close();
    rmSync(suspicionOf(file), { force: true });
    opening.warn(
      `the session database was damaged (${look.reason}); it is kept as ${damaged}, and a new one was begun. What can be read of it: sqlite3 ${damaged} .recover`,
    );
    return bringUp(lookAt({ ...opening, file: makePrivate(file) }).sqlite, opening);
  } finally {
    if (before?.sqlite.isOpen === true) before.sqlite.close();
    lock.close();
  }
}

function bringUp(sqlite: DatabaseSync, { steps = STEPS, now }: Opening): DatabaseSync {
  try {
    sqlite.exec("PRAGMA journal_mode = WAL");
    migrate(sqlite, steps, now());
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

/** Stays open whatever is found: closing a damaged database first could have SQLite tidy up what is left of it. */
function lookAt({ file, steps = STEPS }: Opening): Look {
  const sqlite = new DatabaseSync(file, { enableForeignKeyConstraints: true, timeout: PATIENCE_MS });
  try {
    // A kill of this process loses nothing that was committed; a power cut may lose the last moments, and no more.
    sqlite.exec("PRAGMA synchronous = NORMAL");
    const standing = standingOf(sqlite, steps, file);
    if (standing === "foreign") return { sqlite, standing, reason: "it holds tables of something else" };
    const fault = faultOf(sqlite, file);
    if (fault !== undefined) return { sqlite, standing: "damaged", reason: fault };
    return { sqlite, standing, reason: "" };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    if (troubleOf(thrown) === "damaged") return { sqlite, standing: "damaged", reason };
    sqlite.close();
    throw thrown;
  }
}

/** What SQLite itself does not see until it comes upon it. */
function faultOf(sqlite: DatabaseSync, file: string): string | undefined {
  const { size } = statSync(file);
  // Pages that are still in the log are not in the file yet.
  const logged = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const { pages, page } = sqlite
    .prepare("SELECT page_count AS pages, page_size AS page FROM pragma_page_count, pragma_page_size")
    .get() as { pages: number; page: number };
  if (logged === 0 && pages === 0 && size > 0) return "it is too short to be one";
  if (logged === 0 && size < pages * page) return `${pages * page - size} bytes are missing at its end`;
  const suspected = exists(suspicionOf(file));
  if (size > CHECKED_BYTES && !suspected) return undefined;
  const said = String(sqlite.prepare("PRAGMA quick_check(1)").get()?.["quick_check"]);
  if (said !== "ok") return said;
  if (suspected) rmSync(suspicionOf(file), { force: true });
  return undefined;
}

/** Nobody else reads what was said. SQLite gives its other files the mode of this one. */
function makePrivate(file: string): string {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (thrown) {
    // It is never opened here when it is there: closing it again would free the locks that SQLite has on it.
    if (errorCode(thrown) !== "EEXIST") throw thrown;
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
  }
  return file;
}

const exists = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined;
