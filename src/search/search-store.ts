import type { Chunk } from "./index-words.ts";

/** A file with all of its chunks. */
export interface StoredFile {
  readonly path: string;
  /** SHA-256 of the whole content, in hex. */
  readonly hash: string;
  readonly chunks: readonly Chunk[];
}

export interface StoreQuery {
  readonly text: string;
  /** Null: by words alone. */
  readonly vector: Float32Array | null;
}

/** A chunk that may answer. At least one of the scores is there; each only compares with its own kind. */
export interface Candidate {
  readonly chunk: Chunk;
  /** By words; greater is better. */
  readonly lexical: number | null;
  /** Cosine of the vectors; null where the chunk has none, or the query. */
  readonly dense: number | null;
}

export interface StoreCounts {
  readonly files: number;
  readonly chunks: number;
  /** Chunks that have a vector. */
  readonly embedded: number;
}

/** What a server tells for an order that is made here. */
export interface Facts {
  /** Of the ids that were asked for, and of the nearest by vector. What is gone by now is not there. */
  readonly chunks: ReadonlyMap<string, Chunk>;
  /** Cosines of those of them that have a vector. */
  readonly dense: ReadonlyMap<string, number>;
}

export interface FactsQuery {
  readonly ids: readonly string[];
  readonly vector: Float32Array | null;
}

/** A store that orders nothing by words: `HostRanked` makes a whole one of it. */
export interface ServerStore extends Omit<SearchStore, "candidates"> {
  /** Of these chunks, and of as many as `nearest` says that are nearest to the vector. */
  facts(query: FactsQuery, nearest: number, signal: AbortSignal): Promise<Facts>;
}

/**
 * Where the chunks of one index are. What `put`, `remove` and `embed` have resolved for outlasts a kill; what they were
 * broken off in is whole or not at all, file by file: `held` never names a file of which a chunk is missing.
 * A failure rejects with a HarnessError that says cause and next step.
 */
export interface SearchStore extends AsyncDisposable {
  readonly name: "embedded" | "qdrant";
  /** Instead of all that is held of these paths. */
  put(files: readonly StoredFile[], signal: AbortSignal): Promise<void>;
  remove(paths: readonly string[], signal: AbortSignal): Promise<void>;
  /** What has been resolved for until now outlasts a power cut, too. */
  flush(signal: AbortSignal): Promise<void>;
  /** Content hashes by path, of files that are held whole. */
  held(signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Chunks without a vector, in a stable order, so that paging continues while vectors are added. */
  unembedded(limit: number, signal: AbortSignal): Promise<readonly Chunk[]>;
  /** Vectors of chunks by id; of one that is gone by now nothing is kept. */
  embed(vectors: ReadonlyMap<string, Float32Array>, signal: AbortSignal): Promise<void>;
  /**
   * At most `limit` by words, best first, each with its cosine, then as many that are nearest by vector. The scores by
   * words are made on this machine, whatever the store: the same files answer alike in each.
   */
  candidates(query: StoreQuery, limit: number, signal: AbortSignal): Promise<readonly Candidate[]>;
  counts(signal: AbortSignal): Promise<StoreCounts>;
  /** The files of `counts` alone, which is less to ask. */
  fileCount(signal: AbortSignal): Promise<number>;
  /** All of this index, and nothing of others. */
  clear(signal: AbortSignal): Promise<void>;
  /** Older data of this index alone: vectors of another model, or none. */
  tidy(signal: AbortSignal): Promise<void>;
}

/** Which index, and what its vectors are; without a model it holds none. */
export interface StoreIdentity {
  /** Of letters and digits; it stays when the workspace moves. */
  readonly index: string;
  readonly vectors: { readonly model: string; readonly dimension: number } | null;
}
