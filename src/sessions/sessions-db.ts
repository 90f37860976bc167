import { createHash } from "node:crypto";
import { renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { privateFile } from "../platform/sqlite-connection.ts";
import { Database, suspicionOf } from "./database.ts";
import { type LockLevel, suffices } from "../platform/lock.ts";
import { DatabaseLock, PATIENCE_MS, storeFailure } from "./db-lock.ts";
import { STEPS } from "./schema.ts";
import { makeFolder } from "../platform/folders.ts";

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
      return new Database(opened(opening, lock), file, lock);
    } catch (thrown) {
      lock[Symbol.dispose]();
      throw thrown;
    }
  } catch (thrown) {
    throw storeFailure(thrown, file);
  }
}

/**
 * Looks again under each stricter lock, because another process may have done the work meanwhile. Ends with the mildest
 * lock.
 */
function opened(opening: Opening, lock: DatabaseLock): DatabaseSync {
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
  if (standing === "empty" || standing === "behind") return migrated(sqlite, opening);
  const { file, warn, now } = opening;
  const aside = setAside(file, now());
  // Closed only after the move: the last one to close a database removes the files beside it.
  sqlite.close();
  rmSync(suspicionOf(file), { force: true });
  warn(
    `the session database was damaged (${reason}); it was set aside as ${aside}, and a new one was created. To recover what is readable: sqlite3 ${aside} .recover`,
  );
  return migrated(inspect(opening).sqlite, opening);
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
