import type { Connection } from "../../platform/sqlite-connection.ts";
import { DamagedIndex } from "../index-failure.ts";

/**
 * Codes per set. A batch of new vectors rewrites one set or begins another; this many codes of 768 bits take 52 KB with
 * their chunk numbers.
 */
const SET_SIZE = 512;

export interface CodeSet {
  readonly chunks: Float64Array;
  readonly codes: Uint8Array;
}

/** The codes of all vectors, some hundred in each row. To be called within the caller's transactions. */
export class CodeSets {
  readonly #database: Connection;
  readonly #bytes: number;

  constructor(database: Connection, dimension: number) {
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
export function signSums(query: Float32Array): Float32Array {
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
export function codeScores(codes: Uint8Array, sums: Float32Array): Float32Array {
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
