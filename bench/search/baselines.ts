import type { Role } from "../../src/search/search-store.ts";
import { STOP_WORDS } from "../../src/search/tokens.ts";

/** Answers queries with whole files: paths, best first. */
export interface Contestant {
  readonly name: string;
  readonly find: (query: string, limit: number) => readonly string[];
}

export interface Text {
  readonly path: string;
  readonly text: string;
  readonly role: Role;
}

const best = (
  scores: readonly (readonly [path: string, score: number])[],
  limit: number,
): readonly string[] =>
  scores
    .filter(([, score]) => score > 0)
    .toSorted(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
    .slice(0, limit)
    .map(([path]) => path);

const queryWords = (query: string): readonly string[] => [
  ...new Set(
    (query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? []).filter((word) => !STOP_WORDS.has(word)),
  ),
];

/**
 * What a person with ripgrep does: searches the words one by one, ignoring case, anywhere in a line. A file scores the
 * rarity of the words it has; among equal files the one with more matches comes first.
 */
export function byGrep(texts: readonly Text[]): Contestant {
  const lowered = texts.map(({ path, text }) => ({ path, text: text.toLowerCase() }));
  const find = (query: string, limit: number): readonly string[] => {
    const scores = new Float64Array(texts.length);
    for (const word of queryWords(query)) {
      const counts = lowered.map(({ text }) => countOf(text, word));
      const having = counts.filter((count) => count > 0).length;
      const idf = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5));
      for (const [at, count] of counts.entries())
        if (count > 0) scores[at] = (scores[at] ?? 0) + idf + Math.min(count, 1000) * 1e-6;
    }
    return best(
      lowered.map(({ path }, at) => [path, scores[at] ?? 0]),
      limit,
    );
  };
  return { name: "rg-words", find };
}

function countOf(text: string, word: string): number {
  let count = 0;
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) count += 1;
  return count;
}

const K = 1.2;
const B = 0.75;

/** Identifiers, whole and split, without stemming. */
function tokensOf(text: string): readonly string[] {
  const tokens: string[] = [];
  for (const [run] of text.matchAll(/[A-Za-z0-9_]{2,}/g)) {
    const whole = run.toLowerCase();
    tokens.push(whole);
    const parts = run
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
      .replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
      .toLowerCase()
      .split("_");
    if (parts.length > 1) tokens.push(...parts.filter((part) => part.length > 1));
  }
  return tokens;
}

/** BM25 over whole files: the plain list, and the same with source first and roles that were not asked for last. */
export function byBm25(texts: readonly Text[]): readonly Contestant[] {
  const postings = new Map<string, Map<number, number>>();
  const lengths = texts.map(({ text }, at) => {
    const tokens = tokensOf(text);
    for (const token of tokens) {
      let list = postings.get(token);
      if (list === undefined) postings.set(token, (list = new Map<number, number>()));
      list.set(at, (list.get(at) ?? 0) + 1);
    }
    return tokens.length;
  });
  const average = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const ranked = (query: string): readonly (readonly [number, number])[] => {
    const scores = new Map<number, number>();
    for (const word of new Set(tokensOf(query).filter((token) => !STOP_WORDS.has(token)))) {
      const list = postings.get(word) ?? new Map<number, number>();
      const idf = Math.log(1 + (texts.length - list.size + 0.5) / (list.size + 0.5));
      for (const [at, often] of list) {
        const norm = K * (1 - B + (B * (lengths[at] ?? 0)) / average);
        scores.set(at, (scores.get(at) ?? 0) + (idf * often * (K + 1)) / (often + norm));
      }
    }
    return [...scores];
  };
  const pathOf = (at: number): string => texts[at]?.path ?? "";
  const tier = (at: number): number => TIERS[texts[at]?.role ?? "source"];
  return [
    {
      name: "bm25-files",
      find: (query, limit) =>
        best(
          ranked(query).map(([at, score]) => [pathOf(at), score]),
          limit,
        ),
    },
    {
      name: "bm25-files+prior",
      // Any source ranks before any test: a tier outweighs any score.
      find: (query, limit) =>
        best(
          ranked(query).map(([at, score]) => [pathOf(at), score + 1e6 * tier(at)]),
          limit,
        ),
    },
  ];
}

const TIERS: Readonly<Record<Role, number>> = {
  source: 3,
  config: 2,
  example: 2,
  test: 1,
  docs: 1,
  vendored: 1,
};
