import { Tokenizer } from "../rank/tokens.ts";
import { understand } from "../rank/query.ts";
import { WEIGHTS, type Weights } from "../rank/weights.ts";
import type { Candidate, SearchStore, StoreCounts, StoredFile, StoreQuery } from "../store.ts";
import type { Chunk } from "../words.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { indexFailure } from "../index-failure.ts";
import { readLayout } from "./layout.ts";
import { Lexical } from "./lexical.ts";
import { idBytes, readChunks } from "./rows.ts";
import { batchesOf, FileWriter } from "./file-writer.ts";
import type { VectorSeat } from "./vector-seat.ts";

/** Chunks, postings and, where it has a seat for them, vectors in one SQLite file. */
export class EmbeddedStore implements SearchStore {
  readonly name = "embedded";
  readonly #database: Connection;
  /** What was thrown, in a person's words. */
  readonly #failure: (thrown: unknown) => unknown;
  readonly #vectors: VectorSeat | null;
  readonly #writer: FileWriter;
  readonly #weights: Weights;
  readonly #tokenizer = new Tokenizer();
  /** As of the last change that is known. */
  #lexical: { readonly version: string; readonly by: Lexical } | undefined;

  constructor(database: Connection, folder: string, vectors: VectorSeat | null, weights = WEIGHTS) {
    this.#database = database;
    this.#failure = (thrown) => indexFailure(thrown, folder);
    this.#vectors = vectors;
    this.#writer = new FileWriter(database, vectors, this.#tokenizer);
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
    return this.#told(signal, () => this.#database.flush());
  }

  held(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    return this.#told(signal, () => {
      const rows = this.#database.all("SELECT path, hash FROM files ORDER BY path");
      return new Map(rows.map(({ path, hash }) => [String(path), String(hash)]));
    });
  }

  unembedded(limit: number, signal: AbortSignal): Promise<readonly Chunk[]> {
    return this.#told(signal, () =>
      this.#database.consistently(() =>
        readChunks(this.#database, this.#vectors?.missing(limit) ?? [], this.#failure),
      ),
    );
  }

  embed(vectors: ReadonlyMap<string, Float32Array>, signal: AbortSignal): Promise<void> {
    return this.#write(signal, () => {
      const numbered = new Map<number, Float32Array>();
      for (const [id, vector] of vectors) {
        // Parts of one long line may be alike, and then have one id.
        for (const { number } of this.#database.all("SELECT number FROM chunks WHERE id = ?", idBytes(id)))
          numbered.set(Number(number), vector);
      }
      this.#vectors?.put(numbered);
    });
  }

  candidates(query: StoreQuery, limit: number, signal: AbortSignal): Promise<readonly Candidate[]> {
    return this.#told(signal, () => this.#database.consistently(() => this.#found(query, limit)));
  }

  counts(signal: AbortSignal): Promise<StoreCounts> {
    return this.#told(signal, () =>
      this.#database.consistently(() => ({
        files: Number(this.#database.get("SELECT count(*) AS n FROM files")?.["n"]),
        chunks: Number(this.#database.get("SELECT count(*) AS n FROM chunks")?.["n"]),
        embedded: this.#vectors?.count ?? 0,
      })),
    );
  }

  fileCount(signal: AbortSignal): Promise<number> {
    return this.#told(signal, () => Number(this.#database.get("SELECT count(*) AS n FROM files")?.["n"]));
  }

  /** There is never anything beside it: one file has one model. */
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

  #found({ text, vector }: StoreQuery, limit: number): readonly Candidate[] {
    const scores = new Map<number, { lexical: number | null; dense: number | null }>();
    const query = understand(text, this.#tokenizer, this.#weights);
    for (const { chunk, score } of this.#current().best(query, limit))
      scores.set(chunk, { lexical: score, dense: null });
    for (const { chunk, cosine } of vector === null ? [] : (this.#vectors?.nearest(vector, limit) ?? []))
      scores.set(chunk, { lexical: scores.get(chunk)?.lexical ?? null, dense: cosine });
    const chunks = readChunks(this.#database, [...scores.keys()], this.#failure);
    return [...scores.values()].map((score, place) => ({ chunk: chunks[place] as Chunk, ...score }));
  }

  /** Other processes' changes show in SQLite's own number, this one's in the segments'. */
  #current(): Lexical {
    const seen = this.#database.get("PRAGMA data_version")?.["data_version"];
    const own = this.#database.get(
      "SELECT max(number) AS last, (SELECT count(*) FROM dead) AS dead FROM segments",
    );
    const version = [seen, own?.["last"], own?.["dead"]].join(" ");
    if (this.#lexical?.version === version) return this.#lexical.by;
    const by = new Lexical(this.#database, readLayout(this.#database), this.#weights);
    this.#lexical = { version, by };
    return by;
  }

  #write(signal: AbortSignal, work: () => void): Promise<void> {
    return this.#told(signal, () => this.#database.atomically(work));
  }

  async #told<T>(signal: AbortSignal, work: () => T): Promise<T> {
    signal.throwIfAborted();
    try {
      // A writer's next step lets others have their turn.
      await new Promise(setImmediate);
      return work();
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }
}
