import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteConnection, privateFile } from "../platform/sqlite.ts";
import {
  CATALOG,
  DamagedIndex,
  indexFailure,
  openedToRead,
  PATIENCE_MS,
  setAside,
  troubleOf,
} from "./index-folders.ts";
import type { Role, Skip } from "./search-store.ts";
import type { VectorWorth } from "./index-vectors.ts";
import type { RuleFile, FileStamp } from "./files/box-files.ts";

/** Records facts about one index and its files. */
export class Catalog implements Disposable {
  readonly #connection: SqliteConnection;
  readonly #folder: string;

  private constructor(connection: SqliteConnection, folder: string) {
    this.#connection = connection;
    this.#folder = folder;
  }

  /** Opens for writing. A damaged file is set aside, and the caller is told. */
  static open(folder: string, tell: (aside: string) => void): Catalog {
    const file = path.join(folder, CATALOG);
    try {
      return new Catalog(new SqliteConnection(openedAnew(file, tell)), folder);
    } catch (thrown) {
      throw indexFailure(thrown, folder);
    }
  }

  /** Opens for reading; undefined if there is no readable catalog. */
  static read(folder: string): Catalog | undefined {
    const file = path.join(folder, CATALOG);
    if (!existsSync(file)) return undefined;
    try {
      const sqlite = readable(file);
      return sqlite === undefined ? undefined : new Catalog(new SqliteConnection(sqlite), folder);
    } catch {
      return undefined;
    }
  }

  facts(): CatalogFacts {
    const rows = this.#all("SELECT key, value FROM meta");
    return this.#try(() => factsOf(rows));
  }

  note(facts: Partial<CatalogFacts>): void {
    this.#within(() => {
      for (const [key, value] of Object.entries(facts))
        this.#run("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, JSON.stringify(value));
    });
  }

  /**
   * Marks the index as incomplete when an update begins. The mark survives a power cut, and is set before the store is
   * changed.
   */
  begin(store: CatalogFacts["store"]): void {
    this.note({ whole: false, store });
    this.#try(() => this.#connection.flush());
  }

  files(): ReadonlyMap<string, CatalogFile> {
    return new Map((this.#lists(`SELECT ${FILE_COLUMNS} FROM files`) as readonly FileColumns[]).map(fileOf));
  }

  /** The recorded files among these paths. */
  filesAt(paths: readonly string[]): ReadonlyMap<string, CatalogFile> {
    const sql = `SELECT ${FILE_COLUMNS} FROM files WHERE path IN (SELECT value FROM json_each(?))`;
    return new Map((this.#lists(sql, JSON.stringify(paths)) as readonly FileColumns[]).map(fileOf));
  }

  /** The stamps of all files; only files that `version` has cut count as sure. */
  stamps(version: string): ReadonlyMap<string, KnownStamp> {
    const sql = "SELECT path, size, mtime, ctime, ino, settled AND version = ? FROM files";
    return new Map((this.#lists(sql, version) as readonly KnownStamp[]).map((row) => [row[0], row]));
  }

  /** The number of files that the store must hold. */
  stored(): number {
    return Number(this.#all("SELECT count(*) AS files FROM files WHERE chunks > 0")[0]?.["files"]);
  }

  /** The number of files by reason for skipping; `skip` is null for the files in the index. */
  tally(): readonly { readonly skip: Skip | null; readonly files: number; readonly chunks: number }[] {
    const sql = `SELECT skip, sum(skip IS NOT NULL OR chunks > 0) AS files, sum(chunks) AS chunks FROM files GROUP BY skip`;
    return this.#all(sql).map((row) => ({
      skip: row["skip"] as Skip | null,
      files: Number(row["files"]),
      chunks: Number(row["chunks"]),
    }));
  }

  rules(): readonly RuleFile[] {
    return this.#all("SELECT * FROM rules").map(ruleOf);
  }

  /** Records all changes in one transaction. */
  record(files: ReadonlyMap<string, CatalogFile>, gone: readonly string[] = []): void {
    this.#within(() => {
      for (const path of gone) this.#run("DELETE FROM files WHERE path = ?", path);
      for (const [path, { stamp, ...file }] of files)
        this.#run(
          "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
          path,
          ...numbersOf(stamp),
          Number(file.settled),
          file.hash,
          file.version,
          file.language,
          file.role,
          file.chunks,
          file.skip,
        );
    });
  }

  setRules(rules: readonly RuleFile[]): void {
    this.#within(() => {
      this.#run("DELETE FROM rules");
      for (const { path, stamp, text } of rules)
        this.#run("INSERT INTO rules VALUES (?, ?, ?, ?, ?, ?)", path, ...numbersOf(stamp), text);
    });
  }

  /** Forgets everything. */
  clear(): void {
    this.#within(() => {
      for (const table of ["meta", "files", "rules"]) this.#run(`DELETE FROM ${table}`);
    });
  }

  compact(): void {
    this.#try(() => this.#connection.compact());
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }

  #within(work: () => void): void {
    this.#try(() => this.#connection.atomically(work));
  }

  #lists(sql: string, ...values: readonly string[]): unknown {
    return this.#try(() => this.#connection.lists(sql, ...values));
  }

  #all(sql: string): readonly Row[] {
    return this.#try(() => this.#connection.all(sql) as readonly Row[]);
  }

  #run(sql: string, ...values: readonly (string | number | null)[]): void {
    this.#connection.run(sql, ...values);
  }

  #try<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw indexFailure(thrown, this.#folder);
    }
  }
}

/** A new format gets a new file; the index is rebuilt from the sources. */
const FORMAT_VERSION = 1;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL,
  settled INTEGER NOT NULL, hash TEXT, version TEXT NOT NULL, language TEXT, role TEXT, chunks INTEGER NOT NULL, skip TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rules (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL, text TEXT NOT NULL
) STRICT, WITHOUT ROWID;`;

/** Opens a catalog for writing; creates it if there is none. */
function openCatalogFile(file: string): DatabaseSync {
  const sqlite = new DatabaseSync(privateFile(file), { timeout: PATIENCE_MS });
  try {
    sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const version = versionOf(sqlite);
    if (version !== 0 && version !== FORMAT_VERSION)
      sqlite.exec("DROP TABLE IF EXISTS meta; DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS rules");
    if (version !== FORMAT_VERSION) sqlite.exec(`${SCHEMA} PRAGMA user_version = ${FORMAT_VERSION}`);
    sqlite.prepare("SELECT count(*) FROM files").get();
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

const versionOf = (sqlite: DatabaseSync): number =>
  Number(sqlite.prepare("PRAGMA user_version").get()?.["user_version"]);

/** Undefined if the file has another format. */
function readable(file: string): DatabaseSync | undefined {
  const sqlite = openedToRead(file);
  try {
    if (versionOf(sqlite) === FORMAT_VERSION) return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
  sqlite.close();
  return undefined;
}

function openedAnew(file: string, tell: (aside: string) => void): DatabaseSync {
  try {
    return openCatalogFile(file);
  } catch (thrown) {
    if (troubleOf(thrown) !== "damaged") throw thrown;
    tell(setAside(file));
    return openCatalogFile(file);
  }
}

/** A file as it was last read. */
export interface CatalogFile {
  readonly stamp: FileStamp;
  /** Any change since would have given the file another stamp. */
  readonly settled: boolean;
  /** Hash of the content; null if the file was not read. */
  readonly hash: string | null;
  /** Version of the cutter that cut the file. */
  readonly version: string;
  readonly language: string | null;
  readonly role: Role | null;
  readonly chunks: number;
  /** Why the file has no chunks. */
  readonly skip: Skip | null;
}

/** Facts about the whole index. */
export interface CatalogFacts {
  /** The last update was complete. */
  readonly whole: boolean;
  /** The store that holds the chunks, and the model of its vectors. */
  readonly store: "embedded" | "qdrant" | null;
  readonly model: string | null;
  readonly dimension: number | null;
  /** A model that gave no vector in time when the index was made; null once it has given one, or if none was wanted. */
  readonly awaited: string | null;
  /** How much vectors helped on the repository's history, if measured. */
  readonly worth: VectorWorth | null;
  /** End of the last update, in milliseconds since 1970; 0 for never. */
  readonly updated: number;
  /** Number of unreadable entries without a row: files whose names are not valid text, folders that may not be read. */
  readonly nameless: number;
  /** Identifies the interpretation of the ignore rules. */
  readonly rules: string;
}

export const NO_FACTS: CatalogFacts = {
  whole: false,
  store: null,
  model: null,
  dimension: null,
  awaited: null,
  worth: null,
  updated: 0,
  nameless: 0,
  rules: "",
};

type Row = Readonly<Record<string, number | string | null>>;

/** Parses the facts, stored as JSON with one fact per row. */
function factsOf(rows: readonly Row[]): CatalogFacts {
  const known: Record<string, unknown> = {};
  try {
    for (const { key, value } of rows) known[String(key)] = JSON.parse(String(value));
  } catch (thrown) {
    throw new DamagedIndex("its stored facts cannot be parsed", { cause: thrown });
  }
  return { ...NO_FACTS, ...(known as Partial<CatalogFacts>) };
}

const numbersOf = ({ size, mtimeMs, ctimeMs, ino }: FileStamp): readonly [number, number, number, number] => [
  size,
  mtimeMs,
  ctimeMs,
  ino,
];

const stampOf = (row: Row): FileStamp => ({
  size: Number(row["size"]),
  mtimeMs: Number(row["mtime"]),
  ctimeMs: Number(row["ctime"]),
  ino: Number(row["ino"]),
});

/**
 * Read in this order: there may be hundreds of thousands of rows, and rows as lists are read in half the time of rows
 * with names.
 */
const FILE_COLUMNS = "path, size, mtime, ctime, ino, settled, hash, version, language, role, chunks, skip";

type FileColumns = readonly [
  path: string,
  size: number,
  mtime: number,
  ctime: number,
  ino: number,
  settled: number,
  hash: string | null,
  version: string,
  language: string | null,
  role: Role | null,
  chunks: number,
  skip: Skip | null,
];

/** The stamp of one file; `sure` is 1 if the stamp identifies the content that was read. A list, like all rows. */
export type KnownStamp = readonly [
  path: string,
  size: number,
  mtimeMs: number,
  ctimeMs: number,
  ino: number,
  sure: number,
];

function fileOf(columns: FileColumns): readonly [path: string, file: CatalogFile] {
  const [path, size, mtimeMs, ctimeMs, ino, settled, hash, version, language, role, chunks, skip] = columns;
  const stamp = { size, mtimeMs, ctimeMs, ino };
  return [path, { stamp, settled: settled === 1, hash, version, language, role, chunks, skip }];
}

const ruleOf = (row: Row): RuleFile => ({
  path: String(row["path"]),
  stamp: stampOf(row),
  text: String(row["text"]),
});

export interface Summary {
  /** Files in the index. */
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Partial<Record<Skip, number>>>;
}

export function summaryOf(catalog: Catalog): Summary {
  const rows = catalog.tally();
  const skipped: Partial<Record<Skip, number>> = {};
  for (const { skip, files } of rows) if (skip !== null) skipped[skip] = files;
  const { nameless } = catalog.facts();
  if (nameless > 0) skipped.unreadable = (skipped.unreadable ?? 0) + nameless;
  const there = rows.find(({ skip }) => skip === null);
  return { files: there?.files ?? 0, chunks: there?.chunks ?? 0, skipped };
}
