import type { Role } from "../index-words.ts";

/**
 * What candidates have beyond a query's single words: a file's score is multiplied by each to the power of the share that
 * it has of it. Fitted one after the other on sixteen repositories' histories, each left out once, and kept where those
 * left out gained; `defined` and `language` on these, on older histories of theirs and on nineteen more. What did not
 * hold: who names whom, a file's tests, its folder's other files, its length, its depth, trees over 74 such figures.
 */
interface Signs {
  /** Words before a colon name a place, and are in the file's folder. */
  readonly inScope: number;
  /** They are in its name: what lies in the place is meant more often than its door. */
  readonly atScope: number;
  /** Words of its name that the query has. */
  readonly name: number;
  /** Words side by side in the query and in its text; the share is of so many pairs. */
  readonly pairs: number;
  readonly pairsMost: number;
  /** Identifiers that the query spells out and its text has. */
  readonly spelled: number;
  /** Such identifiers that it defines. */
  readonly defined: number;
  /** What was found in source files of its ending, of all that was found in source. */
  readonly language: number;
  /** The texts of so many files are looked at. */
  readonly files: number;
}

/**
 * What decides an order by words. Found by trying one after the other on eight repositories' histories, kept where eight
 * others agreed; a last time together, on older histories and on further repositories too, each kept where its
 * neighbours do as well. The score of a file is the sum of its best chunks' (BM25), of the whole file's (BM25) and of its
 * path's; then it is multiplied by what part of the query it covers and by what its role is worth.
 */
export interface Weights {
  /** Saturation and length of BM25, for chunks and for whole files. */
  readonly chunkK: number;
  readonly chunkB: number;
  readonly fileK: number;
  readonly fileB: number;
  /** How often a word in a symbol counts against one in the text. */
  readonly symbol: number;
  /** What a word in a folder's or in the file's name adds, as a share of its rarity; each time it is in one. */
  readonly path: number;
  /** What a file adds whose whole name the query says, as a share of all that it could have. */
  readonly named: number;
  /** The share of the whole file's score beside its chunks'. */
  readonly file: number;
  /** What the second, third … best chunk adds, as a share of the one before, and how many count. */
  readonly next: number;
  readonly nextMost: number;
  /** The power of the covered part: nought is without. */
  readonly cover: number;
  /** What a further chunk of a file is worth against the one before it: an answer names many files. */
  readonly sameFile: number;
  /** Words of the first sentence against later ones. */
  readonly firstSentence: number;
  /** What being said again adds. */
  readonly again: number;
  /** Two words side by side are also looked for as one, with this share: `unique lock` is `uniqueLock`. */
  readonly joined: number;
  /** What words of changes are worth (`add support`), and those that a query opens with: they say what, not where. */
  readonly change: number;
  readonly opening: number;
  /** What a file is worth more by vectors for each standard deviation that it is nearer, as a power of e; nought is without. */
  readonly dense: number;
  readonly role: Readonly<Record<Role, number>>;
  /** The least that a role is worth which the query mentions. One that it asks for is worth all. */
  readonly mentioned: number;
  /** What source is worth to a query that asks for something else. */
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
