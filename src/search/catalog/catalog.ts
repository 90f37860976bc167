import { existsSync } from "node:fs";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Connection } from "../../sqlite/connection.ts";
import { indexFailure, troubleOf } from "../index-failure.ts";
import { openedToRead } from "../opened-to-read.ts";
import type { RuleFile } from "../read/found.ts";
import { setAside } from "../set-aside.ts";
import type { Skip } from "../words.ts";
import { CATALOG, FORM, opened, versionOf } from "./file.ts";
import {
  type CatalogFacts,
  type CatalogFile,
  factsOf,
  FILE_COLUMNS,
  type FileColumns,
  fileOf,
  type KnownStamp,
  numbersOf,
  type Row,
  ruleOf,
} from "./rows.ts";

/** What is known of one index and of its files. */
export class Catalog implements Disposable {
  readonly #connection: Connection;
  readonly #folder: string;

  private constructor(connection: Connection, folder: string) {
    this.#connection = connection;
    this.#folder = folder;
  }

  /** To be written. One that is damaged is set aside, and that is told. */
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
