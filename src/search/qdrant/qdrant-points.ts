import { createHash } from "node:crypto";
import { z } from "zod";
import type { Chunk } from "../index-words.ts";
import { parseQuery } from "../rank/ranked-query.ts";
import type { Tokenizer } from "../rank/tokens.ts";
import { WEIGHTS } from "../rank/weights.ts";
import type { StoredFile, StoreIdentity } from "../search-store.ts";

/** Names of the vectors of a point. */
export const DENSE = "dense";
export const WORDS = "words";

/**
 * Another number is another form of what is kept, a change of how texts become words and weights too: files of another
 * form are not held, and so put again.
 */
export const FORM = 2;

export interface Point {
  readonly id: string;
  readonly vector: { [DENSE]?: number[]; [WORDS]?: Sparse };
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The index, and when it was written (milliseconds): a version that is never claimed is debris. */
export interface Stamp {
  readonly index: string;
  readonly written: number;
}

/**
 * Of a file with all that is said of its chunks. A chunk's point names it, and so does the point of the file,
 * together with how many chunks there must be: a file is whole when so many are there, whatever came between.
 */
const versionOf = ({ path, hash, chunks }: StoredFile): string =>
  hexOf(JSON.stringify([path, hash, chunks.map(({ text: _text, ...about }) => about)])).slice(0, 32);

export function filePoint(file: StoredFile, { index, written }: Stamp): Point {
  const { path, hash, chunks } = file;
  const version = versionOf(file);
  // Parts of one long line may be alike, and are one point then.
  const count = new Set(chunks.map(({ id }) => id)).size;
  return {
    id: uuidOf("file", index, path),
    vector: {},
    payload: { what: "file", form: FORM, index, path, version, file_hash: hash, chunks: count, written },
  };
}

/** Without a dense vector; `embed` brings it. */
export function chunkPoints(
  file: StoredFile,
  { index, written }: Stamp,
  tokenizer: Tokenizer,
): readonly Point[] {
  const version = versionOf(file);
  return file.chunks.map((chunk) => {
    const { id, text, ...about } = chunk;
    const sparse = sparseOf(chunk, tokenizer);
    return {
      id,
      vector: sparse === null ? {} : { [WORDS]: sparse },
      payload: { ...about, what: "chunk", index, version, file_hash: file.hash, written, content: text },
    };
  });
}

export const chunkPayload = z.object({
  content: z.string(),
  path: z.string(),
  language: z.string(),
  symbol: z.string().nullish(),
  start: z.int(),
  end: z.int(),
  kind: z.enum(["function", "class", "method", "type", "imports", "code", "section", "text"]),
  hash: z.string(),
  trust: z.enum(["trusted", "untrusted"]),
  role: z.enum(["source", "test", "example", "docs", "vendored", "config"]),
});

export function chunkOf(id: string, payload: z.infer<typeof chunkPayload>): Chunk {
  const { content, symbol, ...about } = payload;
  return { id, text: content, symbol: symbol ?? null, ...about };
}

export const chunkRecord = z
  .object({ id: z.string(), payload: chunkPayload })
  .transform(({ id, payload }) => chunkOf(id, payload));

export const fileRecord = z
  .object({
    payload: z.object({
      form: z.int(),
      path: z.string(),
      file_hash: z.string(),
      version: z.string(),
      chunks: z.int(),
    }),
  })
  .transform(({ payload }) => payload);

/** A sparse vector as Qdrant takes it. The rarity of a word is the server's part: `modifier: idf`. */
interface Sparse {
  readonly indices: number[];
  readonly values: number[];
}

/** The mean length of BM25 is a guess that stays: it only has to be the same for all. */
const MEAN = 120;
/** Once in the path against once in the text. Each chunk of a file has its path, so it counts less than a symbol. */
const PATH = 1;

/** What a chunk weighs by each of its words; null where it has none. */
export function sparseOf(chunk: Chunk, tokenizer: Tokenizer): Sparse | null {
  const { chunkK, chunkB, symbol } = WEIGHTS;
  const text = tokenizer.count(chunk.text);
  let length = 0;
  for (const count of text.values()) length += count;
  const long = chunkK * (1 - chunkB + (chunkB * length) / MEAN);
  const often = new Map(text);
  for (const [words, weight] of [
    [tokenizer.count(chunk.symbol ?? ""), symbol],
    [tokenizer.count(chunk.path), PATH],
  ] as const)
    for (const [word, count] of words) often.set(word, (often.get(word) ?? 0) + weight * count);
  return gathered([...often].map(([word, count]) => [word, (count * (chunkK + 1)) / (count + long)]));
}

/** Null where the query has no word to look for. */
export const sparseQuery = (text: string, tokenizer: Tokenizer): Sparse | null =>
  gathered(parseQuery(text, tokenizer, WEIGHTS).words.map(({ word, weight }) => [word, weight]));

function gathered(weights: readonly (readonly [string, number])[]): Sparse | null {
  if (weights.length === 0) return null;
  const byTerm = new Map<number, number>();
  for (const [word, weight] of weights) byTerm.set(termOf(word), (byTerm.get(termOf(word)) ?? 0) + weight);
  return { indices: [...byTerm.keys()], values: [...byTerm.values()] };
}

/** FNV-1a over UTF-16 units, mixed once more (the end of murmur3), as an unsigned number of 32 bits. */
export function termOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at += 1) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Code and documentation are kept apart: words are rare in other ways in each. */
export const COLLECTION_KINDS = ["code", "docs"] as const;
export type CollectionKind = (typeof COLLECTION_KINDS)[number];

export const collectionName = (shelf: CollectionKind, identity: StoreIdentity): string =>
  `harness-${shelf}-${modelName(identity)}`;

/** By its name a collection is ours, whichever model it was made for. */
export const isOurs = (collection: string): boolean => /^harness-(?:code|docs)-/.test(collection);

/** What the two collections of one identity have in common. */
export const withoutCollection = (collection: string): string =>
  collection.replace(/^harness-(?:code|docs)-/, "");

/** All chunks of a file are on one shelf. */
export const collectionOf = ({ chunks }: StoredFile): CollectionKind =>
  chunks[0]?.role === "docs" || chunks[0]?.kind === "section" ? "docs" : "code";

const MAX_LENGTH = 80;

/** With a digest where the model's name is not all there: two models never share a collection. */
function modelName({ vectors }: StoreIdentity): string {
  if (vectors === null) return "words";
  const plain = vectors.model
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .slice(0, MAX_LENGTH);
  const digest = plain === vectors.model ? "" : `-${hexOf(vectors.model).slice(0, 6)}`;
  return `${plain}${digest}-${vectors.dimension}`;
}

const hexOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A UUID of version 8 (free form) that is the same whenever the parts are. */
function uuidOf(...parts: readonly string[]): string {
  const hex = hexOf(JSON.stringify(parts));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
