import { isInside } from "../../core/text/file-paths.ts";
import { lookupIn } from "../rank/name-lookup.ts";
import { WEIGHTS } from "../rank/weights.ts";
import { rank, type SearchHit } from "../rank/rank-hits.ts";
import type { SearchStore } from "../search-store.ts";

/** Candidates for so many hits: several may be of one file. */
const PER_HIT = 10;
const MIN_COUNT = 100;
/** Where one definition is meant, it may be among many that use it. */
const MIN_BY_NAME = 1000;
/** Looked through for those that lie below a folder: stores order all of an index. */
const MAX_BELOW = 5000;

export interface Asked {
  readonly text: string;
  /** Null: by words alone. */
  readonly vector: Float32Array | null;
  /** What vectors weigh beside words; left out, as much as usual. */
  readonly weight?: number;
  readonly limit: number;
  /** Only of what lies below this folder, or of this file. */
  readonly below?: string | null;
}

/** The best places for a query, best first. */
export async function answersIn(
  store: SearchStore,
  { text, vector, weight, limit, below = null }: Asked,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  const least = lookupIn(text) === null ? MIN_COUNT : MIN_BY_NAME;
  const most = below === null ? Math.max(least, limit * PER_HIT) : MAX_BELOW;
  const found = await store.candidates({ text, vector }, most, signal);
  const wanted = found.filter(({ chunk }) => below === null || isInside(below, chunk.path));
  return rank(wanted, text, limit, weight === undefined ? WEIGHTS : { ...WEIGHTS, dense: weight });
}
