import type { IndexHit } from "../../core/ports.ts";
import type { Candidate } from "../store.ts";
import type { Chunk } from "../words.ts";
import { shareByEnding } from "./ending.ts";
import { foundByName, lookupIn } from "./lookup.ts";
import { preview } from "./preview.ts";
import { understand } from "./query.ts";
import { bestRegions, type Placed } from "./region.ts";
import { type Asked, worthByPath } from "./signs.ts";
import { Tokenizer } from "./tokens.ts";
import { WEIGHTS, type Weights } from "./weights.ts";
import { why } from "./why.ts";

export interface SearchHit extends IndexHit {
  /** Which words of the query are where, in plain words. */
  readonly why: string;
}

/** Candidates of either store in the order in which they answer, at most so many. */
export function rank(
  candidates: readonly Candidate[],
  text: string,
  limit: number,
  weights = WEIGHTS,
): readonly SearchHit[] {
  const tokenizer = new Tokenizer();
  const query = understand(text, tokenizer, weights);
  const worth = worthOf(candidates, { text, query, tokenizer, weights });
  const ordered = apart(bestRegions(fused(candidates, worth, weights), text), weights.sameFile);
  const lookup = lookupIn(text);
  const placed = lookup === null ? ordered : foundByName(ordered, lookup);
  return placed.slice(0, limit).map(({ chunk, score }) => ({
    path: chunk.path,
    start: chunk.start,
    end: chunk.end,
    symbol: chunk.symbol,
    score: Math.round(score * 1000) / 1000,
    preview: preview(chunk.text, query, tokenizer),
    why: why(chunk, query, tokenizer),
  }));
}

type Worth = (chunk: Chunk) => number;

/** What a chunk's role and its file's signs make of its score. Those that vectors alone have found come last. */
function worthOf(candidates: readonly Candidate[], asked: Asked): Worth {
  const prior = ({ role }: Chunk): number => asked.query.prior[role];
  const ordered = sorted(
    candidates.map(({ chunk, lexical }) => ({ chunk, score: (lexical ?? 0) * prior(chunk) })),
  );
  const signs = worthByPath(
    ordered.map(({ chunk }) => chunk),
    asked,
  );
  const share = shareByEnding(ordered);
  const { language } = asked.weights.signs;
  return (chunk) => prior(chunk) * (signs.get(chunk.path) ?? 1) * language ** share(chunk);
}

/** By words alone the score itself; with vectors the reciprocal ranks, as the two kinds of score do not compare. */
function fused(candidates: readonly Candidate[], worth: Worth, weights: Weights): readonly Placed[] {
  const lexical = inOrder(candidates, ({ lexical, chunk }) => (lexical ?? 0) * worth(chunk));
  const dense = inOrder(candidates, ({ dense, chunk }) => Math.max(0, dense ?? 0) * worth(chunk));
  const best = lexical[0]?.score ?? 0;
  if (dense.length === 0) return lexical.map(({ chunk, score }) => ({ chunk, score: score / best }));
  const sums = new Map<Chunk, number>();
  const { fusion, dense: share } = weights;
  for (const [list, part] of [
    [lexical, 1 / (1 + share)],
    [dense, share / (1 + share)],
  ] as const)
    for (const [place, { chunk }] of list.entries())
      sums.set(chunk, (sums.get(chunk) ?? 0) + (part * (fusion + 1)) / (fusion + 1 + place));
  return sorted([...sums].map(([chunk, score]) => ({ chunk, score })));
}

function inOrder(candidates: readonly Candidate[], score: (one: Candidate) => number): readonly Placed[] {
  return sorted(candidates.map((one) => ({ chunk: one.chunk, score: score(one) }))).filter(
    (one) => one.score > 0,
  );
}

const sorted = (placed: readonly Placed[]): readonly Placed[] =>
  placed.toSorted((a, b) => b.score - a.score || byPlace(a.chunk, b.chunk));

function byPlace(a: Chunk, b: Chunk): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.start - b.start;
}

/** One result for a region, and a file's further regions behind other files' first ones. */
function apart(placed: readonly Placed[], sameFile: number): readonly Placed[] {
  const shown = new Map<string, Chunk[]>();
  const kept: Placed[] = [];
  for (const { chunk, score } of sorted(placed)) {
    const before = shown.get(chunk.path) ?? [];
    if (before.some((other) => sameRegion(other, chunk))) continue;
    shown.set(chunk.path, [...before, chunk]);
    kept.push({ chunk, score: score * sameFile ** before.length });
  }
  return sorted(kept);
}

/** Parts of one definition that was too long for one chunk. */
const sameRegion = (one: Chunk, other: Chunk): boolean =>
  one.symbol !== null &&
  one.symbol === other.symbol &&
  (one.end + 1 === other.start || other.end + 1 === one.start);
