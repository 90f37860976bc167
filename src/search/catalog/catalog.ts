import { existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { RuleFile, Stamp } from "../read/found.ts";
import type { Role, Skip } from "../words.ts";
import { indexFailure, troubleOf } from "../embedded/failure.ts";

/** Another form is another file: what an older one held is built anew. */
const FORM = 1;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL,
  settled INTEGER NOT NULL, hash TEXT, version TEXT NOT NULL, language TEXT, role TEXT, chunks INTEGER NOT NULL, skip TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rules (
  path TEXT PRIMARY KEY, size REAL NOT NULL, mtime REAL NOT NULL, ctime REAL NOT NULL, ino REAL NOT NULL, text TEXT NOT NULL
) STRICT, WITHOUT ROWID;`;

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
  /** When an update ended last, in milliseconds since 1970; 0 for never. */
  readonly updated: number;
  /** Files whose name is no text. */
  readonly nameless: number;
  /** How the rules of what is left out are understood. */
  readonly rules: string;
}

const NO_FACTS: CatalogFacts = {
  whole: false,
  store: null,
  model: null,
  dimension: null,
  updated: 0,
  nameless: 0,
  rules: "",
};

type Row = Readonly<Record<string, number | string | null>>;

/** What is known of one index and of its files. */
export class Catalog implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #folder: string;
  readonly #statements = new Map<string, StatementSync>();

  private constructor(sqlite: DatabaseSync, folder: string) {
    this.#sqlite = sqlite;
    this.#folder = folder;
  }

  /** To be written. One that is damaged is set aside, and that is told. */
  static open(folder: string, setAside: (file: string) => void): Catalog {
    const file = path.join(folder, "catalog.db");
    try {
      return new Catalog(opened(file), folder);
    } catch (thrown) {
      if (troubleOf(thrown) !== "damaged") throw indexFailure(thrown, folder);
      const aside = `${file}.damaged`;
      for (const end of ["-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
      renameSync(file, aside);
      setAside(aside);
      return new Catalog(opened(file), folder);
    }
  }

  /** To be read; undefined where there is none that could be. */
  static read(folder: string): Catalog | undefined {
    const file = path.join(folder, "catalog.db");
    if (!existsSync(file)) return undefined;
    try {
      const sqlite = readable(file);
      const catalog = new Catalog(sqlite, folder);
      if (versionOf(sqlite) === FORM) return catalog;
      sqlite.close();
      return undefined;
    } catch {
      return undefined;
    }
  }

  facts(): CatalogFacts {
    const rows = this.#all("SELECT key, value FROM meta");
    const known: Record<string, unknown> = {};
    for (const { key, value } of rows) known[String(key)] = JSON.parse(String(value));
    return { ...NO_FACTS, ...(known as Partial<CatalogFacts>) };
  }

  note(facts: Partial<CatalogFacts>): void {
    this.#within(() => {
      for (const [key, value] of Object.entries(facts))
        this.#run("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, JSON.stringify(value));
    });
  }

  files(): ReadonlyMap<string, CatalogFile> {
    return new Map(this.#all("SELECT * FROM files").map((row) => [String(row["path"]), fileOf(row)]));
  }

  rules(): readonly RuleFile[] {
    return this.#all("SELECT * FROM rules").map((row) => ({
      path: String(row["path"]),
      stamp: stampOf(row),
      text: String(row["text"]),
    }));
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
          ...[file.hash, file.version, file.language, file.role, file.chunks, file.skip],
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
    this.#try(() => this.#sqlite.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"));
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }

  #within(work: () => void): void {
    this.#try(() => {
      this.#sqlite.exec("BEGIN IMMEDIATE");
      try {
        work();
        this.#sqlite.exec("COMMIT");
      } catch (thrown) {
        if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
        throw thrown;
      }
    });
  }

  #all(sql: string): readonly Row[] {
    return this.#try(() => this.#statement(sql).all() as unknown as readonly Row[]);
  }

  #run(sql: string, ...values: readonly (string | number | null)[]): void {
    this.#statement(sql).run(...values);
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const made = this.#sqlite.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }

  #try<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw indexFailure(thrown, this.#folder);
    }
  }
}

const PATIENCE_MS = 10_000;

function opened(file: string): DatabaseSync {
  const sqlite = new DatabaseSync(file, { timeout: PATIENCE_MS });
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

/** Where nothing may be written there is no writer either, and SQLite need not look for one. */
function readable(file: string): DatabaseSync {
  const sqlite = new DatabaseSync(file, { readOnly: true, timeout: PATIENCE_MS });
  try {
    versionOf(sqlite);
    return sqlite;
  } catch {
    sqlite.close();
    const url = pathToFileURL(file);
    url.searchParams.set("immutable", "1");
    return new DatabaseSync(url, { readOnly: true });
  }
}

const versionOf = (sqlite: DatabaseSync): number =>
  Number(sqlite.prepare("PRAGMA user_version").get()?.["user_version"]);

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

const fileOf = (row: Row): CatalogFile => ({
  stamp: stampOf(row),
  settled: row["settled"] === 1,
  hash: row["hash"] as string | null,
  version: String(row["version"]),
  language: row["language"] as string | null,
  role: row["role"] as Role | null,
  chunks: Number(row["chunks"]),
  skip: row["skip"] as Skip | null,
});
