import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Connection } from "../../sqlite/connection.ts";
import { privateFile } from "../../sqlite/private-file.ts";
import type { SearchStore, StoreIdentity } from "../store.ts";
import { AnotherIndex, indexFailure, PATIENCE_MS } from "../index-failure.ts";
import { FORM, TABLES } from "./schema.ts";
import { EmbeddedStore } from "./store.ts";
import { openedToRead } from "../opened-to-read.ts";
import type { Weights } from "../rank/weights.ts";
import { VectorTable } from "./vectors.ts";

export interface EmbeddedParts {
  readonly weights?: Weights;
}

/**
 * The index in a folder of its own, to be written, made where there is none. What was written in another form, or for
 * another index, is emptied: all of it comes from files. Whoever opens it so holds the writer's lock of the index.
 * Vectors of another model are passed over until the first of this one come.
 */
export function openEmbeddedStore(
  folder: string,
  identity: StoreIdentity,
  parts: EmbeddedParts = {},
): SearchStore {
  return storeIn(folder, identity, parts, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return connected(path.join(folder, "index.db"), identity);
  });
}

/** The same, to be asked only: nothing of it is changed. Where there is none of this form and index, it fails and says so. */
export const readEmbeddedStore = (folder: string, identity: StoreIdentity): SearchStore =>
  storeIn(folder, identity, {}, () => readable(path.join(folder, "index.db"), identity));

function storeIn(
  folder: string,
  identity: StoreIdentity,
  { weights }: EmbeddedParts,
  open: () => DatabaseSync,
): SearchStore {
  try {
    const database = new Connection(open());
    return new EmbeddedStore(database, folder, new VectorTable(database, identity.vectors), weights);
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
    // A kill of this process loses nothing that was committed; a power cut may lose what came after the last flush.
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

/** Two processes may both come here; the second finds what it wanted. */
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
