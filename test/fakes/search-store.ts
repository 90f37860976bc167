import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { parseQuery } from "../../src/search/ranked-query.ts";
import { Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type {
  ScoredChunk,
  Chunk,
  SearchStore,
  StoredFile,
  StoreIdentity,
  StoreQuery,
} from "../../src/search/search-store.ts";
import { dot } from "../fixtures/vectors.ts";

const WORDS = new Tokenizer();

interface StoreContents {
  readonly files: Map<string, StoredFile>;
  readonly vectors: Map<string, Float32Array>;
}

/** The contents of in-memory stores, which outlive closing them. */
export type SearchMemory = Map<string, StoreContents>;

/** Implements only the port: no limits, no speed; everything ends with the process. */
export function memorySearchStore(memory: SearchMemory, identity: StoreIdentity): SearchStore {
  const key = JSON.stringify(identity);
  const kept: StoreContents = memory.get(key) ?? { files: new Map(), vectors: new Map() };
  memory.set(key, kept);
  const chunks = (): readonly Chunk[] => [...kept.files.values()].flatMap((file) => file.chunks);
  const forget = (): void => {
    const there = new Set(chunks().map(({ id }) => id));
    for (const id of kept.vectors.keys()) if (!there.has(id)) kept.vectors.delete(id);
  };
  return {
    name: "embedded",
    put: (files, signal) =>
      answer(signal, () => {
        for (const file of files) kept.files.set(file.path, file);
        forget();
      }),
    remove: (paths, signal) =>
      answer(signal, () => {
        for (const path of paths) kept.files.delete(path);
        forget();
      }),
    flush: (signal) => answer(signal, () => undefined),
    fileHashes: (signal) =>
      answer(signal, () => new Map([...kept.files.values()].map(({ path, hash }) => [path, hash]))),
    unembedded: (limit, signal) =>
      answer(signal, () =>
        identity.vectors === null
          ? []
          : chunks()
              .filter(({ id }) => !kept.vectors.has(id))
              .slice(0, limit),
      ),
    embed: (vectors, signal) =>
      answer(signal, () => {
        for (const vector of vectors.values()) checked(vector, identity);
        const there = new Set(chunks().map(({ id }) => id));
        for (const [id, vector] of vectors) if (there.has(id)) kept.vectors.set(id, vector);
      }),
    candidates: (query, limit, signal) =>
      answer(signal, () => {
        if (query.vector !== null) checked(query.vector, identity);
        return findCandidates(query, { chunks: chunks(), vectors: kept.vectors, limit });
      }),
    counts: (signal) =>
      answer(signal, () => ({
        files: kept.files.size,
        chunks: chunks().length,
        embedded: kept.vectors.size,
      })),
    fileCount: (signal) => answer(signal, () => kept.files.size),
    tidy: (signal) =>
      answer(signal, () => {
        for (const [other] of memory)
          if (other !== key && (JSON.parse(other) as StoreIdentity).index === identity.index)
            memory.delete(other);
      }),
    clear: (signal) =>
      answer(signal, () => {
        kept.files.clear();
        kept.vectors.clear();
      }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

const answer = <T>(signal: AbortSignal, act: () => T): Promise<T> =>
  new Promise((resolve) => {
    signal.throwIfAborted();
    resolve(act());
  });

function checked(vector: Float32Array, { vectors }: StoreIdentity): void {
  if (vector.length === vectors?.dimension && vector.every(Number.isFinite)) return;
  throw new HarnessError(EXIT.usage, "a vector that does not fit", "Embed it with the model of the index.");
}

interface Among {
  readonly chunks: readonly Chunk[];
  readonly vectors: ReadonlyMap<string, Float32Array>;
  readonly limit: number;
}

function findCandidates(
  { text, vector }: StoreQuery,
  { chunks, vectors, limit }: Among,
): readonly ScoredChunk[] {
  const lexical = best(
    byWords(
      parseQuery(text, WORDS, WEIGHTS).words.map(({ word }) => word),
      chunks,
    ),
    limit,
  );
  const dense = best(vector === null ? [] : byVector(vector, { chunks, vectors, limit }), limit);
  return [...new Set([...lexical, ...dense].map(({ chunk }) => chunk))]
    .toSorted((a, b) => rank(lexical, b) + rank(dense, b) - rank(lexical, a) - rank(dense, a))
    .map((chunk) => ({ chunk, lexical: scoreIn(lexical, chunk), dense: scoreIn(dense, chunk) }));
}

const rank = (list: readonly Scored[], chunk: Chunk): number => {
  const at = list.findIndex((scored) => scored.chunk === chunk);
  return at < 0 ? 0 : 1 / (60 + at);
};

const scoreIn = (list: readonly Scored[], chunk: Chunk): number | null =>
  list.find((scored) => scored.chunk === chunk)?.score ?? null;

interface Scored {
  readonly chunk: Chunk;
  readonly score: number;
}

const best = (scored: readonly Scored[], limit: number): readonly Scored[] =>
  scored.toSorted((one, other) => other.score - one.score).slice(0, limit);

function byWords(words: readonly string[], chunks: readonly Chunk[]): readonly Scored[] {
  const counted = chunks.map((chunk) => WORDS.count(`${chunk.symbol ?? ""} ${chunk.text}`));
  const rarity = new Map(
    words.map((word) => [
      word,
      Math.log(1 + chunks.length / (0.5 + counted.filter((its) => its.has(word)).length)),
    ]),
  );
  const score = (its: ReadonlyMap<string, number>): number => {
    const length = [...its.values()].reduce((sum, count) => sum + count, 0);
    const weigh = (count: number): number => (count * 2.2) / (count + 0.3 + 0.9 * (length / 20));
    return words.reduce((sum, word) => sum + (rarity.get(word) ?? 0) * weigh(its.get(word) ?? 0), 0);
  };
  return chunks
    .map((chunk, at) => ({ chunk, score: score(counted[at] ?? new Map()) }))
    .filter((scored) => scored.score > 0);
}

function byVector(query: Float32Array, { chunks, vectors }: Among): readonly Scored[] {
  return chunks.flatMap((chunk) => {
    const vector = vectors.get(chunk.id);
    if (vector === undefined) return [];
    return [{ chunk, score: dot(query, vector) / Math.sqrt(dot(query, query) * dot(vector, vector)) }];
  });
}
