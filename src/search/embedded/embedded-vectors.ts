import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Connection } from "../../platform/sqlite-connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { dot, packed, unit, unpacked } from "../unit-vectors.ts";
import { codeScores, type CodeSet, CodeSets, signSums } from "./code-sets.ts";
import type { Near, VectorColumn } from "./embedded-rows.ts";

/**
 * How many vectors are compared exactly: the minimum, and the number per wanted result. Of 100,000 vectors, the codes
 * let through 98 of the nearest hundred, and a larger share of the nearest ten. Up to the minimum, no vector is passed
 * over.
 */
const MIN_EXACT = 512;
const EXACT_EACH = 8;

/**
 * The vectors of the store's chunks, in its database. Vectors of another model are neither found nor counted; the first
 * new vector replaces them all. Without a model of its own the table only forgets removed chunks.
 */
export class VectorTable implements VectorColumn {
  readonly #database: Connection;
  readonly #identity: VectorIdentity | null;
  /** Below this number every chunk has a vector, as long as only this process adds vectors: chunk numbers only grow. */
  #from = 0;
  /** State as of the last known change; rereading it for every question would produce ten times as much garbage. */
  #loaded: { readonly version: string; readonly set: CodeSet } | undefined;

  constructor(database: Connection, identity: VectorIdentity | null) {
    this.#database = database;
    this.#identity = identity;
  }

  put(vectors: ReadonlyMap<number, Float32Array>): void {
    const identity = this.#identity;
    if (identity === null)
      throw new HarnessError(EXIT.failed, "the index was given vectors but has no embedding model");
    const units = [...vectors].map(([chunk, vector]) => [chunk, unitOf(vector, identity)] as const);
    this.#database.atomically(() => {
      adoptVectors(this.#database, identity);
      this.remove([...vectors.keys()]);
      const places = new CodeSets(this.#database, identity.dimension).add(units);
      for (const [chunk, vector] of units)
        this.#database.run(
          "INSERT INTO vectors VALUES (?, ?, ?)",
          chunk,
          places.get(chunk) ?? 0,
          packed(vector),
        );
    });
  }

  remove(chunks: readonly number[]): void {
    this.#database.atomically(() => {
      const about = vectorsAbout(this.#database);
      if (about === undefined) return;
      const sets = new CodeSets(this.#database, about.dimension);
      for (const [number, gone] of Map.groupBy(chunks, (chunk) => this.#setOf(chunk))) {
        if (number === undefined) continue;
        sets.remove(number, new Set(gone));
        for (const chunk of gone) this.#database.run("DELETE FROM vectors WHERE chunk = ?", chunk);
      }
    });
  }

  clear(): void {
    this.#from = 0;
    this.#database.atomically(() => clearVectors(this.#database));
  }

  nearest(vector: Float32Array, limit: number): readonly Near[] {
    const query = unit(vector);
    if (query === undefined || limit < 1) return [];
    return this.#database.consistently(() => {
      if (!this.#ours || query.length !== this.#identity?.dimension) return [];
      return this.#likely(query, limit)
        .flatMap((chunk) => this.#exactly(chunk, query))
        .toSorted((one, other) => other.cosine - one.cosine || one.chunk - other.chunk)
        .slice(0, limit);
    });
  }

  cosines(chunks: readonly number[], vector: Float32Array): readonly Near[] {
    const query = unit(vector);
    if (query === undefined || !this.#ours || query.length !== this.#identity?.dimension) return [];
    const sql = "SELECT v.chunk, v.numbers FROM json_each(?) n CROSS JOIN vectors v ON v.chunk = n.value";
    return this.#database
      .all(sql, JSON.stringify(chunks))
      .map(({ chunk, numbers }) => ({ chunk: Number(chunk), cosine: cosineOf(numbers, query) }));
  }

  missing(limit: number): readonly number[] {
    if (this.#identity === null) return [];
    if (!this.#ours) return this.#without("", 0, limit);
    const none = "AND NOT EXISTS (SELECT 1 FROM vectors WHERE chunk = chunks.number)";
    const further = this.#without(none, this.#from, limit);
    // Another process may have cleared the vectors.
    const numbers = further.length > 0 || this.#from === 0 ? further : this.#without(none, 0, limit);
    this.#from = numbers[0] ?? this.#from;
    return numbers;
  }

  get count(): number {
    const counts = this.#identity === null ? vectorsAbout(this.#database) !== undefined : this.#ours;
    return counts ? Number(this.#database.get("SELECT total(count) AS n FROM vector_codes")?.["n"]) : 0;
  }

  get #ours(): boolean {
    const about = vectorsAbout(this.#database);
    return (
      about !== undefined &&
      about.model === this.#identity?.model &&
      about.dimension === this.#identity.dimension
    );
  }

  #without(none: string, from: number, limit: number): readonly number[] {
    return this.#database
      .all(`SELECT number FROM chunks WHERE number >= ? ${none} ORDER BY number LIMIT ?`, from, limit)
      .map(({ number }) => Number(number));
  }

  #setOf(chunk: number): number | undefined {
    const row = this.#database.get("SELECT codes FROM vectors WHERE chunk = ?", chunk);
    return row === undefined ? undefined : Number(row["codes"]);
  }

  #likely(query: Float32Array, limit: number): readonly number[] {
    const best = new Greatest(Math.max(MIN_EXACT, limit * EXACT_EACH));
    const { chunks, codes } = this.#codes(query.length);
    const scores = codeScores(codes, signSums(query));
    for (let place = 0; place < scores.length; place += 1)
      best.offer(scores[place] as number, chunks[place] as number);
    return best.items().toSorted((one, other) => one - other);
  }

  /** Changes by other processes show in SQLite's `data_version`, those of this process in `total_changes()`. */
  #codes(dimension: number): CodeSet {
    const dataVersion = this.#database.get("PRAGMA data_version")?.["data_version"];
    const own = this.#database.get("SELECT total_changes() AS n")?.["n"];
    const version = `${String(dataVersion)} ${String(own)}`;
    if (this.#loaded?.version !== version)
      this.#loaded = { version, set: new CodeSets(this.#database, dimension).all() };
    return this.#loaded.set;
  }

  #exactly(chunk: number, query: Float32Array): readonly Near[] {
    const bytes = this.#database.get("SELECT numbers FROM vectors WHERE chunk = ?", chunk)?.["numbers"];
    return [{ chunk, cosine: cosineOf(bytes, query) }];
  }
}

function cosineOf(bytes: unknown, query: Float32Array): number {
  const vector = bytes instanceof Uint8Array ? unpacked(bytes, query.length) : undefined;
  if (vector === undefined) throw new DamagedIndex("the vector of a chunk is missing");
  return dot(vector, query);
}

function unitOf(vector: Float32Array, { model, dimension }: VectorIdentity): Float32Array {
  const made = vector.length === dimension ? unit(vector) : undefined;
  if (made !== undefined) return made;
  const what =
    vector.length === dimension ? "an all-zero vector" : `a vector with ${vector.length} dimensions`;
  throw new HarnessError(
    EXIT.model,
    `the index was given ${what}; vectors of ${model} have ${dimension} dimensions`,
    "check that embed_model is a model for embeddings",
  );
}

interface VectorIdentity {
  readonly model: string;
  readonly dimension: number;
}

/**
 * `codes` take a sixteenth of the space of `numbers` and are packed, so that a process with one question need not read
 * the vectors themselves. The codes of a set are in the order of its chunks.
 */
const TABLES = [
  "CREATE TABLE vectors_about (model TEXT NOT NULL, dimension INTEGER NOT NULL) STRICT",
  "CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, codes INTEGER NOT NULL, numbers BLOB NOT NULL) STRICT",
  `CREATE TABLE vector_codes (
    number INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    chunks BLOB NOT NULL,
    codes BLOB NOT NULL
  ) STRICT`,
];

/** The model of the vectors in this database; undefined if there are none. */
function vectorsAbout(database: Connection): VectorIdentity | undefined {
  const there = database.get("SELECT 1 AS yes FROM sqlite_schema WHERE name = 'vectors_about'");
  if (there === undefined) return undefined;
  const row = database.get("SELECT model, dimension FROM vectors_about");
  return row === undefined ? undefined : { model: String(row["model"]), dimension: Number(row["dimension"]) };
}

/** Removes the vectors of another model: they cannot be compared with those of this one. Within a transaction. */
function adoptVectors(database: Connection, { model, dimension }: VectorIdentity): void {
  const about = vectorsAbout(database);
  if (about?.model === model && about.dimension === dimension) return;
  if (about === undefined) for (const table of TABLES) database.run(table);
  else clearVectors(database);
  database.run("DELETE FROM vectors_about");
  database.run("INSERT INTO vectors_about VALUES (?, ?)", model, dimension);
}

function clearVectors(database: Connection): void {
  if (vectorsAbout(database) === undefined) return;
  database.run("DELETE FROM vectors");
  database.run("DELETE FROM vector_codes");
}

/** Keeps the items with the greatest scores. Internally a heap with the smallest score first. */
export class Greatest {
  readonly #limit: number;
  readonly #scores: number[] = [];
  readonly #items: number[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Scores up to this one are not kept. */
  floor = Number.NEGATIVE_INFINITY;

  offer(score: number, item: number): void {
    if (!(score > this.floor)) return;
    if (this.#scores.length < this.#limit) this.#rise(score, item);
    else this.#sink(score, item);
    if (this.#scores.length === this.#limit) this.floor = this.#scores[0] ?? this.floor;
  }

  /** The kept items, in no order. */
  items(): readonly number[] {
    return this.#items;
  }

  #rise(score: number, item: number): void {
    let at = this.#scores.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#scoreAt(above) <= score) break;
      this.#move(above, at);
      at = above;
    }
    this.#set(at, score, item);
  }

  /** Replaces the smallest score. */
  #sink(score: number, item: number): void {
    const size = this.#scores.length;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && this.#scoreAt(below + 1) < this.#scoreAt(below)) below += 1;
      if (this.#scoreAt(below) >= score) break;
      this.#move(below, at);
      at = below;
    }
    this.#set(at, score, item);
  }

  readonly #scoreAt = (at: number): number => this.#scores[at] as number;

  #move(from: number, to: number): void {
    this.#set(to, this.#scoreAt(from), this.#items[from] as number);
  }

  #set(at: number, score: number, item: number): void {
    this.#scores[at] = score;
    this.#items[at] = item;
  }
}
