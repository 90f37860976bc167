import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { diskTroubleOf } from "../../core/disk-trouble.ts";
import { reasonOf } from "../../core/errors.ts";
import { privateFile } from "../../sqlite/private-file.ts";
import { setAside } from "./aside.ts";
import { Database, suspicionOf } from "./database.ts";
import { PATIENCE_MS, storeFailure } from "./failure.ts";
import { faultOf } from "./fault.ts";
import { FileLock, type Level, suffices } from "./lock.ts";
import { migrate, type Standing, standingOf } from "./migrate.ts";
import { STEPS } from "./schema.ts";

export interface Opening {
  readonly file: string;
  /** Told of a database that was set aside. */
  readonly warn: (text: string) => void;
  readonly now: () => number;
  readonly steps?: readonly string[];
  readonly patienceMs?: number;
}

interface Look {
  readonly sqlite: DatabaseSync;
  readonly standing: Standing | "damaged";
  readonly reason: string;
}

/** What may be done with a database only when others do less. */
const NEEDS: Readonly<Record<Look["standing"], Level>> = {
  current: "shared",
  behind: "reserved",
  empty: "reserved",
  foreign: "exclusive",
  damaged: "exclusive",
};

/** The database, made where there is none, brought up to date where it is old. */
export function openDatabase(opening: Opening): Database {
  const { file, patienceMs = PATIENCE_MS } = opening;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const lock = new FileLock(privateFile(`${file}.lock`), patienceMs);
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

/** Looks again under each stricter lock: another process may have done what is to be done. Ends with the mildest one. */
function opened(opening: Opening, lock: FileLock): DatabaseSync {
  for (let level: Level = "shared"; ;) {
    lock.take(level);
    const look = lookAt(opening);
    if (suffices(level, NEEDS[look.standing])) {
      const sqlite = made(look, opening);
      if (level !== "shared") lock.take("shared");
      return sqlite;
    }
    look.sqlite.close();
    level = NEEDS[look.standing];
  }
}

function made({ sqlite, standing, reason }: Look, opening: Opening): DatabaseSync {
  if (standing === "current") return sqlite;
  if (standing === "empty" || standing === "behind") return bringUp(sqlite, opening);
  const { file, warn, now } = opening;
  const aside = setAside(file, now());
  // Not before it is moved: the last one to close a database tidies up beside it.
  sqlite.close();
  rmSync(suspicionOf(file), { force: true });
  warn(
    `the session database was damaged (${reason}); it is kept as ${aside}, and a new one was begun. What can be read of it: sqlite3 ${aside} .recover`,
  );
  return bringUp(lookAt(opening).sqlite, opening);
}

function bringUp(sqlite: DatabaseSync, { steps = STEPS, now }: Opening): DatabaseSync {
  try {
    // Counts only before the first table is made: what is removed can be given back to the disk.
    sqlite.exec("PRAGMA auto_vacuum = INCREMENTAL");
    sqlite.exec("PRAGMA journal_mode = WAL");
    migrate(sqlite, steps, now());
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

function lookAt({ file, steps = STEPS, patienceMs = PATIENCE_MS }: Opening): Look {
  const sqlite = new DatabaseSync(privateFile(file), {
    enableForeignKeyConstraints: true,
    timeout: patienceMs,
  });
  try {
    // A kill of this process loses nothing that was committed; a power cut may lose the last moments, and no more.
    sqlite.exec("PRAGMA synchronous = NORMAL");
    // What is removed is overwritten too.
    sqlite.exec("PRAGMA secure_delete = ON");
    const standing = standingOf(sqlite, steps, file);
    if (standing === "foreign") return { sqlite, standing, reason: "it holds tables of something else" };
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
