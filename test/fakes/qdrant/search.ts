import { dot } from "../../fixtures/vectors.ts";
import type { PointFilter, StoredPoint } from "./filters.ts";
import { Refusal } from "./refusal.ts";

/** The part of the query API that the store uses: nearest by a dense vector. */

export interface PointQuery {
  readonly query?: readonly number[] | object | null;
  readonly using?: string | null;
  readonly filter?: PointFilter | null;
  readonly limit?: number | null;
  readonly offset?: number | null;
  readonly score_threshold?: number | null;
}

export interface Searched {
  readonly where: (filter: PointFilter | null | undefined) => readonly StoredPoint[];
  /** The length of each named dense vector. */
  readonly dense: ReadonlyMap<string, number>;
}

export interface Scored {
  readonly point: StoredPoint;
  readonly score: number;
}

const DEFAULT_LIMIT = 10;

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
  if (!isNumbers(query)) throw new Refusal(400, "the stand-in knows queries by a dense vector alone");
  return byDense(collection, { query, using: asked.using ?? "" }, collection.where(filter));
}

const isNumbers = (query: PointQuery["query"]): query is readonly number[] => Array.isArray(query);

interface Dense {
  readonly query: readonly number[];
  readonly using: string;
}

function byDense(
  collection: Searched,
  { query: values, using }: Dense,
  points: readonly StoredPoint[],
): readonly Scored[] {
  const size = collection.dense.get(using);
  if (size === undefined) throw new Refusal(400, `Wrong input: Not existing vector name error: ${using}`);
  const query = normalised(values, size);
  return points.flatMap((point) => {
    const vector = point.vectors.get(using);
    return vector instanceof Float32Array ? [{ point, score: Math.fround(dot(query, vector)) }] : [];
  });
}

/** The stored form of a vector that is compared by cosine. */
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
