import { createHash } from "node:crypto";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { diskTroubleOf, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { Embedder } from "../core/ports.ts";
import { unlessAborted, waitingTimeout } from "../platform/waits.ts";
import { SqliteConnection, privateFile } from "../platform/sqlite.ts";
import { makeFolder } from "../platform/folders.ts";
import { setAside } from "./index-folders.ts";
import type { Chunk } from "./search-store.ts";
import { packVector, unit, unpacked } from "./stores/embedded-vectors.ts";

/** An embedding model: the texts that it is given, what it is asked for, and the cache of its vectors. */

export interface EmbeddingModel {
  /** Provider and full name of the model. Vectors with different ids are never mixed. */
  readonly id: string;
  /** The model's name on its server. */
  readonly name: string;
  readonly embedder: Embedder;
  /** Masks text that leaves this machine; text that stays is not changed. */
  readonly mask: (text: string) => string;
}

/** Secrets are masked before the text is cut: half a secret would not be recognized. */
export const documentText = (
  { name, mask }: EmbeddingModel,
  { path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">,
): string =>
  tasksOf(name).document +
  cardOf({ path: mask(path), symbol: symbol === null ? null : mask(symbol), text: mask(text) });

export const queryText = ({ name, mask }: EmbeddingModel, text: string): string =>
  tasksOf(name).query + questionOf(mask(text));

/** Maximum length of a card in UTF-16 units: about the 2,000 tokens that common models read. */
const MAX_CARD_LENGTH = 6000;
const MAX_QUESTION_LENGTH = 2000;

/** The part of a chunk that a model sees: its path, its symbol, then as much text as fits. */
function cardOf({ path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">): string {
  const head = symbol === null ? path : `${path}\n${symbol}`;
  return cut(`${head}\n\n${text}`, MAX_CARD_LENGTH);
}

const questionOf = (text: string): string => cut(text.trim(), MAX_QUESTION_LENGTH);

const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

/** The prefixes that a model was trained with, by the kind of text. */
interface Tasks {
  readonly document: string;
  readonly query: string;
}

const NONE: Tasks = { document: "", query: "" };

const RETRIEVE = "Represent this sentence for searching relevant passages: ";
const INSTRUCT = "Instruct: Given a question about code, retrieve the code that answers it\nQuery:";

/**
 * Prefixes from the models' own cards. The first row that matches the name counts. Nothing is known about other models,
 * so their texts get no prefix. all-minilm, bge-m3, gte and jina's v2 need none.
 */
const FAMILIES: readonly (readonly [RegExp, Tasks])[] = [
  [/nomic-embed-code/, { document: "", query: "Represent this query for searching relevant code: " }],
  [/nomic-embed/, { document: "search_document: ", query: "search_query: " }],
  [/mxbai-embed/, { document: "", query: RETRIEVE }],
  [/arctic-embed-?(?:l-|m-)?(?:v)?2/, { document: "", query: "query: " }],
  [/arctic-embed/, { document: "", query: RETRIEVE }],
  [/(?:^|[/-])e5-.*instruct/, { document: "", query: `${INSTRUCT} ` }],
  [/(?:^|[/-])e5(?:[-:]|$)/, { document: "passage: ", query: "query: " }],
  [/bge-m3/, NONE],
  [/bge-(?:small|base|large)-en|bge-(?:small|base|large)(?::|$)/, { document: "", query: RETRIEVE }],
  [/qwen3-embedding/, { document: "", query: INSTRUCT }],
  [/embedding-?gemma/, { document: "title: none | text: ", query: "task: code retrieval | query: " }],
];

/** Accepts names as servers spell them, with or without a maker and a tag. */
export function tasksOf(model: string): Tasks {
  const name = model.toLowerCase();
  return FAMILIES.find(([form]) => form.test(name))?.[1] ?? NONE;
}

/** The model's answer, or the reason of the signal once it aborts, even if the embedder ignores the signal. */
export async function vectorsFrom(
  { embedder }: Pick<EmbeddingModel, "embedder">,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  signal.throwIfAborted();
  return unlessAborted(embedder.embed(texts, signal), signal);
}

const REMEDY = "check that embed_model is a model for embeddings";

/**
 * Requires one vector per text, each with `dimension` numbers and a direction; anything else is a failure of the
 * embedder.
 */
export function checkedVectors(
  vectors: readonly Float32Array[],
  texts: number,
  dimension: number,
): readonly Float32Array[] {
  if (vectors.length !== texts)
    throw embeddingError(`the model returned ${vectors.length} vectors for ${texts} texts`);
  for (const vector of vectors) {
    if (vector.length !== dimension)
      throw embeddingError(
        `a vector has ${vector.length} dimensions, but this model's vectors have ${dimension}`,
      );
    if (!vector.every(Number.isFinite))
      throw embeddingError("a vector contains a value that is not a finite number");
    if (vector.every((number) => number === 0)) throw embeddingError("a vector is all zeros");
  }
  return vectors;
}

const embeddingError = (reason: string): HarnessError =>
  new HarnessError(EXIT.model, `embeddings: ${reason}`, REMEDY);

/** Indexing waits this long for the model, which may have to be loaded. */
const PROBE_MS = 60_000;
const PROBE = "search";

/** The length of the model's vectors: known to the cache, or else asked of the model. */
export async function dimensionOf(
  model: EmbeddingModel,
  cache: VectorCache,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const known = cache.dimension(model.id);
  if (known !== undefined) return known;
  const dimension = await probedDimension(model, signal, timeoutMs);
  cache.learn(model.id, dimension);
  return dimension;
}

/** The length of the model's vectors, always asked of the model. */
export async function probedDimension(
  model: EmbeddingModel,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const limit = AbortSignal.any([signal, waitingTimeout(timeoutMs)]);
  const vectors = await vectorsFrom(model, [PROBE], limit);
  const dimension = vectors[0]?.length ?? 0;
  checkedVectors(vectors, 1, dimension);
  return dimension;
}

/** A model that is not in memory is loaded first; a search waits no longer than this. */
const QUESTION_MS = 4000;

interface QuestionOptions {
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

/** The embedding of a question; without a vector the search uses words alone. */
type QueryEmbedding =
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "none"; readonly reason: string };

/** Rejects only on abort. */
export async function queryVector(
  model: EmbeddingModel,
  text: string,
  { dimension, signal, timeoutMs = QUESTION_MS }: QuestionOptions,
): Promise<QueryEmbedding> {
  const late = waitingTimeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  try {
    const vectors = await vectorsFrom(model, [queryText(model, text)], either);
    const [vector] = checkedVectors(vectors, 1, dimension);
    return vector === undefined
      ? { kind: "none", reason: "the model returned no vector" }
      : { kind: "vector", vector };
  } catch (thrown) {
    signal.throwIfAborted();
    const reason = late.aborted ? `${model.name} gave no vector within ${timeoutMs / 1000} s` : whyOf(thrown);
    return { kind: "none", reason };
  }
}

const whyOf = (thrown: unknown): string =>
  thrown instanceof HarnessError && thrown.remedy !== ""
    ? `${thrown.message} (${thrown.remedy})`
    : reasonOf(thrown);

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
        if (made !== undefined)
          connection.run(INSERT, row.number, hashOf(text), this.#now(), packVector(made));
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
  #prune(connection: SqliteConnection): void {
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
  connection: SqliteConnection,
  model: string,
): { readonly number: number; readonly dimension: number } | undefined {
  const row = connection.get("SELECT number, dimension FROM models WHERE name = ?", model);
  return row === undefined
    ? undefined
    : { number: Number(row["number"]), dimension: Number(row["dimension"]) };
}

/** Free pages do not count: they are filled before the file grows. */
function usedBytes(connection: SqliteConnection): number {
  const pragma = (name: string): number => Number(connection.get(`PRAGMA ${name}`)?.[name]);
  return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
}

/** Half of SHA-256: enough to tell any two texts apart. */
const hashOf = (text: string): Uint8Array => createHash("sha256").update(text).digest().subarray(0, 16);

/** A database that nothing depends on: a failure is reported once, and the program goes on without the database. */
class CacheDatabase implements Disposable {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  #connection: SqliteConnection | undefined;
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

  read<T>(work: (connection: SqliteConnection) => T, otherwise: T): T {
    if (this.#connection === undefined) return otherwise;
    try {
      return work(this.#connection);
    } catch (thrown) {
      if (diskTroubleOf(thrown) !== "busy") this.#giveUp(thrown);
      return otherwise;
    }
  }

  /** Runs `work` in one transaction. */
  write(work: (connection: SqliteConnection) => void): void {
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
function openCacheFile(folder: string): SqliteConnection {
  makeFolder(folder);
  const sqlite = new DatabaseSync(privateFile(cacheFileIn(folder)), { timeout: PATIENCE_MS });
  try {
    sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    sqlite.exec(TABLES);
    return new SqliteConnection(sqlite);
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}
