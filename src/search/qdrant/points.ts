import { z } from "zod";
import type { Tokenizer } from "../rank/tokens.ts";
import type { StoredFile } from "../store.ts";
import type { Chunk } from "../words.ts";
import { hexOf, uuidOf } from "./names.ts";
import { type Sparse, sparseOf } from "./sparse.ts";

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

/** Which index, and when it was written (milliseconds): what nobody claims later is debris. */
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
