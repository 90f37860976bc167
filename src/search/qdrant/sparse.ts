import type { Chunk } from "../words.ts";
import { understand } from "../rank/query.ts";
import type { Tokenizer } from "../rank/tokens.ts";
import { WEIGHTS } from "../rank/weights.ts";

/** A sparse vector as Qdrant takes it. The rarity of a word is the server's part: `modifier: idf`. */
export interface Sparse {
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
  gathered(understand(text, tokenizer, WEIGHTS).words.map(({ word, weight }) => [word, weight]));

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
