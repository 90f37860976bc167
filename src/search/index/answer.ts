import type { SearchHit } from "../rank/rank.ts";
import type { SearchStore } from "../store.ts";

/** Candidates for so many hits: several may be of one file. */
const PER_HIT = 10;
const LEAST = 100;
/** Where only a folder is wanted: those of other folders are among them. */
const BELOW = 5000;

export interface Asked {
  readonly text: string;
  /** Null: by words alone. */
  readonly vector: Float32Array | null;
  readonly limit: number;
  /** Only this file, or what lies below this folder. */
  readonly below?: string | null;
}

export interface Answers {
  readonly hits: readonly SearchHit[];
  /** False: fewer than wanted, and there may be more below that folder, which are worse than the best of the others. */
  readonly whole: boolean;
}

/** The best places for a query, best first. */
export async function answersIn(
  store: SearchStore,
  { text, vector, limit, below = null }: Asked,
  signal: AbortSignal,
): Promise<Answers> {
  const most = below === null ? Math.max(LEAST, limit * PER_HIT) : BELOW;
  const [found, { rank }] = await Promise.all([
    store.candidates({ text, vector }, most, signal),
    import("../rank/rank.ts"),
  ]);
  const near = below === null ? found : found.filter(({ chunk }) => isIn(chunk.path, below));
  const hits = rank(near, text, limit);
  return { hits, whole: below === null || hits.length === limit || found.length < most };
}

const isIn = (path: string, below: string): boolean => path === below || path.startsWith(`${below}/`);
