import type { Placed } from "./ranked-query.ts";
import type { Chunk, ScoredChunk } from "./search-store.ts";

/** How near the files that words rank best are to the question, by the vectors of their pieces. */

const NO_LOOK: ReadonlyMap<string, number> = new Map();
/**
 * How many files the second look covers, the minimum for a comparison, and the minimum deviation that distinguishes
 * pieces: stores agree only to within a thousandth.
 */
const SECOND_LOOK = { most: 10, fewest: 3, spread: 0.002 } as const;

/**
 * For each of the best files, how much nearer it is to the question than the farthest of them. Only pieces that words
 * found are compared, because a piece without any word of the question is near by chance more often than by meaning; of
 * these, lists of imports count only where there is nothing else. The unit is the standard deviation over all pieces
 * that words found: that of the ten files alone would make differences large where all ten are equally near. A file
 * without a vector counts as average.
 */
export function secondLook(
  lexical: readonly Placed[],
  candidates: readonly ScoredChunk[],
): ReadonlyMap<string, number> {
  const paths = [...new Set(lexical.map(({ chunk }) => chunk.path))].slice(0, SECOND_LOOK.most);
  const found = candidates.flatMap(({ chunk, lexical, dense }) =>
    dense !== null && (lexical ?? 0) > 0 ? [{ chunk, dense }] : [],
  );
  const nearest = nearestByPath(found, new Set(paths));
  const all = [...nearest.values()];
  const spread = deviation(found.map(({ dense }) => dense));
  if (all.length < SECOND_LOOK.fewest || spread < SECOND_LOOK.spread) return NO_LOOK;
  const farthest = Math.min(...all);
  const middle = mean(all);
  return new Map(paths.map((path) => [path, ((nearest.get(path) ?? middle) - farthest) / spread]));
}

interface NearPiece {
  readonly chunk: Chunk;
  readonly dense: number;
}

function nearestByPath(found: readonly NearPiece[], paths: ReadonlySet<string>): ReadonlyMap<string, number> {
  const isImports = ({ chunk }: NearPiece): boolean => chunk.kind === "imports";
  const nearest = new Map<string, number>();
  const take = (pieces: readonly NearPiece[]): void => {
    for (const { chunk, dense } of pieces) {
      const before = nearest.get(chunk.path);
      if (before === undefined || before < dense) nearest.set(chunk.path, dense);
    }
  };
  const looked = found.filter(({ chunk }) => paths.has(chunk.path));
  take(looked.filter((piece) => !isImports(piece)));
  const judged = new Set(nearest.keys());
  take(looked.filter((piece) => isImports(piece) && !judged.has(piece.chunk.path)));
  return nearest;
}

const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length;

function deviation(all: readonly number[]): number {
  const middle = mean(all);
  return Math.sqrt(mean(all.map((one) => (one - middle) ** 2)));
}
