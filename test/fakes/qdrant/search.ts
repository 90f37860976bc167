import type { Kept, PointFilter, SparseVector } from "./filters.ts";
import { Refusal } from "./refusal.ts";

/** The query API as far as the store uses it: nearest by a dense or a sparse vector, and fusion of prefetches. */

export interface PointQuery {
  readonly query?: readonly number[] | SparseVector | { readonly fusion: string } | null;
  readonly using?: string | null;
  readonly filter?: PointFilter | null;
  readonly prefetch?: readonly PointQuery[] | PointQuery | null;
  readonly params?: { readonly idf?: { readonly corpus: PointFilter } | "global" | null } | null;
  readonly limit?: number | null;
  readonly offset?: number | null;
  readonly score_threshold?: number | null;
}

export interface Searched {
  readonly where: (filter: PointFilter | null | undefined) => readonly Kept[];
  /** Of each named vector: how many numbers a dense one has, and whether a sparse one weighs rarity. */
  readonly dense: ReadonlyMap<string, number>;
  readonly sparse: ReadonlyMap<string, { readonly idf: boolean }>;
}

export interface Scored {
  readonly point: Kept;
  readonly score: number;
}

const DEFAULT_LIMIT = 10;
/** The server's own, where a query names none. */
const RRF_K = 2;

export function search(collection: Searched, asked: PointQuery): readonly Scored[] {
  const { limit, offset, score_threshold } = asked;
  const from = offset ?? 0;
  return scoresOf(collection, asked)
    .toSorted((one, other) => other.score - one.score || (one.point.id < other.point.id ? -1 : 1))
    .filter(({ score }) => score >= (score_threshold ?? Number.NEGATIVE_INFINITY))
    .slice(from, from + (limit ?? DEFAULT_LIMIT));
}

function scoresOf(collection: Searched, asked: PointQuery): readonly Scored[] {
  const { query, filter } = asked;
  if (query === null || query === undefined) throw new Refusal(400, "the stand-in knows no query by id");
  if ("fusion" in query) return fused(collection, asked);
  const points = collection.where(filter);
  return "indices" in query ? bySparse(collection, asked, points) : byDense(collection, asked, points);
}

function fused(collection: Searched, { prefetch, query }: PointQuery): readonly Scored[] {
  const fusion = query && "fusion" in query ? query.fusion : "";
  if (fusion !== "rrf") throw new Refusal(400, `the stand-in knows no fusion ${fusion}`);
  const lists = Array.isArray(prefetch) ? prefetch : prefetch ? [prefetch] : [];
  if (lists.length === 0)
    throw new Refusal(400, "Validation error: Fusion queries cannot be combined with no prefetches.");
  const scores = new Map<Kept, number>();
  for (const list of lists)
    for (const [rank, { point }] of search(collection, list as PointQuery).entries())
      scores.set(point, (scores.get(point) ?? 0) + 1 / (rank + RRF_K));
  return Array.from(scores, ([point, score]) => ({ point, score }));
}

function byDense(collection: Searched, asked: PointQuery, points: readonly Kept[]): readonly Scored[] {
  const using = asked.using ?? "";
  const size = collection.dense.get(using);
  if (size === undefined) throw new Refusal(400, `Wrong input: Not existing vector name error: ${using}`);
  const query = normalised(asked.query as readonly number[], size);
  return points.flatMap((point) => {
    const vector = point.vectors.get(using);
    return vector instanceof Float32Array ? [{ point, score: Math.fround(dot(query, vector)) }] : [];
  });
}

/** What a server stores where vectors are compared by cosine. */
export function normalised(values: readonly number[], size: number): Float32Array {
  if (values.length !== size)
    throw new Refusal(
      400,
      `Wrong input: Vector dimension error: expected dim: ${size}, got ${values.length}`,
    );
  const vector = Float32Array.from(values);
  const length = Math.sqrt(dot(vector, vector));
  return length === 0 ? vector : vector.map((value) => value / length);
}

const dot = (one: Float32Array, other: Float32Array): number =>
  one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);

function bySparse(collection: Searched, asked: PointQuery, points: readonly Kept[]): readonly Scored[] {
  const using = asked.using ?? "";
  const kind = collection.sparse.get(using);
  if (kind === undefined) throw new Refusal(400, `Wrong input: Not existing vector name error: ${using}`);
  const { indices, values } = asked.query as SparseVector;
  const idf = asked.params?.idf;
  const corpus = typeof idf === "object" && idf !== null ? idf.corpus : null;
  const counted = collection.where(corpus).filter((point) => point.vectors.has(using));
  const having = new Map<number, number>();
  for (const point of counted)
    for (const index of sparseOf(point, using).indices) having.set(index, (having.get(index) ?? 0) + 1);
  const weights = new Map(
    indices.map((index, at) => {
      const count = having.get(index) ?? 0;
      const rarity = Math.log((counted.length - count + 0.5) / (count + 0.5) + 1);
      return [index, (values[at] ?? 0) * (kind.idf ? rarity : 1)] as const;
    }),
  );
  return points.flatMap((point) => {
    const vector = sparseOf(point, using);
    const shared = vector.indices.flatMap((index, at) => {
      const weight = weights.get(index);
      return weight === undefined ? [] : [weight * (vector.values[at] ?? 0)];
    });
    return shared.length === 0
      ? []
      : [{ point, score: Math.fround(shared.reduce((sum, part) => sum + part)) }];
  });
}

const NONE: SparseVector = { indices: [], values: [] };

function sparseOf(point: Kept, using: string): SparseVector {
  const vector = point.vectors.get(using);
  return vector === undefined || vector instanceof Float32Array ? NONE : vector;
}
