import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorCode } from "../../core/errors.ts";

/** Another form of the tables gets another name. */
const NAME = "vectors-1.db";
const PATIENCE_MS = 2000;

const TABLES = `
CREATE TABLE IF NOT EXISTS models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS vectors (
  number INTEGER PRIMARY KEY,
  model INTEGER NOT NULL,
  hash BLOB NOT NULL,
  used INTEGER NOT NULL,
  numbers BLOB NOT NULL,
  UNIQUE (model, hash)
) STRICT;
CREATE INDEX IF NOT EXISTS vectors_by_use ON vectors (used);
`;

/** Only its user reads what is in it: vectors tell much of the text that they are of. Throws what SQLite throws. */
export function openCacheFile(folder: string): DatabaseSync {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, NAME);
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  const sqlite = new DatabaseSync(file, { timeout: PATIENCE_MS });
  try {
    sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    sqlite.exec(TABLES);
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

/** One that was set aside before makes room: it is a cache. */
export function setCacheAside(folder: string): string {
  const file = path.join(folder, NAME);
  const aside = `${file}.damaged`;
  for (const beside of ["-wal", "-shm"]) rmSync(file + beside, { force: true });
  renameSync(file, aside);
  return aside;
}

/** SQLite's codes: in use elsewhere, and for a file that is broken or no database. */
const BUSY: ReadonlySet<number> = new Set([5, 6]);
const DAMAGED: ReadonlySet<number> = new Set([11, 26]);

export function troubleOf(thrown: unknown): "busy" | "damaged" | "other" {
  if (errorCode(thrown) !== "ERR_SQLITE_ERROR") return "other";
  const { errcode } = thrown as { readonly errcode?: unknown };
  const code = typeof errcode === "number" ? errcode & 0xff : 0;
  if (BUSY.has(code)) return "busy";
  return DAMAGED.has(code) ? "damaged" : "other";
}
