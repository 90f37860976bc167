import type { Connection } from "../../sqlite/connection.ts";
import type { Tokenizer } from "../rank/tokens.ts";
import type { StoredFile } from "../store.ts";
import { readLayout } from "./layout.ts";
import { dueForMerge, merge } from "./merge.ts";
import { writeFile } from "./rows.ts";
import { SegmentWriter } from "./segment.ts";
import type { VectorSeat } from "./vector-seat.ts";
import { wordsOfFile } from "./words-of-file.ts";

/** Chunks of one transaction, so that a reader and the event loop never wait long. */
const CHUNKS_AT_ONCE = 1000;

/** What is put, in the order it came, as many files together as make one transaction. */
export function* batchesOf(files: readonly StoredFile[]): Generator<readonly StoredFile[]> {
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

/** Changes which files are held. Each call within a transaction of the store's. */
export class FileWriter {
  readonly #database: Connection;
  readonly #vectors: VectorSeat | null;
  readonly #tokenizer: Tokenizer;

  constructor(database: Connection, vectors: VectorSeat | null, tokenizer: Tokenizer) {
    this.#database = database;
    this.#vectors = vectors;
    this.#tokenizer = tokenizer;
  }

  /** As a segment of their own, instead of what is held of their paths. */
  put(files: readonly StoredFile[]): void {
    const segment = new SegmentWriter();
    for (const file of files) {
      this.#bury(file.path);
      segment.add(wordsOfFile(file, writeFile(this.#database, file), this.#tokenizer));
    }
    const { rowid } = this.#database.run("INSERT INTO segments (layout) VALUES (?)", segment.layout);
    for (const { word, chunks, files } of segment.rows)
      this.#database.run("INSERT INTO postings VALUES (?, ?, ?, ?)", rowid, word, chunks, files);
  }

  remove(paths: readonly string[]): void {
    for (const path of paths) this.#bury(path);
  }

  /** Has as few segments as there are to be, and gives back what the dead took. */
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
    this.#vectors?.clear();
  }

  /** What is held of a path is gone; its words stay until their segment is merged. */
  #bury(path: string): void {
    const row = this.#database.get("SELECT number FROM files WHERE path = ?", path);
    if (row === undefined) return;
    const file = Number(row["number"]);
    const chunks = this.#database.all("SELECT number FROM chunks WHERE file = ?", file);
    this.#vectors?.remove(chunks.map(({ number }) => Number(number)));
    this.#database.run("DELETE FROM chunks WHERE file = ?", file);
    this.#database.run("DELETE FROM files WHERE number = ?", file);
    this.#database.run("INSERT INTO dead VALUES (?)", file);
  }
}
