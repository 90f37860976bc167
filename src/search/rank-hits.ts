import { isInside } from "../core/file-names.ts";
import type { IndexHit } from "../core/ports.ts";
import { truncate, firstOf } from "../core/wording.ts";
import {
  bestRegions,
  foundByName,
  lookupIn,
  namedBy,
  type Pair,
  parseQuery,
  type Placed,
  type Query,
  type RequestWords,
  restOfRequest,
} from "./ranked-query.ts";
import { secondLook } from "./second-look.ts";
import { WEIGHTS, type Weights } from "./weights.ts";
import type { ScoredChunk, Chunk, SearchStore } from "./search-store.ts";
import { Tokenizer } from "./tokens.ts";

/** Candidates per hit: several may come from the same file. */
const PER_HIT = 10;
const MIN_COUNT = 100;
/** A query for one definition needs more: many other chunks may use the name. */
const MIN_BY_NAME = 1000;
/** Candidates when only a folder is searched: stores rank the whole index. */
const MAX_BELOW = 5000;

interface IndexQuestion {
  readonly text: string;
  /** Null: search by words alone. */
  readonly vector: Float32Array | null;
  /** Weight of vectors beside words; the usual weight if absent. */
  readonly weight?: number;
  readonly limit: number;
  /** Restricts the search to this folder or file. */
  readonly below?: string | null;
}

/** The best places for a query, best first. */
export async function answersIn(
  store: SearchStore,
  { text, vector, weight, limit, below = null }: IndexQuestion,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  const least = lookupIn(text) === null ? MIN_COUNT : MIN_BY_NAME;
  const most = below === null ? Math.max(least, limit * PER_HIT) : MAX_BELOW;
  const found = await store.candidates({ text, vector }, most, signal);
  const inScope = found.filter(({ chunk }) => below === null || isInside(below, chunk.path));
  return rank(inScope, text, limit, weight === undefined ? WEIGHTS : { ...WEIGHTS, dense: weight });
}

export interface SearchHit extends IndexHit {
  /** Says in plain words where the words of the query were found. */
  readonly why: string;
}

/** Ranks the candidates of either store; returns at most `limit` hits. */
export function rank(
  candidates: readonly ScoredChunk[],
  text: string,
  limit: number,
  weights = WEIGHTS,
): readonly SearchHit[] {
  const tokenizer = new Tokenizer();
  const query = parseQuery(text, tokenizer, weights);
  const worth = chunkFactor(candidates, { text, query, tokenizer, weights });
  const ordered = onePerRegion(
    bestRegions(rankedWithVectors(candidates, worth, weights), text),
    weights.sameFile,
  );
  const lookup = lookupIn(text);
  const placed = lookup === null ? ordered : foundByName(ordered, lookup);
  return placed.slice(0, limit).map(({ chunk, score }) => ({
    path: chunk.path,
    start: chunk.start,
    end: chunk.end,
    symbol: chunk.symbol,
    score: Math.round(score * 1000) / 1000,
    preview: preview(chunk.text, query, tokenizer),
    why: matchedPlaces(chunk, query, tokenizer),
  }));
}

type ChunkFactor = (chunk: Chunk) => number;

/** The factor for a chunk's role and its file's signs. Chunks found by vectors alone come last. */
function chunkFactor(candidates: readonly ScoredChunk[], input: RankingInput): ChunkFactor {
  const prior = ({ role }: Chunk): number => input.query.prior[role];
  const ordered = sorted(
    candidates.map(({ chunk, lexical }) => ({ chunk, score: (lexical ?? 0) * prior(chunk) })),
  );
  const signs = factorsByPath(
    ordered.map(({ chunk }) => chunk),
    input,
  );
  const share = shareByEnding(ordered);
  const { language } = input.weights.signs;
  return (chunk) => prior(chunk) * (signs.get(chunk.path) ?? 1) * language ** share(chunk);
}

/**
 * Ranks by words. Vectors are a second look at the files that words rank best: the nearer a file is to the question
 * than the others, the more its score gains. Chunks found by vectors alone come after all that words have found.
 */
function rankedWithVectors(
  candidates: readonly ScoredChunk[],
  worth: ChunkFactor,
  weights: Weights,
): readonly Placed[] {
  const lexical = inOrder(candidates, ({ lexical, chunk }) => (lexical ?? 0) * worth(chunk));
  if (lexical.length > 0 && weights.dense === 0) return scaledToOne(lexical);
  const dense = inOrder(candidates, ({ dense, chunk }) => Math.max(0, dense ?? 0) * worth(chunk));
  const looks = secondLook(lexical, candidates);
  const looked = scaledToOne(
    lexical.map(({ chunk, score }) => ({
      chunk,
      score: score * Math.exp(weights.dense * (looks.get(chunk.path) ?? 0)),
    })),
  );
  const least = looked.at(-1)?.score ?? 1;
  const found = new Set(lexical.map(({ chunk }) => chunk));
  const behind = scaledToOne(dense.filter(({ chunk }) => !found.has(chunk)));
  if (looked.length === 0) return behind;
  return [
    ...looked,
    ...behind.map(({ chunk, score }) => ({ chunk, score: least * score * VECTORS_ONLY_FACTOR })),
  ];
}

/** Sorted, with the best score scaled to 1. */
function scaledToOne(placed: readonly Placed[]): readonly Placed[] {
  const ordered = sorted(placed);
  const best = ordered[0]?.score ?? 1;
  return ordered.map(({ chunk, score }) => ({ chunk, score: score / best }));
}

const VECTORS_ONLY_FACTOR = 0.5;
function inOrder(candidates: readonly ScoredChunk[], score: (one: ScoredChunk) => number): readonly Placed[] {
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

/** Keeps one result per region, and ranks further regions of a file below the first ones of other files. */
function onePerRegion(placed: readonly Placed[], sameFile: number): readonly Placed[] {
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

/** Adjacent parts of one definition that was too long for one chunk. */
const sameRegion = (one: Chunk, other: Chunk): boolean =>
  one.symbol !== null &&
  one.symbol === other.symbol &&
  (one.end + 1 === other.start || other.end + 1 === one.start);

/**
 * For a file extension: its share of the scores of all source files found. Scripts, headers and style sheets contain
 * the words of a query too; the answer is more often in the language of most files found.
 */
export function shareByEnding(found: readonly Placed[]): (chunk: Chunk) => number {
  const best = new Map<string, Placed>();
  for (const one of found) {
    const known = best.get(one.chunk.path);
    if (one.chunk.role === "source" && (known === undefined || known.score < one.score))
      best.set(one.chunk.path, one);
  }
  const sums = new Map<string, number>();
  let all = 0;
  for (const [path, { score }] of best) {
    const ending = endingOf(path);
    sums.set(ending, (sums.get(ending) ?? 0) + score);
    all += score;
  }
  return ({ path, role }) => (role === "source" && all > 0 ? (sums.get(endingOf(path)) ?? 0) / all : 0);
}

/**
 * Programs without an extension are mostly shell scripts, which have several extensions: `bin/deploy` counts with
 * `lib/log.bash`.
 */
const SHELL = new Set(["", "sh", "bash", "zsh", "bats"]);

function endingOf(path: string): string {
  const ending = /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return SHELL.has(ending) ? "sh" : ending;
}

const MAX_NAMED = 8;

/** Where the words of the query are: each is named once, at the most telling place. */
export function matchedPlaces(chunk: Chunk, query: Query, tokenizer: Tokenizer): string {
  const wanted = new Set(query.words.map(({ word }) => word));
  const places = [
    ["name", tokenizer.found(chunk.symbol ?? "", wanted)],
    ["path", tokenizer.found(chunk.path, wanted)],
    ["text", tokenizer.found(chunk.text, wanted)],
  ] as const;
  const named = new Map<string, string>();
  const found = { name: new Set<string>(), path: new Set<string>(), text: new Set<string>() };
  for (const { word, original: written } of query.words) {
    const place = places.find(([, words]) => words.has(word))?.[0];
    if (place === undefined || named.has(written)) continue;
    named.set(written, place);
    found[place].add(written);
  }
  const parts = (["name", "path", "text"] as const)
    .filter((place) => found[place].size > 0)
    .map((place) => `${place}: ${firstOf([...found[place]], MAX_NAMED)}`);
  return parts.length === 0 ? "near in meaning" : parts.join("; ");
}

const PREVIEW_LINES = 10;
const MAX_LINE_LENGTH = 240;

/** Lines shown above the first line with a word, if there is room. */
const LEAD_LINES = 2;

/** The lines of the text that contain most of the query's words; does not begin with an empty line. */
export function preview(text: string, query: Query, tokenizer: Tokenizer): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const best = lines.length <= PREVIEW_LINES ? 0 : bestWindow(lines, query, tokenizer);
  const from = lines.findIndex((line, at) => at >= best && line.trim() !== "");
  return lines
    .slice(Math.max(from, 0), Math.max(from, 0) + PREVIEW_LINES)
    .map((line) => truncate(line, MAX_LINE_LENGTH))
    .join("\n");
}

function bestWindow(lines: readonly string[], query: Query, tokenizer: Tokenizer): number {
  const wanted = new Map(query.words.map(({ word, weight }) => [word, weight]));
  const has = lines.map((line) => [...tokenizer.found(line, wanted)]);
  const scores = Array.from({ length: lines.length - PREVIEW_LINES + 1 }, (_, from) => {
    const seen = has.slice(from, from + PREVIEW_LINES).flat();
    return [...new Set(seen)].reduce((sum, word) => sum + (wanted.get(word) ?? 0), seen.length * 0.1);
  });
  const most = scores.reduce((one, other) => Math.max(one, other), 0);
  const first = scores.indexOf(most);
  const others = scores.findIndex((score, from) => from > first && score < most);
  const last = others === -1 ? scores.length - 1 : others - 1;
  return most === 0 ? 0 : Math.max(first, last - LEAD_LINES);
}

interface RankingInput {
  readonly text: string;
  readonly query: Query;
  readonly tokenizer: Tokenizer;
  readonly weights: Weights;
}

/** Factors for each file beyond its words, by path. Chunks come best first: the texts of the first files are read. */
function factorsByPath(chunks: readonly Chunk[], input: RankingInput): ReadonlyMap<string, number> {
  const { text, tokenizer, weights } = input;
  const request = restOfRequest(text, tokenizer);
  const byName = nameFactor(request, input);
  const worth = new Map<string, number>();
  for (const [path, ofFile] of Map.groupBy(chunks, (chunk) => chunk.path)) {
    const read = worth.size < weights.signs.files;
    worth.set(path, byName(path) * (read ? textFactor(ofFile, request, weights) : 1));
  }
  return worth;
}

function nameFactor(
  { scope }: RequestWords,
  { query, tokenizer, weights }: RankingInput,
): (path: string) => number {
  const { inScope, atScope, name: named } = weights.signs;
  const queryWords = new Set(query.words.map(({ word }) => word));
  return (path) => {
    const { folder, name } = namedBy(path);
    const names = [...tokenizer.count(name).keys()];
    const worth = named ** share(names, queryWords);
    if (scope.length === 0) return worth;
    const folders = new Set(tokenizer.count(folder).keys());
    return worth * inScope ** share(scope, folders) * atScope ** share(scope, new Set(names));
  };
}

const share = (words: readonly string[], among: ReadonlySet<string>): number =>
  words.length === 0 ? 0 : words.filter((word) => among.has(word)).length / words.length;

function textFactor(chunks: readonly Chunk[], { pairs, spelled }: RequestWords, { signs }: Weights): number {
  const left = { pairs, spelled };
  const words = [...new Set(pairs.flat())];
  const enough = pairs.length - signs.pairsMost;
  for (const { text } of chunks) {
    if (left.spelled.length > 0) left.spelled = left.spelled.filter((name) => !text.includes(name));
    if (left.pairs.length === 0 || left.pairs.length <= enough) continue;
    const lower = text.toLowerCase();
    const there = new Set(words.filter((word) => lower.includes(word)));
    left.pairs = left.pairs.filter(
      (pair) => !(there.has(pair[0]) && there.has(pair[1]) && areAdjacent(lower, pair)),
    );
  }
  const met = Math.min(signs.pairsMost, pairs.length - left.pairs.length) / signs.pairsMost;
  const has = spelled.length === 0 ? 0 : 1 - left.spelled.length / spelled.length;
  return signs.pairs ** met * signs.spelled ** has * signs.defined ** share(spelled, namesOf(chunks));
}

const namesOf = (chunks: readonly Chunk[]): ReadonlySet<string> =>
  new Set(chunks.flatMap(({ symbol }) => symbol?.split(/, |\.|::|#/) ?? []));

/**
 * How much an inflected word may add to its stem, and what may stand between two words: `caching_the`, `cache: store`.
 */
const MAX_ENDING_LENGTH = 8;
const MAX_GAP = 3;
/** How much a word may add to its stem inside one joined name: `cachedirectory`, whose stem is `cach`. */
const JOINED_ENDING = 3;

/** Whether two words are adjacent in a lower-case text, in any inflection, separate or joined in one name. */
export function areAdjacent(text: string, [one, other]: Pair): boolean {
  for (let from = text.indexOf(one); from !== -1; from = text.indexOf(one, from + 1)) {
    const end = from + one.length;
    const word = skipWhile(text, end, MAX_ENDING_LENGTH, isLetter);
    for (let at = end; at <= Math.min(word, end + JOINED_ENDING); at += 1)
      if (text.startsWith(other, at)) return true;
    const next = skipWhile(text, word, MAX_GAP, isGap);
    if (next > word && text.startsWith(other, next)) return true;
  }
  return false;
}

function skipWhile(text: string, from: number, most: number, over: (code: number) => boolean): number {
  const end = Math.min(text.length, from + most);
  let at = from;
  while (at < end && over(text.charCodeAt(at))) at += 1;
  return at;
}

const isLetter = (code: number): boolean => code >= 97 && code <= 122;
const isGap = (code: number): boolean => !isLetter(code) && !(code >= 48 && code <= 57);
