import { DatabaseSync } from "node:sqlite";
import { privateFile } from "../../sqlite/private-file.ts";
import { PATIENCE_MS } from "../index-failure.ts";

/** The name of the file in the folder of an index. */
export const CATALOG = "catalog.db";

/** Another form is another file: what an older one held is built anew. */
export const FORM = 1;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL,
  settled INTEGER NOT NULL, hash TEXT, version TEXT NOT NULL, language TEXT, role TEXT, chunks INTEGER NOT NULL, skip TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rules (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL, text TEXT NOT NULL
) STRICT, WITHOUT ROWID;`;

/** To be written; made where there is none. */
export function opened(file: string): DatabaseSync {
  const sqlite = new DatabaseSync(privateFile(file), { timeout: PATIENCE_MS });
  try {
    sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const version = versionOf(sqlite);
    if (version !== 0 && version !== FORM)
      sqlite.exec("DROP TABLE IF EXISTS meta; DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS rules");
    if (version !== FORM) sqlite.exec(`${SCHEMA} PRAGMA user_version = ${FORM}`);
    sqlite.prepare("SELECT count(*) FROM files").get();
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

export const versionOf = (sqlite: DatabaseSync): number =>
  Number(sqlite.prepare("PRAGMA user_version").get()?.["user_version"]);
