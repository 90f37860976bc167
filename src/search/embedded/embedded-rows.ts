import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Connection, Row } from "../../platform/sqlite-connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { type Chunk, type ChunkKind, type Role, type Trust, uuidText } from "../index-words.ts";
import type { StoredFile } from "../search-store.ts";

export interface WrittenFile {
  readonly number: number;
  /** Numbers of the file's chunks, in order. */
  readonly chunks: readonly number[];
}

/** Writes a file. Its texts are compressed together; each chunk records its position in UTF-16 units. */
export function writeFile(database: Connection, file: StoredFile, keepsTexts: boolean): WrittenFile {
  const texts = keepsTexts
    ? zstdCompressSync(file.chunks.map(({ text }) => text).join(""))
    : new Uint8Array();
  const { rowid: number } = database.run(
    "INSERT INTO files (path, hash, texts) VALUES (?, ?, ?)",
    file.path,
    file.hash,
    texts,
  );
  let from = 0;
  const chunks = file.chunks.map((chunk) => {
    const { rowid } = database.run(
      `INSERT INTO chunks (id, file, start, "end", kind, symbol, language, role, hash, trust, at, length)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      idBytes(chunk.id),
      number,
      chunk.start,
      chunk.end,
      chunk.kind,
      chunk.symbol,
      chunk.language,
      chunk.role,
      Buffer.from(chunk.hash, "hex"),
      chunk.trust,
      from,
      chunk.text.length,
    );
    from += chunk.text.length;
    return rowid;
  });
  return { number, chunks };
}

export const idBytes = (id: string): Uint8Array => Buffer.from(id.replaceAll("-", ""), "hex");

function hexOf(bytes: unknown): string {
  if (!(bytes instanceof Uint8Array)) throw new DamagedIndex("bytes are missing");
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

interface ReadFile {
  readonly path: string;
  readonly text: () => string;
}

/**
 * Reads chunks by their numbers, in that order. A text is decompressed on first use, once for all chunks of its file;
 * `failure` converts errors at that point.
 */
export function readChunks(
  database: Connection,
  numbers: readonly number[],
  failure: (thrown: unknown) => unknown,
): readonly Chunk[] {
  const rows = new Map<number, Row>();
  for (const row of database.all(
    "SELECT c.* FROM json_each(?) n CROSS JOIN chunks c ON c.number = n.value",
    JSON.stringify(numbers),
  ))
    rows.set(Number(row["number"]), row);
  const files = readFiles(database, new Set([...rows.values()].map(({ file }) => Number(file))), failure);
  return numbers.map((number) => {
    const row = rows.get(number);
    const file = files.get(Number(row?.["file"]));
    if (row === undefined || file === undefined) throw new DamagedIndex(`chunk ${number} is missing`);
    return chunkOf(row, file);
  });
}

/** Ids of chunks by their numbers, in that order. */
export function readIds(database: Connection, numbers: readonly number[]): readonly string[] {
  const sql = "SELECT c.number, c.id FROM json_each(?) n CROSS JOIN chunks c ON c.number = n.value";
  const rows = database.all(sql, JSON.stringify(numbers));
  const ids = new Map(rows.map(({ number, id }) => [Number(number), uuidText(hexOf(id))]));
  return numbers.map((number) => {
    const id = ids.get(number);
    if (id === undefined) throw new DamagedIndex(`chunk ${number} is missing`);
    return id;
  });
}

function readFiles(
  database: Connection,
  numbers: ReadonlySet<number>,
  failure: (thrown: unknown) => unknown,
): ReadonlyMap<number, ReadFile> {
  const rows = database.all(
    "SELECT f.number, f.path, f.texts FROM json_each(?) n CROSS JOIN files f ON f.number = n.value",
    JSON.stringify([...numbers]),
  );
  return new Map(
    rows.map((row) => [Number(row["number"]), { path: String(row["path"]), text: expanded(row, failure) }]),
  );
}

function chunkOf(row: Row, { path, text }: ReadFile): Chunk {
  const from = Number(row["at"]);
  const to = from + Number(row["length"]);
  return {
    id: uuidText(hexOf(row["id"])),
    path,
    start: Number(row["start"]),
    end: Number(row["end"]),
    kind: String(row["kind"]) as ChunkKind,
    symbol: typeof row["symbol"] === "string" ? row["symbol"] : null,
    language: String(row["language"]),
    role: String(row["role"]) as Role,
    hash: hexOf(row["hash"]),
    trust: String(row["trust"]) as Trust,
    get text() {
      return text().slice(from, to);
    },
  };
}

function expanded({ texts }: Row, failure: (thrown: unknown) => unknown): () => string {
  let text: string | undefined;
  return () => {
    if (text !== undefined) return text;
    try {
      if (!(texts instanceof Uint8Array)) throw new DamagedIndex("a text is missing");
      text = zstdDecompressSync(texts).toString("utf8");
      return text;
    } catch (thrown) {
      throw failure(thrown);
    }
  };
}

export interface Near {
  readonly chunk: number;
  readonly cosine: number;
}

/**
 * The vectors in the store's database. Chunks are given by number. To be called within the store's transactions;
 * synchronous, like SQLite.
 */
export interface VectorColumn {
  /** Replaces existing vectors. */
  put(vectors: ReadonlyMap<number, Float32Array>): void;
  remove(chunks: readonly number[]): void;
  clear(): void;
  /** Best first, by cosine. */
  nearest(vector: Float32Array, limit: number): readonly Near[];
  /** Cosines for those of these chunks that have a vector. */
  cosines(chunks: readonly number[], vector: Float32Array): readonly Near[];
  /** Chunks without a vector, in order of number; at most `limit`. */
  missing(limit: number): readonly number[];
  readonly count: number;
}
