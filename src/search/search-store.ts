/** Chunks of files, and the port of the stores that hold them. */

/**
 * The role of a file, by its path and content. Tests, examples and vendored code are found too, but rank behind source.
 */
export type Role = "source" | "test" | "example" | "docs" | "vendored" | "config";

export type ChunkKind = "function" | "class" | "method" | "type" | "imports" | "code" | "section" | "text";

/** Whether the user trusts the text of this repository. */
export type Trust = "trusted" | "untrusted";

/** A piece of a file. The pieces of a file are consecutive and cover all of it. */
export interface FilePiece {
  /** First line, from 1. */
  readonly start: number;
  /** Last line, inclusive. */
  readonly end: number;
  readonly kind: ChunkKind;
  /** The qualified name: `Store.close`; for a section its titles: `Install > Linux`. */
  readonly symbol: string | null;
  readonly text: string;
}

/** A piece as a store holds it. */
export interface Chunk extends FilePiece {
  /** A UUID that depends only on index, path, position and text. */
  readonly id: string;
  /** Relative to the workspace. */
  readonly path: string;
  readonly language: string;
  readonly role: Role;
  /** SHA-256 of the text, in hex. */
  readonly hash: string;
  readonly trust: Trust;
}

/** A file with more bytes than this is skipped as huge; readers need not read it. */
export const HUGE_FILE_BYTES = 1 << 20;

/** Why a file has no chunks. */
export type Skip = "binary" | "minified" | "generated" | "lock" | "huge" | "secret" | "unreadable";

export type CutFile =
  | { readonly kind: "cut"; readonly language: string; readonly pieces: readonly FilePiece[] }
  | { readonly kind: "skipped"; readonly why: Skip };

/** Formats 32 hexadecimal digits as a UUID. */
export const uuidText = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");

/** A file with all of its chunks. */
export interface StoredFile {
  readonly path: string;
  /** SHA-256 of the whole content, in hex. */
  readonly hash: string;
  readonly chunks: readonly Chunk[];
}

export interface StoreQuery {
  readonly text: string;
  /** Null: search by words alone. */
  readonly vector: Float32Array | null;
}

/** A chunk that may answer. It has at least one of the scores; scores compare only with others of their kind. */
export interface ScoredChunk {
  readonly chunk: Chunk;
  /** Score by words; greater is better. */
  readonly lexical: number | null;
  /** Cosine of the vectors; null if the chunk or the query has no vector. */
  readonly dense: number | null;
}

export interface StoreCounts {
  readonly files: number;
  readonly chunks: number;
  /** Chunks that have a vector. */
  readonly embedded: number;
}

/** What a server contributes to a ranking that is computed on this machine. */
export interface ServerFacts {
  /** The requested chunks and the nearest by vector. Chunks that are gone are absent. */
  readonly chunks: ReadonlyMap<string, Chunk>;
  /** Cosines of those chunks that have a vector. */
  readonly dense: ReadonlyMap<string, number>;
}

export interface FactsQuery {
  readonly ids: readonly string[];
  readonly vector: Float32Array | null;
}

/** A store that cannot rank by words; `HostRanked` completes it. */
export interface ServerStore extends Omit<SearchStore, "candidates"> {
  /** Facts about these chunks and the `nearest` ones by vector. */
  facts(query: FactsQuery, nearest: number, signal: AbortSignal): Promise<ServerFacts>;
}

/**
 * Holds the chunks of one index. Once `put`, `remove` or `embed` resolves, its changes survive a kill. An interrupted
 * call is applied to each file completely or not at all: `fileHashes` never names a file that lacks a chunk. A failure
 * rejects with a HarnessError that says cause and next step.
 */
export interface SearchStore extends AsyncDisposable {
  readonly name: "embedded" | "qdrant";
  /** Replaces everything that is held for these paths. */
  put(files: readonly StoredFile[], signal: AbortSignal): Promise<void>;
  remove(paths: readonly string[], signal: AbortSignal): Promise<void>;
  /** Makes all resolved changes survive a power cut too. */
  flush(signal: AbortSignal): Promise<void>;
  /** Content hashes by path, for files that are held completely. */
  fileHashes(signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Chunks without a vector, in a stable order, so that paging continues while vectors are added. */
  unembedded(limit: number, signal: AbortSignal): Promise<readonly Chunk[]>;
  /** Adds vectors by chunk id; a vector for a missing chunk is dropped. */
  embed(vectors: ReadonlyMap<string, Float32Array>, signal: AbortSignal): Promise<void>;
  /**
   * At most `limit` chunks by words, best first, each with its cosine, then as many that are nearest by vector. Scores
   * by words are computed on this machine, whatever the store: the same files get the same answers from each.
   */
  candidates(query: StoreQuery, limit: number, signal: AbortSignal): Promise<readonly ScoredChunk[]>;
  counts(signal: AbortSignal): Promise<StoreCounts>;
  /** The file count alone, which costs less than `counts`. */
  fileCount(signal: AbortSignal): Promise<number>;
  /** Removes this index completely, and nothing of others. */
  clear(signal: AbortSignal): Promise<void>;
  /** Removes outdated data of this index alone: vectors of another model, or of none. */
  tidy(signal: AbortSignal): Promise<void>;
}

/** Identifies an index and its vectors; without a model it holds none. */
export interface StoreIdentity {
  /** Letters and digits; stays the same when the workspace moves. */
  readonly index: string;
  readonly vectors: { readonly model: string; readonly dimension: number } | null;
}
