import { rank } from "../rank/rank-hits.ts";
import { WEIGHTS } from "../rank/weights.ts";
import type { SearchStore } from "../search-store.ts";
import type { Told } from "./told-commits.ts";
import { type VectorWorth, WAY } from "./vector-worth.ts";

/** Each is tried on the same questions, the milder first: the other one has to find more, and is none where that does not. */
const TRIED = [WEIGHTS.dense, 0.3] as const;
/** Fewer tell nothing. */
const FEWEST = 25;
const CANDIDATES = 200;
const PLACES = 10;

/**
 * Asks the store what its history tells, with and without vectors: they get the weight with which the files of commits
 * are found best by what was said of them, and none where words alone do as well. Null where there is too little to tell.
 */
export async function measuredWorth(
  store: SearchStore,
  told: readonly Told[],
  means: {
    readonly model: string;
    /** Null where a question got none. */
    readonly vectorOf: (text: string) => Promise<Float32Array | null>;
    readonly signal: AbortSignal;
  },
): Promise<VectorWorth | null> {
  const { model, vectorOf, signal } = means;
  const marks = { words: [] as number[], by: new Map<number, number[]>(TRIED.map((weight) => [weight, []])) };
  for (const { question, answers } of told) {
    signal.throwIfAborted();
    const vector = await vectorOf(question);
    if (vector === null) continue;
    const found = await store.candidates({ text: question, vector }, CANDIDATES, signal);
    const markOf = (dense: number): number =>
      mark(rank(found, question, PLACES * 2, { ...WEIGHTS, dense }), answers);
    marks.words.push(markOf(0));
    for (const [weight, list] of marks.by) list.push(markOf(weight));
  }
  const questions = marks.words.length;
  if (questions < FEWEST) return null;
  const weight = weightBy(marks.words, marks.by);
  const { chunks } = await store.counts(signal);
  const vectors = mean(marks.by.get(weight) ?? marks.words);
  const found = { words: round(mean(marks.words)), vectors: round(vectors) };
  return { way: WAY, model, weight, questions, chunks, ...found };
}

/** The one that gains most, as long as each gains on the milder one; 0 where the mildest does not. */
export function weightBy(words: readonly number[], by: ReadonlyMap<number, readonly number[]>): number {
  let best = { weight: 0, mark: mean(words) };
  for (const [weight, marks] of by) {
    if (mean(marks) <= best.mark) break;
    best = { weight, mark: mean(marks) };
  }
  return best.weight;
}

function mark(hits: readonly { readonly path: string }[], answers: ReadonlySet<string>): number {
  const place = [...new Set(hits.map(({ path }) => path))]
    .slice(0, PLACES)
    .findIndex((path) => answers.has(path));
  return place === -1 ? 0 : 1 / (place + 1);
}

const mean = (all: readonly number[]): number =>
  all.reduce((sum, one) => sum + one, 0) / Math.max(1, all.length);
const round = (value: number): number => Math.round(value * 1000) / 1000;
