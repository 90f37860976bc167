import type { SearchHit } from "../rank/rank.ts";
import type { SearchStore } from "../store.ts";

/** Candidates for so many hits: several may be of one file. */
const PER_HIT = 10;
const LEAST = 100;

export interface Asked {
  readonly text: string;
  /** Null: by words alone. */
  readonly vector: Float32Array | null;
  readonly limit: number;
}

/** The best places for a query, best first. */
export async function answersIn(
  store: SearchStore,
  { text, vector, limit }: Asked,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  const [found, { rank }] = await Promise.all([
    store.candidates({ text, vector }, Math.max(LEAST, limit * PER_HIT), signal),
    import("../rank/rank.ts"),
  ]);
  return rank(found, text, limit);
}
