import type { Role } from "./search-store.ts";

/**
 * Signs of a match beyond a query's single words: a file's score is multiplied by each weight to the power of the
 * file's share of that sign. Fitted one after the other on the histories of sixteen repositories, leaving each out
 * once, and kept if the left-out ones gained; `defined` and `language` on these, on older parts of their histories and
 * on nineteen more. Tried without success: who names whom, a file's tests, other files of its folder, its length, its
 * depth, trees over 74 such figures.
 */
interface Signs {
  /** Words before a colon name a place, and occur in the file's folder. */
  readonly inScope: number;
  /** They occur in the file's name: usually the things inside the place are meant, not its entry file. */
  readonly atScope: number;
  /** Words of the file's name that occur in the query. */
  readonly name: number;
  /** Words that are adjacent in the query and in the file's text; the share is of this many pairs. */
  readonly pairs: number;
  readonly pairsMost: number;
  /** Identifiers spelled out in the query that occur in the file's text. */
  readonly spelled: number;
  /** Such identifiers that the file defines. */
  readonly defined: number;
  /** The share of the file's extension in everything found in source files. */
  readonly language: number;
  /** The texts of this many files are read. */
  readonly files: number;
}

/**
 * Weights of the ranking by words. Found by trying one after the other on the histories of eight repositories, kept if
 * eight others agreed; finally all together, also on older histories and further repositories, each kept if its
 * neighbours do as well. The score of a file is the sum of the scores of its best chunks (BM25), of the whole file
 * (BM25) and of its path, multiplied by the part of the query that it covers and by the weight of its role.
 */
export interface Weights {
  /** Saturation and length parameters of BM25, for chunks and for whole files. */
  readonly chunkK: number;
  readonly chunkB: number;
  readonly fileK: number;
  readonly fileB: number;
  /** How often a word in a symbol counts, compared with one in the text. */
  readonly symbol: number;
  /** What a word in the name of a folder or of the file adds, as a share of its rarity, for each of the two. */
  readonly path: number;
  /** Bonus for a file whose whole name is in the query, as a share of the maximum. */
  readonly named: number;
  /** The weight of the whole file's score beside the scores of its chunks. */
  readonly file: number;
  /** What the second, third … best chunk adds, as a share of the previous one, and how many chunks count. */
  readonly next: number;
  readonly nextMost: number;
  /** The exponent of the covered part; zero disables it. */
  readonly cover: number;
  /** Factor for each further chunk of a file: an answer names many files. */
  readonly sameFile: number;
  /** Weight of words of the first sentence, compared with later ones. */
  readonly firstSentence: number;
  /** What a repetition of a word adds. */
  readonly again: number;
  /** Two adjacent words are also searched as one, with this share: `unique lock` as `uniqueLock`. */
  readonly joined: number;
  /**
   * Weight of words about changes (`add support`), and of such words at the start of a query: they say what, not where.
   */
  readonly change: number;
  readonly opening: number;
  /**
   * How much a file gains for each standard deviation by which its vectors are nearer, as an exponent of e; zero
   * disables vectors.
   */
  readonly dense: number;
  readonly role: Readonly<Record<Role, number>>;
  /** The minimum for a role that the query mentions. A role that it asks for counts fully. */
  readonly mentioned: number;
  /** Weight of source files if the query asks for something else. */
  readonly notAsked: number;
  readonly signs: Signs;
}

export const WEIGHTS: Weights = {
  chunkK: 1.5,
  chunkB: 0.65,
  fileK: 1.2,
  fileB: 0.75,
  symbol: 3,
  path: 1.7,
  named: 0.065,
  file: 0.7,
  next: 0.75,
  nextMost: 4,
  cover: 0.38,
  sameFile: 0.75,
  firstSentence: 2,
  again: 0.3,
  joined: 0.3,
  change: 0.65,
  opening: 0.5,
  dense: 0.15,
  role: { source: 1, config: 0.15, example: 0.3, vendored: 0.1, test: 0.1, docs: 0.05 },
  mentioned: 0.3,
  notAsked: 0.7,
  signs: {
    inScope: 1.65,
    atScope: 0.65,
    name: 1.07,
    pairs: 1.35,
    pairsMost: 4,
    spelled: 1.16,
    defined: 1.7,
    language: 1.7,
    files: 24,
  },
};
