import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Connection, privateFile } from "../../platform/sqlite-connection.ts";
import { AnotherIndex, indexFailure, openedToRead, PATIENCE_MS } from "../index-failure.ts";
import type { StoreIdentity } from "../search-store.ts";
import { type EmbeddedParts, EmbeddedStore } from "./embedded-store.ts";
import { VectorTable } from "./embedded-vectors.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * Opens the store in its folder for writing; creates it if there is none. A store of another format or another index is
 * emptied: it can be rebuilt from the files. The caller holds the writer's lock of the index. Vectors of another model
 * are ignored until the first vector of this model arrives.
 */
export function openEmbeddedStore(
  folder: string,
  identity: StoreIdentity,
  parts: EmbeddedParts = {},
): EmbeddedStore {
  return storeIn(folder, identity, parts, () => {
    makeFolder(folder);
    return connected(path.join(folder, "index.db"), identity);
  });
}

/** Opens the store read-only. Fails with a reason if there is no store of this format and index. */
export const readEmbeddedStore = (folder: string, identity: StoreIdentity): EmbeddedStore =>
  storeIn(folder, identity, {}, () => readable(path.join(folder, "index.db"), identity));

function storeIn(
  folder: string,
  identity: StoreIdentity,
  parts: EmbeddedParts,
  open: () => DatabaseSync,
): EmbeddedStore {
  try {
    const database = new Connection(open());
    return new EmbeddedStore(database, folder, new VectorTable(database, identity.vectors), parts);
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

function readable(file: string, identity: StoreIdentity): DatabaseSync {
  if (!existsSync(file)) throw new AnotherIndex("there is no index.db");
  const sqlite = openedToRead(file);
  try {
    if (writtenFor(sqlite) === wantedBy(identity)) return sqlite;
    throw new AnotherIndex("it was made by another version of harness, or for another index");
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

const wantedBy = ({ index }: StoreIdentity): string => JSON.stringify([FORM, index]);

function connected(file: string, identity: StoreIdentity): DatabaseSync {
  const sqlite = new DatabaseSync(privateFile(file), { timeout: PATIENCE_MS });
  try {
    // A kill of this process loses nothing committed; a power cut may lose what came after the last flush.
    sqlite.exec("PRAGMA synchronous = NORMAL");
    const wanted = wantedBy(identity);
    if (writtenFor(sqlite) !== wanted) begin(sqlite, wanted);
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

function writtenFor(sqlite: DatabaseSync): unknown {
  const there = sqlite.prepare("SELECT 1 AS yes FROM sqlite_schema WHERE name = 'about'").get();
  if (there === undefined) return undefined;
  return sqlite.prepare("SELECT value FROM about WHERE name = 'written for'").get()?.["value"];
}

/** Two processes may both get here; the second one finds the tables that it wants. */
function begin(sqlite: DatabaseSync, wanted: string): void {
  sqlite.exec("PRAGMA journal_mode = WAL");
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    if (writtenFor(sqlite) !== wanted) {
      const tables = sqlite
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .all();
      for (const { name } of tables) sqlite.exec(`DROP TABLE "${String(name).replaceAll('"', '""')}"`);
      sqlite.exec(TABLES);
      sqlite.prepare("INSERT INTO about VALUES ('written for', ?)").run(wanted);
    }
    sqlite.exec("COMMIT");
  } catch (thrown) {
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw thrown;
  }
}

/**
 * The format number. An index of another format is rebuilt, never converted, since everything in it comes from the
 * files. A change of how texts become words needs a new number too.
 */
const FORM = 4;

/** Numbers of files and chunks are never reused, so that entries in `dead` stay valid. */
const TABLES = `
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE files (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  texts BLOB NOT NULL
) STRICT;
CREATE TABLE chunks (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL,
  file INTEGER NOT NULL,
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  kind TEXT NOT NULL,
  symbol TEXT,
  language TEXT NOT NULL,
  role TEXT NOT NULL,
  hash BLOB NOT NULL,
  trust TEXT NOT NULL,
  at INTEGER NOT NULL,
  length INTEGER NOT NULL
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file);
CREATE INDEX chunks_by_id ON chunks (id);
CREATE TABLE segments (number INTEGER PRIMARY KEY AUTOINCREMENT, layout BLOB NOT NULL) STRICT;
CREATE TABLE postings (
  segment INTEGER NOT NULL,
  word TEXT NOT NULL,
  chunks BLOB NOT NULL,
  files BLOB NOT NULL,
  PRIMARY KEY (segment, word)
) STRICT, WITHOUT ROWID;
CREATE TABLE dead (file INTEGER PRIMARY KEY) STRICT;
`;
