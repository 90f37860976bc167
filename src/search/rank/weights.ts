import type { Role } from "../words.ts";

/** What decides an order by words. Each was chosen on some repositories and kept because it held on others. */
export interface Weights {
  /** Saturation and length of BM25, for chunks and for whole files. */
  readonly chunkK: number;
  readonly chunkB: number;
  readonly fileK: number;
  readonly fileB: number;
  /** How much once in a symbol, or in a path, counts against once in the text. */
  readonly symbol: number;
  readonly path: number;
  /** The share of the whole file's score beside its chunks'. */
  readonly file: number;
  /** What the second, third … best chunk adds, as a share of the one before. */
  readonly next: number;
  readonly firstSentence: number;
  /** The constant of reciprocal ranks, and what the list by vectors weighs beside the one by words. */
  readonly fusion: number;
  readonly dense: number;
  readonly role: Readonly<Record<Role, number>>;
}

export const WEIGHTS: Weights = {
  chunkK: 1.2,
  chunkB: 0.75,
  fileK: 1.2,
  fileB: 0.75,
  symbol: 3,
  path: 3,
  file: 0.5,
  next: 0.5,
  firstSentence: 2,
  fusion: 10,
  dense: 0.3,
  role: { source: 1, config: 0.5, example: 0.3, vendored: 0.1, test: 0.1, docs: 0.05 },
};
