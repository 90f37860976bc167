import { mkdirSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Connection } from "../../sqlite/connection.ts";
import { privateFile } from "../../sqlite/private-file.ts";

/** Another form of the tables gets another name. */
export const cacheFileIn = (folder: string): string => path.join(folder, "vectors-1.db");

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
export function openCacheFile(folder: string): Connection {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const sqlite = new DatabaseSync(privateFile(cacheFileIn(folder)), { timeout: PATIENCE_MS });
  try {
    sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    sqlite.exec(TABLES);
    return new Connection(sqlite);
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}
