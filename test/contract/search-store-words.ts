import { createHash } from "node:crypto";
import type {
  ScoredChunk,
  Chunk,
  SearchStore,
  ServerStore,
  StoredFile,
  StoreIdentity,
} from "../../src/search/search-store.ts";

export const MODELLED: StoreIdentity = { index: "a1b2c3", vectors: { model: "toy:latest", dimension: 4 } };
export const LEXICAL: StoreIdentity = { index: "a1b2c3", vectors: null };
export const OTHER: StoreIdentity = { ...MODELLED, index: "d4e5f6" };

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** An id as `Chunk.id` promises: it depends on index, path, position and text. */
function idOf(...parts: readonly (string | number)[]): string {
  const hex = sha256(parts.join("\0"));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

type About = Partial<Chunk> & { readonly index?: string };

/** A chunk of one line at this position. */
export function chunk(path: string, line: number, text: string, about: About = {}): Chunk {
  const { index = MODELLED.index, ...rest } = about;
  return {
    id: idOf(index, path, line, text),
    path,
    start: line,
    end: line,
    kind: "code",
    symbol: null,
    text,
    language: "typescript",
    role: "source",
    hash: sha256(text),
    trust: "untrusted",
    ...rest,
  };
}

/** A file with one chunk per line. */
export const file = (path: string, lines: readonly string[], about: About = {}): StoredFile => ({
  path,
  hash: sha256(lines.join("\n")),
  chunks: lines.map((line, index) => chunk(path, index + 1, line, about)),
});

/** A vector along one of the four axes, leaning a little towards the next. */
export function axis(which: number, lean = 0): Float32Array {
  const vector = new Float32Array(4);
  vector[which] = 1;
  vector[(which + 1) % 4] = lean;
  return vector;
}

export const byWords = async (
  store: SearchStore,
  text: string,
  limit = 10,
): Promise<readonly ScoredChunk[]> =>
  store.candidates({ text, vector: null }, limit, new AbortController().signal);

/** The chunks of these files that a server still has. */
export async function chunksOf(
  store: ServerStore,
  files: readonly StoredFile[],
): Promise<ReadonlyMap<string, Chunk>> {
  const ids = files.flatMap(({ chunks }) => chunks).map(({ id }) => id);
  return (await store.facts({ ids, vector: null }, 0, new AbortController().signal)).chunks;
}

export const byVector = async (
  store: SearchStore,
  vector: Float32Array,
  limit = 10,
): Promise<readonly ScoredChunk[]> =>
  store.candidates({ text: "", vector }, limit, new AbortController().signal);

export const textsOf = (candidates: readonly ScoredChunk[]): readonly string[] =>
  candidates.map(({ chunk }) => chunk.text);

/** Candidates with a score by vector, best first by that score. */
export const byCosine = (candidates: readonly ScoredChunk[]): readonly string[] =>
  textsOf(
    candidates
      .filter(({ dense }) => dense !== null)
      .toSorted((one, other) => Number(other.dense) - Number(one.dense)),
  );

/** A word for the number, made of letters that no stemming removes. */
export const wordFor = (number: number): string =>
  `z${Array.from(String(number), (digit) => "bcdfghjklm"[Number(digit)]).join("")}`;
