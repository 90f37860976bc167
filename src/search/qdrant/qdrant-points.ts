import { createHash } from "node:crypto";
import { z } from "zod";
import type { Chunk } from "../index-words.ts";
import type { StoredFile, StoreIdentity } from "../search-store.ts";

/** The name of a point's vector. */
export const DENSE = "dense";

/** Another number is another form of what is kept: files of another form are not held, and so put again. */
export const FORM = 3;

export interface Point {
  readonly id: string;
  readonly vector: { [DENSE]?: number[] };
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

/** Code and documentation are kept apart: who asks a server about one need not look through the other. */
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
