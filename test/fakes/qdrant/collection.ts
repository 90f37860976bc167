import { type Kept, passes, type PointFilter, type SparseVector } from "./filters.ts";
import { Refusal } from "./refusal.ts";
import { normalised, type PointQuery, search, type Searched } from "./search.ts";

interface VectorShape {
  readonly size: number;
  readonly distance: string;
}

interface CollectionShape {
  readonly vectors?: Readonly<Record<string, VectorShape>>;
  readonly sparse_vectors?: Readonly<Record<string, { readonly modifier?: string | null }>> | null;
  readonly hnsw_config?: Readonly<Record<string, number>>;
  readonly on_disk_payload?: boolean | null;
}

type Selected = boolean | readonly string[] | null | undefined;

export interface Selection {
  readonly with_payload?: Selected;
  readonly with_vector?: Selected;
}

type Vectors = Readonly<Record<string, readonly number[] | SparseVector>>;

/** One collection in memory. */
export class Collection implements Searched {
  readonly shape: CollectionShape;
  readonly dense: ReadonlyMap<string, number>;
  readonly sparse: ReadonlyMap<string, { readonly idf: boolean }>;
  readonly indexes = new Map<string, unknown>();
  status = "green";
  readonly #points = new Map<string, Kept>();
  #sorted: readonly Kept[] | null = null;

  constructor(shape: CollectionShape) {
    this.shape = shape;
    this.dense = new Map(Object.entries(shape.vectors ?? {}).map(([name, { size }]) => [name, size]));
    this.sparse = new Map(
      Object.entries(shape.sparse_vectors ?? {}).map(([name, { modifier }]) => [
        name,
        { idf: modifier === "idf" },
      ]),
    );
  }

  /** In the order of their ids. */
  get points(): readonly Kept[] {
    this.#sorted ??= [...this.#points.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
    return this.#sorted;
  }

  where(filter: PointFilter | null | undefined): readonly Kept[] {
    return this.points.filter((point) => passes(point, filter));
  }

  byIds(ids: readonly string[]): readonly Kept[] {
    return ids.flatMap((id) => this.#points.get(id) ?? []);
  }

  /** Replaces points as a whole; all of them are looked at before the first. */
  upsert(
    points: readonly { id: string; vector: Vectors; payload?: Readonly<Record<string, unknown>> | null }[],
  ): void {
    const kept = points.map(({ id, vector, payload }) => ({
      id,
      payload: payload ?? {},
      vectors: this.#stored(vector),
    }));
    for (const point of kept) this.#points.set(point.id, point);
    this.#sorted = null;
  }

  /** Those that are there get theirs, and one that is not makes it a failure all the same. */
  updateVectors(points: readonly { id: string; vector: Vectors }[]): void {
    const stored = points.map(({ id, vector }) => ({ id, vectors: this.#stored(vector) }));
    for (const { id, vectors } of stored)
      for (const [name, vector] of vectors) this.#points.get(id)?.vectors.set(name, vector);
    const missing = points.find(({ id }) => !this.#points.has(id));
    if (missing !== undefined) throw new Refusal(404, `Not found: No point with id ${missing.id} found`);
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) this.#points.delete(id);
    this.#sorted = null;
  }

  facet(key: string, filter: PointFilter | null | undefined, limit: number): readonly object[] {
    if (!this.indexes.has(key))
      throw new Refusal(
        400,
        `Wrong input: No appropriate index for faceting: \`${key}\`. Please create one to facet on this field.`,
      );
    const counts = new Map<unknown, number>();
    for (const { payload } of this.where(filter))
      if (payload[key] !== undefined) counts.set(payload[key], (counts.get(payload[key]) ?? 0) + 1);
    return Array.from(counts, ([value, count]) => ({ value, count }))
      .toSorted((one, other) => other.count - one.count)
      .slice(0, limit);
  }

  query(asked: PointQuery & Selection): readonly object[] {
    return search(this, asked).map(({ point, score }) => ({
      ...shown(point, { with_payload: asked.with_payload ?? false, with_vector: asked.with_vector }),
      version: 1,
      score,
    }));
  }

  #stored(vectors: Vectors): Map<string, Float32Array | SparseVector> {
    const entries = Object.entries(vectors).map(
      ([name, vector]) => [name, this.#checked(name, vector)] as const,
    );
    return new Map(entries);
  }

  #checked(name: string, vector: readonly number[] | SparseVector): Float32Array | SparseVector {
    const size = this.dense.get(name);
    if ("indices" in vector && this.sparse.has(name)) {
      if (new Set(vector.indices).size !== vector.indices.length)
        throw new Refusal(422, "Validation error in JSON body: [indices: must be unique]");
      if (vector.indices.length !== vector.values.length)
        throw new Refusal(422, "Validation error in JSON body: [values: must be the same length as indices]");
      return vector;
    }
    if (size === undefined || "indices" in vector)
      throw new Refusal(400, `Wrong input: Not existing vector name error: ${name}`);
    return normalised(vector, size);
  }
}

/** A point with so much of it as was asked for. */
export function shown(point: Kept, { with_payload, with_vector }: Selection): object {
  const vectors = Object.fromEntries(
    Array.from(point.vectors, ([name, vector]) => [
      name,
      vector instanceof Float32Array ? [...vector] : vector,
    ]),
  );
  return {
    id: point.id,
    ...part("payload", point.payload, with_payload ?? true),
    ...part("vector", vectors, with_vector ?? false),
  };
}

function part(name: string, all: Readonly<Record<string, unknown>>, wanted: Selected): object {
  if (wanted === false || wanted === null || wanted === undefined) return {};
  if (wanted === true) return { [name]: all };
  return { [name]: Object.fromEntries(Object.entries(all).filter(([key]) => wanted.includes(key))) };
}
