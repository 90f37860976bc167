import { createHash } from "node:crypto";
import { z } from "zod";
import type { Chunk } from "../index-words.ts";
import type { StoredFile, StoreIdentity } from "../search-store.ts";

/** The name of a point's vector. */
export const DENSE = "dense";

/** The format number. Files in another format do not count as held, so they are written again. */
export const FORM = 3;

export interface Point {
  readonly id: string;
  readonly vector: { [DENSE]?: number[] };
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The index and the time of writing in milliseconds: a version that no file claims for long is debris. */
export interface Stamp {
  readonly index: string;
  readonly written: number;
}

/**
 * A digest of a file and of everything stored about its chunks. Each chunk's point carries the version, and so does the
 * file's point, together with the number of chunks: a file is complete when that many chunks exist, even after an
 * interruption.
 */
const versionOf = ({ path, hash, chunks }: StoredFile): string =>
  hexOf(JSON.stringify([path, hash, chunks.map(({ text: _text, ...about }) => about)])).slice(0, 32);

export function filePoint(file: StoredFile, { index, written }: Stamp): Point {
  const { path, hash, chunks } = file;
  const version = versionOf(file);
  // Identical parts of one long line become one point.
  const count = new Set(chunks.map(({ id }) => id)).size;
  return {
    id: uuidOf("file", index, path),
    vector: {},
    payload: { what: "file", form: FORM, index, path, version, file_hash: hash, chunks: count, written },
  };
}

/** Points without a vector; `embed` adds it. */
export function chunkPoints(file: StoredFile, { index, written }: Stamp): readonly Point[] {
  const version = versionOf(file);
  return file.chunks.map((chunk) => {
    const { id, text, ...about } = chunk;
    return {
      id,
      vector: {},
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

/** Code and documentation are kept apart, so that a question about one need not search the other. */
export const COLLECTION_KINDS = ["code", "docs"] as const;
export type CollectionKind = (typeof COLLECTION_KINDS)[number];

export const collectionName = (shelf: CollectionKind, identity: StoreIdentity): string =>
  `harness-${shelf}-${modelName(identity)}`;

/** Whether a collection is ours, judged by its name, for whichever model it was made. */
export const isOurs = (collection: string): boolean => /^harness-(?:code|docs)-/.test(collection);

/** The part of the name that the two collections of one identity share. */
export const withoutCollection = (collection: string): string =>
  collection.replace(/^harness-(?:code|docs)-/, "");

/** The collection of a file; all its chunks are in the same one. */
export const collectionOf = ({ chunks }: StoredFile): CollectionKind =>
  chunks[0]?.role === "docs" || chunks[0]?.kind === "section" ? "docs" : "code";

const MAX_LENGTH = 80;

/** Adds a digest if the model's name was altered: two models never share a collection. */
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
