import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { SqliteConnection, privateFile } from "../../platform/sqlite.ts";
import { makeFolder } from "../../platform/folders.ts";
import type { SearchStore, ServerStore, StoreIdentity } from "../search-store.ts";
import { AnotherIndex, indexFailure, openedToRead, PATIENCE_MS } from "../index-folders.ts";
import type { QdrantServer } from "./qdrant-api.ts";
import { type EmbeddedParts, EmbeddedStore } from "./embedded-store.ts";
import { VectorTable } from "./embedded-vectors.ts";
import { waitingTimeout } from "../../platform/waits.ts";

export interface StoreChoice {
  readonly store: "auto" | "qdrant" | "embedded";
  readonly server: QdrantServer;
  /** Folder of the embedded store, or of the word counts beside a server. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** The store that has held the index until now; null if there is no index yet. */
  readonly earlier: SearchStore["name"] | null;
  /** `read`: nothing is changed. A Qdrant gets the same requests either way. */
  readonly access: "read" | "write";
  /** Takes one line for a person. */
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** How long a Qdrant that was not asked for by name may take to answer. */
const QUICK_MS = 2000;
/**
 * For a cluster, whose nodes are tried in turn and share the time; and for the server that holds the index, which may
 * be busy: to wait for it costs less than to make the index again.
 */
const PATIENT_MS = 15_000;

const openingTimeout = ({ nodes = [] }: QdrantServer, holdsIndex: boolean): AbortSignal =>
  waitingTimeout(nodes.length === 0 && !holdsIndex ? QUICK_MS : PATIENT_MS);

/**
 * Opens the store that was asked for, or fails. `auto` takes the store that already holds the index. For a new index,
 * or if that store is gone, it takes Qdrant if it answers quickly and is usable, else the embedded store, which needs
 * nothing. The choice is the `name` of the store; pass it as `earlier` the next time.
 */
export async function openStoreFor(choice: StoreChoice): Promise<SearchStore> {
  const { store, earlier, signal } = choice;
  signal.throwIfAborted();
  if (store === "qdrant") return openRankedQdrant(choice, signal);
  if (store === "embedded" || earlier === "embedded") return openEmbedded(choice);
  await qdrantModule();
  const bounded = AbortSignal.any([signal, openingTimeout(choice.server, earlier === "qdrant")]);
  try {
    return await openRankedQdrant(choice, bounded);
  } catch (thrown) {
    signal.throwIfAborted();
    const why = bounded.aborted ? `Qdrant at ${choice.server.url} did not answer in time` : reasonOf(thrown);
    if (earlier === "qdrant")
      choice.warn(
        `the Qdrant that holds the index cannot be used: ${why}; rebuilding the index in the embedded store`,
      );
    else if (!isUnreachable(thrown)) choice.warn(`${why}; using the embedded store instead`);
    return openEmbedded(choice);
  }
}

type ServerChoice = Pick<StoreChoice, "server" | "identity" | "warn" | "signal"> & {
  readonly store: "auto" | "qdrant";
};

/** Null when no Qdrant was asked for by name and none is usable. */
export async function openServerOf({ store, ...choice }: ServerChoice): Promise<ServerStore | null> {
  await qdrantModule();
  const bounded = AbortSignal.any([choice.signal, openingTimeout(choice.server, false)]);
  try {
    return await openQdrant({ ...choice, access: "write" }, store === "qdrant" ? choice.signal : bounded);
  } catch (thrown) {
    choice.signal.throwIfAborted();
    if (store === "auto") return null;
    throw thrown;
  }
}

/** No server listens there; with `auto` that needs no warning. */
const isUnreachable = (thrown: unknown): boolean =>
  thrown instanceof HarnessError && "trouble" in thrown && thrown.trouble === "unreachable";

type Server = Pick<StoreChoice, "server" | "identity" | "access" | "warn">;

/** Loaded before the server's time begins: on a busy machine that takes a good part of it. */
const qdrantModule = async () => import("./qdrant-store.ts");

async function openRankedQdrant(choice: StoreChoice, signal: AbortSignal): Promise<SearchStore> {
  const { folder, identity, access } = choice;
  const server = await openQdrant(choice, signal);
  const { HostRanked } = await qdrantModule();
  return HostRanked.open(server, { folder, identity, access });
}

async function openQdrant(choice: Server, signal: AbortSignal): Promise<ServerStore> {
  const { openQdrantStore } = await qdrantModule();
  const { server, identity, access } = choice;
  for (const url of [server.url, ...(server.nodes ?? [])]) {
    const bare = unencrypted(url, server.apiKey);
    if (bare !== null) choice.warn(bare);
  }
  return await openQdrantStore(server, identity, { signal, access });
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** The warning for a key that others may read on its way; null if no key is sent, or nobody can read it. */
export function unencrypted(url: string, apiKey: string | undefined): string | null {
  if ((apiKey ?? "") === "" || !URL.canParse(url)) return null;
  const { protocol, hostname, host } = new URL(url);
  if (protocol !== "http:" || LOOPBACK.test(hostname)) return null;
  return `the Qdrant key and your code are sent to ${host} unencrypted; use https`;
}

async function openEmbedded({ folder, identity, access }: StoreChoice): Promise<SearchStore> {
  return (access === "read" ? readEmbeddedStore : openEmbeddedStore)(folder, identity);
}

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
    return openSqlite(path.join(folder, "index.db"), identity);
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
    const database = new SqliteConnection(open());
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

const wantedBy = ({ index }: StoreIdentity): string => JSON.stringify([FORMAT_VERSION, index]);

function openSqlite(file: string, identity: StoreIdentity): DatabaseSync {
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
const FORMAT_VERSION = 4;

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
