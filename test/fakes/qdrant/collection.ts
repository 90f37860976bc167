import { keysOf, type StoredPoint, passes, type PointFilter, type SparseVector } from "./filters.ts";
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

/** Vectors that a server writes between two checks for missing points. */
const PART = 32;

/** One collection in memory. */
export class Collection implements Searched {
  readonly shape: CollectionShape;
  readonly dense: ReadonlyMap<string, number>;
  readonly sparse: ReadonlyMap<string, { readonly idf: boolean }>;
  readonly indexes = new Map<string, unknown>();
  status = "green";
  readonly #points = new Map<string, StoredPoint>();
  #sorted: readonly StoredPoint[] | null = null;

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

  /** Points in the order of their ids. */
  get points(): readonly StoredPoint[] {
    this.#sorted ??= [...this.#points.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
    return this.#sorted;
  }

  /** Filters as in strict mode, which is the default in Qdrant's cloud: only by indexed fields. */
  where(filter: PointFilter | null | undefined): readonly StoredPoint[] {
    for (const [key, type] of keysOf(filter))
      if ((this.indexes.get(key) as { readonly type?: string } | undefined)?.type !== type)
        throw new Refusal(
          400,
          `Bad request: Index required but not found for "${key}" of one of the following types: [${type}]. Help: Create an index for this key or use a different filter.`,
        );
    return this.points.filter((point) => passes(point, filter));
  }

  byIds(ids: readonly string[]): readonly StoredPoint[] {
    return ids.flatMap((id) => this.#points.get(id) ?? []);
  }

  /** Replaces points as a whole, one after the other: those before the first invalid one are stored. */
  upsert(
    points: readonly { id: string; vector: Vectors; payload?: Readonly<Record<string, unknown>> | null }[],
  ): void {
    this.#sorted = null;
    for (const { id, vector, payload } of points)
      this.#points.set(id, { id, payload: payload ?? {}, vectors: this.#stored(vector) });
  }

  /**
   * Updates in parts: if a point of a part is missing, the others of that part are updated, and later parts are not
   * begun.
   */
  updateVectors(points: readonly { id: string; vector: Vectors }[]): void {
    const stored = points.map(({ id, vector }) => ({ id, vectors: this.#stored(vector) }));
    for (let at = 0; at < stored.length; at += PART) {
      const part = stored.slice(at, at + PART);
      for (const { id, vectors } of part)
        for (const [name, vector] of vectors) this.#points.get(id)?.vectors.set(name, vector);
      const missing = part.find(({ id }) => !this.#points.has(id));
      if (missing !== undefined) throw new Refusal(404, `Not found: No point with id ${missing.id} found`);
    }
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) this.#points.delete(id);
    this.#sorted = null;
  }

  facet(key: string, filter: PointFilter | null | undefined, limit: number): readonly object[] {
    if (!this.indexes.has(key))
      throw new Refusal(
        400,
        `Wrong input: No appropriate index for faceting: \`${key}\`. Please create one to facet on this field. Check https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas support Match conditions`,
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

/** The requested fields of a point. */
export function shown(point: StoredPoint, { with_payload, with_vector }: Selection): object {
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
