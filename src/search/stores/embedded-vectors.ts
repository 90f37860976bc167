import { EXIT, HarnessError } from "../../core/errors.ts";
import type { SqliteConnection } from "../../platform/sqlite.ts";
import { DamagedIndex } from "../index-folders.ts";

/**
 * How many vectors are compared exactly: the minimum, and the number per wanted result. Of 100,000 vectors, the codes
 * let through 98 of the nearest hundred, and a larger share of the nearest ten. Up to the minimum, no vector is passed
 * over.
 */
const MIN_EXACT = 512;
const EXACT_EACH = 8;

interface Near {
  readonly chunk: number;
  readonly cosine: number;
}

/**
 * The vectors of the store's chunks, which are given by number, in the store's database. To be called within the store's
 * transactions; synchronous, like SQLite. Vectors of another model are neither found nor counted; the first new vector
 * replaces them all. Without a model of its own the table only forgets removed chunks.
 */
export class VectorTable {
  readonly #database: SqliteConnection;
  readonly #identity: VectorIdentity | null;
  /** Below this number every chunk has a vector, as long as only this process adds vectors: chunk numbers only grow. */
  #from = 0;
  /** State as of the last known change; rereading it for every question would produce ten times as much garbage. */
  #loaded: { readonly version: string; readonly set: CodeSet } | undefined;

  constructor(database: SqliteConnection, identity: VectorIdentity | null) {
    this.#database = database;
    this.#identity = identity;
  }

  /** Replaces existing vectors. */
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
          packVector(vector),
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

  /** Best first, by cosine. */
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

  /** Cosines for those of these chunks that have a vector. */
  cosines(chunks: readonly number[], vector: Float32Array): readonly Near[] {
    const query = unit(vector);
    if (query === undefined || !this.#ours || query.length !== this.#identity?.dimension) return [];
    const sql = "SELECT v.chunk, v.numbers FROM json_each(?) n CROSS JOIN vectors v ON v.chunk = n.value";
    return this.#database
      .all(sql, JSON.stringify(chunks))
      .map(({ chunk, numbers }) => ({ chunk: Number(chunk), cosine: cosineOf(numbers, query) }));
  }

  /** Chunks without a vector, in order of number; at most `limit`. */
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
  return dotProduct(vector, query);
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
function vectorsAbout(database: SqliteConnection): VectorIdentity | undefined {
  const there = database.get("SELECT 1 AS yes FROM sqlite_schema WHERE name = 'vectors_about'");
  if (there === undefined) return undefined;
  const row = database.get("SELECT model, dimension FROM vectors_about");
  return row === undefined ? undefined : { model: String(row["model"]), dimension: Number(row["dimension"]) };
}

/** Removes the vectors of another model: they cannot be compared with those of this one. Within a transaction. */
function adoptVectors(database: SqliteConnection, { model, dimension }: VectorIdentity): void {
  const about = vectorsAbout(database);
  if (about?.model === model && about.dimension === dimension) return;
  if (about === undefined) for (const table of TABLES) database.run(table);
  else clearVectors(database);
  database.run("DELETE FROM vectors_about");
  database.run("INSERT INTO vectors_about VALUES (?, ?)", model, dimension);
}

function clearVectors(database: SqliteConnection): void {
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

/**
 * Codes per set. A batch of new vectors rewrites one set or begins another; this many codes of 768 bits take 52 KB with
 * their chunk numbers.
 */
const SET_SIZE = 512;

interface CodeSet {
  readonly chunks: Float64Array;
  readonly codes: Uint8Array;
}

/** The codes of all vectors, some hundred in each row. To be called within the caller's transactions. */
class CodeSets {
  readonly #database: SqliteConnection;
  readonly #bytes: number;

  constructor(database: SqliteConnection, dimension: number) {
    this.#database = database;
    this.#bytes = codeBytes(dimension);
  }

  /** All codes in one array. */
  all(): CodeSet {
    const total = this.#database.get("SELECT total(count) AS n FROM vector_codes");
    const chunks = new Float64Array(Number(total?.["n"]));
    const codes = new Uint8Array(chunks.length * this.#bytes);
    const rows = this.#database.each("SELECT chunks, codes FROM vector_codes");
    let at = 0;
    for (let next = rows.next(); next.done !== true; next = rows.next()) {
      const set = this.#read(next.value);
      if (at + set.chunks.length > chunks.length)
        throw new DamagedIndex("there are more codes than were counted");
      chunks.set(set.chunks, at);
      codes.set(set.codes, at * this.#bytes);
      at += set.chunks.length;
    }
    return { chunks: chunks.subarray(0, at), codes: codes.subarray(0, at * this.#bytes) };
  }

  /** Adds vectors. Returns the set number of each chunk. */
  add(vectors: readonly (readonly [chunk: number, vector: Float32Array])[]): ReadonlyMap<number, number> {
    const places = new Map<number, number>();
    let left = vectors;
    while (left.length > 0) {
      const open = this.#open();
      const taken = left.slice(0, SET_SIZE - open.chunks.length);
      const number = this.#grow(open, taken);
      for (const [chunk] of taken) places.set(chunk, number);
      left = left.slice(taken.length);
    }
    return places;
  }

  remove(number: number, gone: ReadonlySet<number>): void {
    const set = this.#set(number);
    const kept = [...set.chunks.keys()].filter((place) => !gone.has(set.chunks[place] as number));
    if (kept.length === 0) {
      this.#database.run("DELETE FROM vector_codes WHERE number = ?", number);
      return;
    }
    const chunks = Float64Array.from(kept, (place) => set.chunks[place] as number);
    const codes = new Uint8Array(kept.length * this.#bytes);
    for (const [to, from] of kept.entries())
      codes.set(set.codes.subarray(from * this.#bytes, (from + 1) * this.#bytes), to * this.#bytes);
    this.#write(number, { chunks, codes });
  }

  /** A set with room; removals make room in older sets. */
  #open(): CodeSet & { readonly number: number } {
    const row = this.#database.get(
      "SELECT number FROM vector_codes WHERE count < ? ORDER BY number DESC LIMIT 1",
      SET_SIZE,
    );
    if (row !== undefined) return { number: Number(row["number"]), ...this.#set(Number(row["number"])) };
    const empty = new Uint8Array();
    const { rowid } = this.#database.run(
      "INSERT INTO vector_codes (count, chunks, codes) VALUES (0, ?, ?)",
      empty,
      empty,
    );
    return { number: rowid, chunks: new Float64Array(), codes: empty };
  }

  #grow(
    open: CodeSet & { readonly number: number },
    added: readonly (readonly [chunk: number, vector: Float32Array])[],
  ): number {
    const before = open.chunks.length;
    const chunks = new Float64Array(before + added.length);
    const codes = new Uint8Array(chunks.length * this.#bytes);
    chunks.set(open.chunks);
    codes.set(open.codes);
    for (const [at, [chunk, vector]] of added.entries()) {
      chunks[before + at] = chunk;
      writeCode(vector, codes, before + at);
    }
    this.#write(open.number, { chunks, codes });
    return open.number;
  }

  #write(number: number, { chunks, codes }: CodeSet): void {
    this.#database.run(
      "UPDATE vector_codes SET count = ?, chunks = ?, codes = ? WHERE number = ?",
      chunks.length,
      new Uint8Array(chunks.buffer),
      codes,
      number,
    );
  }

  #set(number: number): CodeSet {
    const row = this.#database.get("SELECT chunks, codes FROM vector_codes WHERE number = ?", number);
    if (row === undefined) throw new DamagedIndex(`codes ${number} are missing`);
    return this.#read(row);
  }

  #read({ chunks, codes }: Readonly<Record<string, unknown>>): CodeSet {
    if (!(chunks instanceof Uint8Array && codes instanceof Uint8Array))
      throw new DamagedIndex("codes are missing");
    const count = chunks.byteLength / 8;
    if (!Number.isInteger(count) || codes.byteLength !== count * this.#bytes)
      throw new DamagedIndex("the number of codes and the number of chunks differ");
    const aligned = chunks.byteOffset % 8 === 0 ? chunks : chunks.slice();
    return { chunks: new Float64Array(aligned.buffer, aligned.byteOffset, count), codes };
  }
}

/**
 * A code has one bit per number of a vector: whether it is above zero. The query keeps its numbers; the score of a code
 * is their sum, each with the sign given by the code. This orders vectors well enough to choose the few that deserve an
 * exact comparison.
 */

const codeBytes = (dimension: number): number => Math.ceil(dimension / 8);

function writeCode(vector: Float32Array, into: Uint8Array, place: number): void {
  const bytes = codeBytes(vector.length);
  const start = place * bytes;
  into.fill(0, start, start + bytes);
  for (const [at, number] of vector.entries())
    if (number > 0) into[start + (at >> 3)] = (into[start + (at >> 3)] ?? 0) | (1 << (at & 7));
}

/** For each byte of a code and each value of that byte: the sum of the query's eight numbers with those signs. */
function signSums(query: Float32Array): Float32Array {
  const bytes = codeBytes(query.length);
  const sums = new Float32Array(bytes * 256);
  for (let byte = 0; byte < bytes; byte += 1) {
    const eight = query.subarray(byte * 8, byte * 8 + 8);
    sums[byte * 256] = -eight.reduce((sum, number) => sum + number, 0);
    for (let value = 1; value < 256; value += 1) {
      const lowest = 31 - Math.clz32(value & -value);
      sums[byte * 256 + value] = (sums[byte * 256 + (value & (value - 1))] ?? 0) + 2 * (eight[lowest] ?? 0);
    }
  }
  return sums;
}

/** The score of every code. */
function codeScores(codes: Uint8Array, sums: Float32Array): Float32Array {
  const bytes = sums.length >> 8;
  const scores = new Float32Array(codes.length / bytes);
  for (let place = 0, at = 0; place < scores.length; place += 1) {
    let score = 0;
    for (let row = 0; row < sums.length; row += 256, at += 1)
      score += sums[row + (codes[at] as number)] as number;
    scores[place] = score;
  }
  return scores;
}

/**
 * Vectors are stored with length one, as 16-bit floats. A cosine is then off by less than 0.0002. 8-bit integers would
 * be off by up to 0.003 if a few numbers of a model's vectors are far larger than the others, which is usual, and that
 * costs a few of a hundred places among the first ten.
 */

/** Scales a vector to length one; undefined if it has no direction. */
export function unit(vector: Float32Array): Float32Array | undefined {
  const length = largest(vector);
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  // Scaled first: squares of very small or very large numbers leave the range.
  const scaled = vector.map((number) => number / length);
  const norm = Math.sqrt(dotProduct(scaled, scaled));
  return scaled.map((number) => number / norm);
}

function largest(vector: Float32Array): number {
  let most = 0;
  for (const number of vector) {
    if (!Number.isFinite(number)) return Number.NaN;
    most = Math.max(most, Math.abs(number));
  }
  return most;
}

export function dotProduct(one: Float32Array | Float16Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < other.length; at += 1) sum += (one[at] as number) * (other[at] as number);
  return sum;
}

export const packVector = (vector: Float32Array): Uint8Array =>
  new Uint8Array(new Float16Array(vector).buffer);

/** Undefined if the bytes do not hold `dimension` numbers. */
export function unpacked(bytes: Uint8Array, dimension: number): Float16Array | undefined {
  if (bytes.byteLength !== dimension * 2) return undefined;
  const whole = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Float16Array(whole.buffer, whole.byteOffset, dimension);
}
