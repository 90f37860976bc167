import { existsSync } from "node:fs";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Connection } from "../../platform/sqlite-connection.ts";
import { DamagedIndex, indexFailure, openedToRead, setAside, troubleOf } from "../index-failure.ts";
import type { Role, Skip } from "../index-words.ts";
import type { VectorWorth } from "../vector-worth.ts";
import type { RuleFile, Stamp } from "../read/found-file.ts";
import { CATALOG, FORM, opened, versionOf } from "./catalog-file.ts";

/** What is known of one index and of its files. */
export class Catalog implements Disposable {
  readonly #connection: Connection;
  readonly #folder: string;

  private constructor(connection: Connection, folder: string) {
    this.#connection = connection;
    this.#folder = folder;
  }

  /** Opens for writing. A damaged file is set aside, and the caller is told. */
  static open(folder: string, tell: (aside: string) => void): Catalog {
    const file = path.join(folder, CATALOG);
    try {
      return new Catalog(new Connection(openedAnew(file, tell)), folder);
    } catch (thrown) {
      throw indexFailure(thrown, folder);
    }
  }

  /** To be read; undefined where there is none that could be. */
  static read(folder: string): Catalog | undefined {
    const file = path.join(folder, CATALOG);
    if (!existsSync(file)) return undefined;
    try {
      const sqlite = readable(file);
      return sqlite === undefined ? undefined : new Catalog(new Connection(sqlite), folder);
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

  /** An update begins: that it has not ended outlasts a power cut, before anything of the store is changed. */
  begin(store: CatalogFacts["store"]): void {
    this.note({ whole: false, store });
    this.#try(() => this.#connection.flush());
  }

  files(): ReadonlyMap<string, CatalogFile> {
    return new Map((this.#lists(`SELECT ${FILE_COLUMNS} FROM files`) as readonly FileColumns[]).map(fileOf));
  }

  /** Those of these paths that are in it. */
  filesAt(paths: readonly string[]): ReadonlyMap<string, CatalogFile> {
    const sql = `SELECT ${FILE_COLUMNS} FROM files WHERE path IN (SELECT value FROM json_each(?))`;
    return new Map((this.#lists(sql, JSON.stringify(paths)) as readonly FileColumns[]).map(fileOf));
  }

  /** By what all files are known again, where `version` has cut them. */
  stamps(version: string): ReadonlyMap<string, KnownStamp> {
    const sql = "SELECT path, size, mtime, ctime, ino, settled AND version = ? FROM files";
    return new Map((this.#lists(sql, version) as readonly KnownStamp[]).map((row) => [row[0], row]));
  }

  /** How many files the store must hold. */
  stored(): number {
    return Number(this.#all("SELECT count(*) AS files FROM files WHERE chunks > 0")[0]?.["files"]);
  }

  /** How many files of each kind there are; `skip` is null for those that are in the index. */
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

  /** Durable together. */
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

  /** Nothing is known any more. */
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

/** Undefined where it has another form. */
function readable(file: string): DatabaseSync | undefined {
  const sqlite = openedToRead(file);
  try {
    if (versionOf(sqlite) === FORM) return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
  sqlite.close();
  return undefined;
}

function openedAnew(file: string, tell: (aside: string) => void): DatabaseSync {
  try {
    return opened(file);
  } catch (thrown) {
    if (troubleOf(thrown) !== "damaged") throw thrown;
    tell(setAside(file));
    return opened(file);
  }
}

/** A file as it was read last. */
export interface CatalogFile {
  readonly stamp: Stamp;
  /** Nothing could have changed it since without another stamp. */
  readonly settled: boolean;
  /** Of its content; null where that was not read. */
  readonly hash: string | null;
  /** Of what cut it. */
  readonly version: string;
  readonly language: string | null;
  readonly role: Role | null;
  readonly chunks: number;
  /** Why it has none. */
  readonly skip: Skip | null;
}

/** What is known of the whole. */
export interface CatalogFacts {
  /** The last update ran to its end. */
  readonly whole: boolean;
  /** Which store holds the chunks, and the model of its vectors. */
  readonly store: "embedded" | "qdrant" | null;
  readonly model: string | null;
  readonly dimension: number | null;
  /** A model that gave no vector in time when the index was made; null once it has, or where none was to. */
  readonly awaited: string | null;
  /** What vectors brought on the history, where that was measured. */
  readonly worth: VectorWorth | null;
  /** When an update ended last, in milliseconds since 1970; 0 for never. */
  readonly updated: number;
  /** What has no row and is unreadable: files whose name is no text, folders that may not be looked into. */
  readonly nameless: number;
  /** How the rules of what is left out are understood. */
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

/** What is written as JSON, one fact a row. */
function factsOf(rows: readonly Row[]): CatalogFacts {
  const known: Record<string, unknown> = {};
  try {
    for (const { key, value } of rows) known[String(key)] = JSON.parse(String(value));
  } catch (thrown) {
    throw new DamagedIndex("what is known of it cannot be read", { cause: thrown });
  }
  return { ...NO_FACTS, ...(known as Partial<CatalogFacts>) };
}

const numbersOf = ({ size, mtimeMs, ctimeMs, ino }: Stamp): readonly [number, number, number, number] => [
  size,
  mtimeMs,
  ctimeMs,
  ino,
];

const stampOf = (row: Row): Stamp => ({
  size: Number(row["size"]),
  mtimeMs: Number(row["mtime"]),
  ctimeMs: Number(row["ctime"]),
  ino: Number(row["ino"]),
});

/** In this order: there may be hundreds of thousands, and rows as lists are read in half the time of rows with names. */
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

/** Of one file; `sure` is 1 where the stamp tells whether it is the one that was read. A list, as all of them are read. */
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
