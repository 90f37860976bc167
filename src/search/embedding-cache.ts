import { createHash } from "node:crypto";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { diskTroubleOf } from "../core/disk-trouble.ts";
import { reasonOf } from "../core/errors.ts";
import { Connection, privateFile } from "../platform/sqlite-connection.ts";
import { setAside } from "./index-failure.ts";
import { packed, unit, unpacked } from "./unit-vectors.ts";
import { makeFolder } from "../platform/folders.ts";

/**
 * Vectors of texts that were embedded before, by model and text. All indexes of this user share them; they outlive the
 * index they were made for. Returned vectors have length one. The cache never fails: without it, texts are embedded
 * again.
 */
export interface VectorCache extends Disposable {
  /** The length of the model's vectors, if it was learned. */
  dimension(model: string): number | undefined;
  /** Removes the model's vectors of any other length. */
  learn(model: string, dimension: number): void;
  forget(model: string): void;
  get(model: string, texts: readonly string[]): ReadonlyMap<string, Float32Array>;
  /** All vectors must have the same length, which is learned from them. */
  put(model: string, vectors: ReadonlyMap<string, Float32Array>): void;
}

interface CacheOptions {
  /** Called once for each kind of trouble. */
  readonly warn: (text: string) => void;
  readonly now?: () => number;
  readonly maxBytes?: number;
}

/** About 300,000 vectors of 768 numbers. */
const MAX_BYTES = 512 * 1024 * 1024;
/** A full cache drops one part in this many, the least recently used. */
const PRUNED_PART = 5;
/** Uses are recorded no finer than this, so that reading seldom writes. */
const USE_GRAIN_MS = 60 * 60 * 1000;

export const openVectorCache = (folder: string, options: CacheOptions): VectorCache =>
  new SqliteCache(folder, options);

class SqliteCache implements VectorCache {
  readonly #database: CacheDatabase;
  readonly #now: () => number;
  readonly #maxBytes: number;

  constructor(folder: string, { warn, now = Date.now, maxBytes = MAX_BYTES }: CacheOptions) {
    this.#database = new CacheDatabase(folder, warn);
    this.#now = now;
    this.#maxBytes = maxBytes;
  }

  dimension(model: string): number | undefined {
    return this.#database.read((connection) => modelRow(connection, model)?.dimension, undefined);
  }

  learn(model: string, dimension: number): void {
    if (this.dimension(model) === dimension) return;
    this.forget(model);
    this.#database.write(
      (connection) =>
        void connection.run("INSERT OR IGNORE INTO models (name, dimension) VALUES (?, ?)", model, dimension),
    );
  }

  forget(model: string): void {
    this.#database.write((connection) => {
      connection.run("DELETE FROM vectors WHERE model IN (SELECT number FROM models WHERE name = ?)", model);
      connection.run("DELETE FROM models WHERE name = ?", model);
    });
  }

  get(model: string, texts: readonly string[]): ReadonlyMap<string, Float32Array> {
    const found = new Map<string, Float32Array>();
    const stale: number[] = [];
    const old = this.#now() - USE_GRAIN_MS;
    this.#database.read((connection) => {
      const row = modelRow(connection, model);
      if (row === undefined) return;
      for (const text of texts) {
        const kept = connection.get(KEPT, row.number, hashOf(text));
        const bytes = kept?.["numbers"];
        const vector = bytes instanceof Uint8Array ? unpacked(bytes, row.dimension) : undefined;
        if (kept === undefined || vector === undefined) continue;
        found.set(text, new Float32Array(vector));
        if (Number(kept["used"]) < old) stale.push(Number(kept["number"]));
      }
    }, undefined);
    if (stale.length > 0) this.#touch(stale);
    return found;
  }

  put(model: string, vectors: ReadonlyMap<string, Float32Array>): void {
    const [first] = vectors.values();
    if (first === undefined) return;
    this.learn(model, first.length);
    this.#database.write((connection) => {
      const row = modelRow(connection, model);
      if (row === undefined) return;
      for (const [text, vector] of vectors) {
        const made = vector.length === row.dimension ? unit(vector) : undefined;
        if (made !== undefined) connection.run(INSERT, row.number, hashOf(text), this.#now(), packed(made));
      }
      this.#prune(connection);
    });
  }

  [Symbol.dispose](): void {
    this.#database[Symbol.dispose]();
  }

  #touch(numbers: readonly number[]): void {
    this.#database.write((connection) => {
      for (const number of numbers)
        connection.run("UPDATE vectors SET used = ? WHERE number = ?", this.#now(), number);
    });
  }

  /** Runs within the write that may have made the cache too large. */
  #prune(connection: Connection): void {
    if (usedBytes(connection) <= this.#maxBytes) return;
    const count = Number(connection.get("SELECT count(*) AS n FROM vectors")?.["n"]);
    connection.run(
      "DELETE FROM vectors WHERE number IN (SELECT number FROM vectors ORDER BY used, number LIMIT ?)",
      Math.ceil(count / PRUNED_PART),
    );
  }
}

const KEPT = "SELECT number, used, numbers FROM vectors WHERE model = ? AND hash = ?";
const INSERT = "INSERT OR REPLACE INTO vectors (model, hash, used, numbers) VALUES (?, ?, ?, ?)";

function modelRow(
  connection: Connection,
  model: string,
): { readonly number: number; readonly dimension: number } | undefined {
  const row = connection.get("SELECT number, dimension FROM models WHERE name = ?", model);
  return row === undefined
    ? undefined
    : { number: Number(row["number"]), dimension: Number(row["dimension"]) };
}

/** Free pages do not count: they are filled before the file grows. */
function usedBytes(connection: Connection): number {
  const pragma = (name: string): number => Number(connection.get(`PRAGMA ${name}`)?.[name]);
  return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
}

/** Half of SHA-256: enough to tell any two texts apart. */
const hashOf = (text: string): Uint8Array => createHash("sha256").update(text).digest().subarray(0, 16);

/** A database that nothing depends on: a failure is reported once, and the program goes on without the database. */
class CacheDatabase implements Disposable {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  #connection: Connection | undefined;
  #writes = true;

  constructor(folder: string, warn: (text: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
    try {
      this.#connection = openCacheFile(folder);
    } catch (thrown) {
      this.#giveUp(thrown);
    }
  }

  read<T>(work: (connection: Connection) => T, otherwise: T): T {
    if (this.#connection === undefined) return otherwise;
    try {
      return work(this.#connection);
    } catch (thrown) {
      if (diskTroubleOf(thrown) !== "busy") this.#giveUp(thrown);
      return otherwise;
    }
  }

  /** Runs `work` in one transaction. */
  write(work: (connection: Connection) => void): void {
    if (!this.#writes) return;
    this.read((connection) => {
      try {
        connection.atomically(() => work(connection));
      } catch (thrown) {
        const trouble = diskTroubleOf(thrown);
        if (trouble === "busy" || trouble === "damaged") throw thrown;
        // What cannot be written can still be read.
        this.#writes = false;
        this.#warn(`new vectors are not cached: ${this.#folder} cannot be written (${reasonOf(thrown)})`);
      }
    }, undefined);
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }

  #giveUp(thrown: unknown): void {
    this[Symbol.dispose]();
    if (diskTroubleOf(thrown) !== "damaged") {
      this.#warn(`vectors are not cached: ${this.#folder} cannot be used (${reasonOf(thrown)})`);
      return;
    }
    try {
      const place = setAside(cacheFileIn(this.#folder));
      this.#connection = openCacheFile(this.#folder);
      this.#warn(`the vector cache was damaged: it was moved to ${place}, and a new one was started`);
    } catch (again) {
      this.#warn(
        `the vector cache in ${this.#folder} is damaged (${reasonOf(again)}); continuing without it`,
      );
    }
  }
}

/** A change of the tables needs a new file name. */
const cacheFileIn = (folder: string): string => path.join(folder, "vectors-1.db");

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

/** Only the user may read the file: vectors reveal much about their texts. Throws what SQLite throws. */
function openCacheFile(folder: string): Connection {
  makeFolder(folder);
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
