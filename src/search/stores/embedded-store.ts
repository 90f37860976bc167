import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { SqliteConnection, Row } from "../../platform/sqlite.ts";
import { DamagedIndex, indexFailure } from "../index-folders.ts";
import {
  type ScoredChunk,
  type Chunk,
  type ChunkKind,
  type Role,
  type SearchStore,
  type StoreCounts,
  type StoredFile,
  type StoreQuery,
  type Trust,
  uuidText,
} from "../search-store.ts";
import { namedBy, parseQuery } from "../ranked-query.ts";
import { Tokenizer } from "../tokens.ts";
import { WEIGHTS, type Weights } from "../weights.ts";
import type { VectorTable } from "./embedded-vectors.ts";
import { Lexical } from "./lexical-search.ts";
import {
  dueForMerge,
  type FileWords,
  IN_FOLDER,
  IN_NAME,
  merge,
  readLayout,
  SegmentWriter,
} from "./segments.ts";

export interface EmbeddedParts {
  readonly weights?: Weights;
  /** Default true. Without the texts the store can say which chunks have words, but not return the chunks. */
  readonly texts?: boolean;
}

/** A chunk that contains words of a query. */
interface Ranked {
  readonly id: string;
  readonly lexical: number;
}

/** Holds chunks, postings and, if the index has a model, vectors in one SQLite file. */
export class EmbeddedStore implements SearchStore {
  readonly name = "embedded";
  readonly #database: SqliteConnection;
  /** Describes an error for a person. */
  readonly #failure: (thrown: unknown) => unknown;
  readonly #vectors: VectorTable;
  readonly #writer: FileWriter;
  readonly #weights: Weights;
  readonly #tokenizer = new Tokenizer();
  /** State as of the last known change. */
  #lexical: { readonly version: string; readonly by: Lexical } | undefined;

  constructor(
    database: SqliteConnection,
    folder: string,
    vectors: VectorTable,
    { weights = WEIGHTS, texts = true }: EmbeddedParts = {},
  ) {
    this.#database = database;
    this.#failure = (thrown) => indexFailure(thrown, folder);
    this.#vectors = vectors;
    this.#writer = new FileWriter(database, vectors, this.#tokenizer, texts);
    this.#weights = weights;
  }

  async put(files: readonly StoredFile[], signal: AbortSignal): Promise<void> {
    for (const batch of batchesOf(files)) {
      await this.#write(signal, () => this.#writer.put(batch));
      await this.#write(signal, () => this.#writer.merge());
    }
  }

  remove(paths: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#write(signal, () => this.#writer.remove(paths));
  }

  flush(signal: AbortSignal): Promise<void> {
    return this.#describingFailures(signal, () => this.#database.flush());
  }

  fileHashes(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    return this.#describingFailures(signal, () => {
      const rows = this.#database.all("SELECT path, hash FROM files ORDER BY path");
      return new Map(rows.map(({ path, hash }) => [String(path), String(hash)]));
    });
  }

  unembedded(limit: number, signal: AbortSignal): Promise<readonly Chunk[]> {
    return this.#describingFailures(signal, () =>
      this.#database.consistently(() =>
        readChunks(this.#database, this.#vectors.missing(limit), this.#failure),
      ),
    );
  }

  embed(vectors: ReadonlyMap<string, Float32Array>, signal: AbortSignal): Promise<void> {
    return this.#write(signal, () => {
      const numbered = new Map<number, Float32Array>();
      for (const [id, vector] of vectors) {
        // Identical parts of one long line have the same id.
        for (const { number } of this.#database.all("SELECT number FROM chunks WHERE id = ?", idBytes(id)))
          numbered.set(Number(number), vector);
      }
      this.#vectors.put(numbered);
    });
  }

  candidates(query: StoreQuery, limit: number, signal: AbortSignal): Promise<readonly ScoredChunk[]> {
    return this.#describingFailures(signal, () =>
      this.#database.consistently(() => this.#found(query, limit)),
    );
  }

  counts(signal: AbortSignal): Promise<StoreCounts> {
    return this.#describingFailures(signal, () =>
      this.#database.consistently(() => ({
        files: Number(this.#database.get("SELECT count(*) AS n FROM files")?.["n"]),
        chunks: Number(this.#database.get("SELECT count(*) AS n FROM chunks")?.["n"]),
        embedded: this.#vectors.count,
      })),
    );
  }

  fileCount(signal: AbortSignal): Promise<number> {
    return this.#describingFailures(signal, () =>
      Number(this.#database.get("SELECT count(*) AS n FROM files")?.["n"]),
    );
  }

  /** Nothing to remove: one file holds the vectors of one model. */
  tidy(): Promise<void> {
    return Promise.resolve();
  }

  clear(signal: AbortSignal): Promise<void> {
    return this.#write(signal, () => this.#writer.clear());
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#database[Symbol.dispose]();
    return Promise.resolve();
  }

  /** Ranks chunks by the words of a text, without reading the chunks; best first. */
  ranked(text: string, limit: number, signal: AbortSignal): Promise<readonly Ranked[]> {
    return this.#describingFailures(signal, () =>
      this.#database.consistently(() => {
        const found = this.#byWords(text, limit);
        const ids = readIds(
          this.#database,
          found.map(({ chunk }) => chunk),
        );
        return found.map(({ score }, place) => ({ id: ids[place] ?? "", lexical: score }));
      }),
    );
  }

  #byWords(text: string, limit: number): readonly { readonly chunk: number; readonly score: number }[] {
    return this.#current().best(parseQuery(text, this.#tokenizer, this.#weights), limit);
  }

  #found({ text, vector }: StoreQuery, limit: number): readonly ScoredChunk[] {
    const scores = new Map<number, { lexical: number | null; dense: number | null }>();
    for (const { chunk, score } of this.#byWords(text, limit))
      scores.set(chunk, { lexical: score, dense: null });
    if (vector !== null) {
      const near = this.#vectors.nearest(vector, limit);
      const known = this.#vectors.cosines([...scores.keys()], vector);
      for (const { chunk, cosine } of [...near, ...known])
        scores.set(chunk, { lexical: scores.get(chunk)?.lexical ?? null, dense: cosine });
    }
    const chunks = readChunks(this.#database, [...scores.keys()], this.#failure);
    return [...scores.values()].map((score, place) => ({ chunk: chunks[place] as Chunk, ...score }));
  }

  /** Changes by other processes show in SQLite's `data_version`, those of this process in the segments. */
  #current(): Lexical {
    const dataVersion = this.#database.get("PRAGMA data_version")?.["data_version"];
    const own = this.#database.get(
      "SELECT max(number) AS last, (SELECT count(*) FROM dead) AS dead FROM segments",
    );
    const version = [dataVersion, own?.["last"], own?.["dead"]].join(" ");
    if (this.#lexical?.version === version) return this.#lexical.by;
    const by = new Lexical(this.#database, readLayout(this.#database), this.#weights);
    this.#lexical = { version, by };
    return by;
  }

  #write(signal: AbortSignal, work: () => void): Promise<void> {
    return this.#describingFailures(signal, () => this.#database.atomically(work));
  }

  async #describingFailures<T>(signal: AbortSignal, work: () => T): Promise<T> {
    signal.throwIfAborted();
    try {
      // Lets others have their turn between the steps of a writer.
      await new Promise(setImmediate);
      return work();
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }
}

/** Chunks per transaction, so that a reader and the event loop never wait long. */
const CHUNKS_AT_ONCE = 1000;

/** Groups files in order; each group fills one transaction. */
function* batchesOf(files: readonly StoredFile[]): Generator<readonly StoredFile[]> {
  let batch: StoredFile[] = [];
  let chunks = 0;
  for (const file of files) {
    batch.push(file);
    chunks += file.chunks.length;
    if (chunks < CHUNKS_AT_ONCE) continue;
    yield batch;
    batch = [];
    chunks = 0;
  }
  if (batch.length > 0) yield batch;
}

/** Adds and removes files. Each call must be within a transaction of the store. */
class FileWriter {
  readonly #database: SqliteConnection;
  readonly #vectors: VectorTable;
  readonly #tokenizer: Tokenizer;
  readonly #texts: boolean;

  constructor(database: SqliteConnection, vectors: VectorTable, tokenizer: Tokenizer, texts: boolean) {
    this.#database = database;
    this.#vectors = vectors;
    this.#tokenizer = tokenizer;
    this.#texts = texts;
  }

  /** Writes files as a new segment and replaces what is held for their paths. */
  put(files: readonly StoredFile[]): void {
    const segment = new SegmentWriter();
    for (const file of files) {
      this.#bury(file.path);
      segment.add(wordsOfFile(file, writeFile(this.#database, file, this.#texts), this.#tokenizer));
    }
    const { rowid } = this.#database.run("INSERT INTO segments (layout) VALUES (?)", segment.layout);
    for (const { word, chunks, files } of segment.rows)
      this.#database.run("INSERT INTO postings VALUES (?, ?, ?, ?)", rowid, word, chunks, files);
  }

  remove(paths: readonly string[]): void {
    for (const path of paths) this.#bury(path);
  }

  /** Merges segments until no merge is due, and frees the space of dead files. */
  merge(): void {
    for (;;) {
      const layout = readLayout(this.#database);
      const due = dueForMerge(layout);
      if (due.length === 0) return;
      merge(this.#database, layout, due);
    }
  }

  clear(): void {
    for (const table of ["files", "chunks", "segments", "postings", "dead"])
      this.#database.run(`DELETE FROM ${table}`);
    this.#vectors.clear();
  }

  /** Removes a path; its words stay until their segment is merged. */
  #bury(path: string): void {
    const row = this.#database.get("SELECT number FROM files WHERE path = ?", path);
    if (row === undefined) return;
    const file = Number(row["number"]);
    const chunks = this.#database.all("SELECT number FROM chunks WHERE file = ?", file);
    this.#vectors.remove(chunks.map(({ number }) => Number(number)));
    this.#database.run("DELETE FROM chunks WHERE file = ?", file);
    this.#database.run("DELETE FROM files WHERE number = ?", file);
    this.#database.run("INSERT INTO dead VALUES (?)", file);
  }
}

export function wordsOfFile(file: StoredFile, written: WrittenFile, tokenizer: Tokenizer): FileWords {
  const { folder, name } = namedBy(file.path);
  const names = tokenizer.count(name);
  const path = new Map<string, number>();
  for (const word of tokenizer.count(folder).keys()) path.set(word, IN_FOLDER);
  for (const word of names.keys()) path.set(word, (path.get(word) ?? 0) | IN_NAME);
  return {
    number: written.number,
    role: file.chunks[0]?.role ?? "source",
    path,
    names: names.size,
    chunks: file.chunks.map(({ text, symbol }, place) => ({
      number: written.chunks[place] ?? 0,
      text: tokenizer.count(text),
      symbol: tokenizer.count(symbol ?? ""),
    })),
  };
}

interface WrittenFile {
  readonly number: number;
  /** Numbers of the file's chunks, in order. */
  readonly chunks: readonly number[];
}

/** Writes a file. Its texts are compressed together; each chunk records its position in UTF-16 units. */
function writeFile(database: SqliteConnection, file: StoredFile, keepsTexts: boolean): WrittenFile {
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

const idBytes = (id: string): Uint8Array => Buffer.from(id.replaceAll("-", ""), "hex");

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
function readChunks(
  database: SqliteConnection,
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
function readIds(database: SqliteConnection, numbers: readonly number[]): readonly string[] {
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
  database: SqliteConnection,
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
