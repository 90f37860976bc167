import { isInside } from "../../core/text/file-paths.ts";
import { lookupIn } from "../rank/name-lookup.ts";
import { WEIGHTS } from "../rank/weights.ts";
import { rank, type SearchHit } from "../rank/rank-hits.ts";
import type { SearchStore } from "../search-store.ts";

/** Candidates per hit: several may come from the same file. */
const PER_HIT = 10;
const MIN_COUNT = 100;
/** A query for one definition needs more: many other chunks may use the name. */
const MIN_BY_NAME = 1000;
/** Candidates when only a folder is searched: stores rank the whole index. */
const MAX_BELOW = 5000;

export interface IndexQuestion {
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
