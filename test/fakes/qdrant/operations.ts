import { Collection, type Selection, shown } from "./collection.ts";
import type { PointFilter } from "./filters.ts";
import { Refusal } from "./refusal.ts";
import type { Match } from "./schema.ts";
import type { PointQuery } from "./search.ts";

export type Collections = Map<string, Collection>;

interface Call {
  readonly match: Match;
  readonly query: URLSearchParams;
  // Already checked against the schema.
  readonly body: never;
}

type Operation = (call: Call, collections: Collections) => unknown;

const DONE = { operation_id: 1, status: "completed" };
/** Delay of a change that the client does not wait for, as on a server. */
const LATER_MS = 20;

function collectionAt({ match }: Call, collections: Collections): Collection {
  const collection = collections.get(match.collection);
  if (collection === undefined)
    throw new Refusal(404, `Not found: Collection \`${match.collection}\` doesn't exist!`);
  return collection;
}

function change(call: Call, act: () => void): object {
  if (call.query.get("wait") === "true") {
    act();
    return DONE;
  }
  setTimeout(act, LATER_MS).unref();
  return { ...DONE, status: "acknowledged" };
}

/** Operations by their names in the schema; each returns its `result`. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  get_collections: (_call, collections) => ({
    collections: [...collections.keys()].toSorted().map((name) => ({ name })),
  }),

  get_collection: (call, collections) => infoOf(collectionAt(call, collections)),

  create_collection(call, collections) {
    const { collection } = call.match;
    if (collections.has(collection))
      throw new Refusal(409, `Wrong input: Collection \`${collection}\` already exists!`);
    collections.set(collection, new Collection(call.body));
    return true;
  },

  delete_collection: ({ match }, collections) => collections.delete(match.collection),

  create_field_index(call, collections) {
    const collection = collectionAt(call, collections);
    const { field_name, field_schema } = call.body as { field_name: string; field_schema: unknown };
    return change(call, () => void collection.indexes.set(field_name, field_schema));
  },

  upsert_points(call, collections) {
    const collection = collectionAt(call, collections);
    const { points } = call.body as { points: Parameters<Collection["upsert"]>[0] };
    return change(call, () => collection.upsert(points));
  },

  get_points(call, collections) {
    const { ids, ...selection } = call.body as { ids: readonly string[] } & Selection;
    return collectionAt(call, collections)
      .byIds(ids)
      .map((point) => shown(point, selection));
  },

  delete_points(call, collections) {
    const collection = collectionAt(call, collections);
    const { points, filter } = call.body as { points?: readonly string[]; filter?: PointFilter };
    const ids = points ?? collection.where(filter).map(({ id }) => id);
    return change(call, () => collection.remove(ids));
  },

  update_vectors(call, collections) {
    const collection = collectionAt(call, collections);
    const { points } = call.body as { points: Parameters<Collection["updateVectors"]>[0] };
    return change(call, () => collection.updateVectors(points));
  },

  scroll_points(call, collections) {
    const { filter, limit, offset, ...selection } = call.body as ScrollBody;
    const all = collectionAt(call, collections).where(filter);
    const from = offset === null || offset === undefined ? 0 : all.findIndex(({ id }) => id >= offset);
    const rest = from < 0 ? [] : all.slice(from);
    const page = rest.slice(0, limit ?? 10);
    return {
      points: page.map((point) => shown(point, selection)),
      next_page_offset: rest[page.length]?.id ?? null,
    };
  },

  count_points(call, collections) {
    const { filter } = call.body as { filter?: PointFilter };
    return { count: collectionAt(call, collections).where(filter).length };
  },

  facet(call, collections) {
    const { key, filter, limit } = call.body as { key: string; filter?: PointFilter; limit?: number };
    return { hits: collectionAt(call, collections).facet(key, filter, limit ?? 10) };
  },

  query_batch_points(call, collections) {
    const { searches } = call.body as { searches: readonly (PointQuery & Selection)[] };
    const collection = collectionAt(call, collections);
    return searches.map((asked) => ({ points: collection.query(asked) }));
  },
};

interface ScrollBody extends Selection {
  readonly filter?: PointFilter | null;
  readonly limit?: number | null;
  readonly offset?: string | null;
}

function infoOf(collection: Collection): object {
  const { shape, indexes, points, status } = collection;
  const { vectors = {}, sparse_vectors = {}, hnsw_config = {} } = shape;
  const fields = Array.from(
    indexes,
    ([field, params]) =>
      [field, { data_type: (params as { type: string }).type, params, points: points.length }] as const,
  );
  return {
    status,
    optimizer_status: status === "red" ? { error: "Service internal error: No space left" } : "ok",
    points_count: points.length,
    segments_count: 2,
    config: {
      params: { vectors, sparse_vectors, shard_number: 1, on_disk_payload: shape.on_disk_payload ?? true },
      hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000, ...hnsw_config },
      optimizer_config: { default_segment_number: 0, flush_interval_sec: 5 },
    },
    payload_schema: Object.fromEntries(fields),
  };
}
