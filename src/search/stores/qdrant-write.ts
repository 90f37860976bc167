import { z } from "zod";
import { formatSize } from "../../core/wording.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { StoredFile } from "../search-store.ts";
import { completedWrite, type QdrantApi, resultOf } from "./qdrant-api.ts";
import { QdrantFailure } from "./qdrant-failure.ts";
import {
  chunkPoints,
  COLLECTION_KINDS,
  type CollectionKind,
  collectionOf,
  DENSE,
  filePoint,
  type Filter,
  isOurs,
  numbersOf,
  ofIndex,
  ofPaths,
  orWithout,
  type Point,
  type QdrantContext,
  type VersionStamp,
  withoutCollection,
} from "./qdrant-collections.ts";
import { jsonBytes } from "../../core/ports.ts";

/** What a server accepts in one request, minus room for the rest of the request. */
const MAX_BYTES = 30 * 2 ** 20;
const MAX_PATHS = 500;

const withVectors = resultOf(
  z.array(
    z.object({ id: z.string(), vector: z.object({ [DENSE]: z.array(z.number()).optional() }).nullish() }),
  ),
);

/**
 * Writes new chunks first, then removes all other points of these paths, including the file's own point, and writes
 * that point last. If this is interrupted between two requests, the file does not count as held until it is put again.
 */
export async function putFiles(
  context: QdrantContext,
  files: readonly StoredFile[],
  signal: AbortSignal,
): Promise<void> {
  const last = [...new Map(files.map((file) => [file.path, file])).values()];
  if (last.length === 0) return;
  for (const kind of COLLECTION_KINDS) await context.collections.ready(kind, signal);
  const groups = COLLECTION_KINDS.flatMap((kind) =>
    groupsOf(last.filter((file) => collectionOf(file) === kind)).map((group) => ({ kind, group })),
  );
  await runConcurrently(groups, ({ kind, group }) => putGroup(context, kind, group, signal));
}

/** Groups files by their number of chunks; a file is never in two groups. */
const groupsOf = (files: readonly StoredFile[]): readonly (readonly StoredFile[])[] => {
  const all: StoredFile[][] = [];
  let points = Number.POSITIVE_INFINITY;
  for (const file of files) {
    const size = file.chunks.length + 1;
    if (points + size > MAX_POINTS) {
      all.push([]);
      points = 0;
    }
    all.at(-1)?.push(file);
    points += size;
  }
  return all;
};

async function putGroup(
  context: QdrantContext,
  kind: CollectionKind,
  files: readonly StoredFile[],
  signal: AbortSignal,
): Promise<void> {
  const stamp: VersionStamp = { index: context.identity.index, written: context.now() };
  const all = files.flatMap((file) => chunkPoints(file, stamp));
  const points = [...new Map(all.map((point) => [point.id, point])).values()];
  for (const batch of batches(points, (point) => sizeOf(point, context)))
    await upsert(context, kind, await withKept(context, kind, batch, signal), signal);
  const paths = files.map(({ path }) => path);
  const ids = points.map(({ id }) => id);
  for (const other of COLLECTION_KINDS)
    await removePoints(context, other, ofPaths(stamp.index, paths, other === kind ? ids : []), signal);
  await upsert(
    context,
    kind,
    files.map((file) => filePoint(file, stamp)),
    signal,
  );
}

/** The size including the future vector. A clear error here comes before the server's refusal. */
function sizeOf(point: Point, { identity }: QdrantContext): number {
  const bytes = jsonBytes(point) + 22 * (identity.vectors?.dimension ?? 0);
  if (bytes <= MAX_BYTES) return bytes;
  const { path, start } = point.payload as { path: string; start: number };
  throw new HarnessError(
    EXIT.failed,
    `the chunk at ${path}:${start} is ${formatSize(bytes)}, more than Qdrant accepts in one request`,
    "Leave the file out with a line in .gitignore   (or: harness config set search.store embedded)",
  );
}

/** An upsert replaces a point as a whole, so points of existing chunks get their present vector. */
async function withKept(
  { api, collections, identity }: QdrantContext,
  kind: CollectionKind,
  points: readonly Point[],
  signal: AbortSignal,
): Promise<readonly Point[]> {
  if (identity.vectors === null) return points;
  const ids = points.map(({ id }) => id);
  const there = await api.ask(
    (calls, init) =>
      calls.getPoints(
        { collection_name: collections.name(kind), ids, with_payload: false, with_vector: [DENSE] },
        init,
      ),
    { what: "look up vectors to keep", form: withVectors, signal },
  );
  const kept = new Map(there.map(({ id, vector }) => [id, vector?.[DENSE]]));
  return points.map((point) => {
    const dense = kept.get(point.id);
    return dense === undefined ? point : { ...point, vector: { ...point.vector, [DENSE]: dense } };
  });
}

/** Splits a request that is too large: a server or a proxy may accept less than usual. */
async function upsert(
  context: QdrantContext,
  kind: CollectionKind,
  points: readonly Point[],
  signal: AbortSignal,
): Promise<void> {
  try {
    await upsertAtOnce(context, kind, points, signal);
  } catch (thrown) {
    const isTooLarge = thrown instanceof QdrantFailure && thrown.trouble === "too-large";
    if (!isTooLarge || points.length < 2) throw thrown;
    const middle = Math.ceil(points.length / 2);
    for (const half of [points.slice(0, middle), points.slice(middle)])
      await upsert(context, kind, half, signal);
  }
}

async function upsertAtOnce(
  { api, collections }: QdrantContext,
  kind: CollectionKind,
  points: readonly Point[],
  signal: AbortSignal,
): Promise<void> {
  const body = { collection_name: collections.name(kind), wait: true, points: [...points] };
  await api.ask((calls, init) => calls.upsertPoints(body, init), {
    what: `store ${points.length} points`,
    form: completedWrite,
    signal,
    write: true,
  });
}

export async function removeFiles(
  context: QdrantContext,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const all = [...new Set(paths)];
  const parts = Array.from({ length: Math.ceil(all.length / MAX_PATHS) }, (_, part) =>
    all.slice(part * MAX_PATHS, (part + 1) * MAX_PATHS),
  );
  for (const part of parts) await removeWhere(context, ofPaths(context.identity.index, part), signal);
}

/** Removes points from both collections, if they exist. */
export async function removeWhere(
  context: QdrantContext,
  filter: Filter,
  signal: AbortSignal,
): Promise<void> {
  for (const kind of COLLECTION_KINDS)
    await orWithout(removePoints(context, kind, filter, signal), undefined);
}

interface Vector {
  readonly id: string;
  readonly dense: number[];
}

const BYTES_OF_NUMBER = 22;
/** A chunk that is removed between check and write makes the whole write fail. */
const MAX_TRIES = 4;

const owners = resultOf(
  z.array(z.object({ id: z.string(), payload: z.object({ index: z.string(), what: z.string() }) })),
);

/** All vectors are checked before the first is sent. */
export async function embedChunks(
  context: QdrantContext,
  vectors: ReadonlyMap<string, Float32Array>,
  signal: AbortSignal,
): Promise<void> {
  const all = Array.from(vectors, ([id, vector]) => ({ id, dense: numbersOf(vector, context.identity) }));
  const parts = batches(all, ({ dense }) => dense.length * BYTES_OF_NUMBER + 80);
  await runConcurrently(
    parts.flatMap((part) => COLLECTION_KINDS.map((kind) => ({ kind, part }))),
    ({ kind, part }) => embedPart(context, kind, part, signal),
  );
}

async function embedPart(
  context: QdrantContext,
  kind: CollectionKind,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    const there = await ownIds(context, kind, part, signal);
    const points = part
      .filter(({ id }) => there.has(id))
      .map(({ id, dense }) => ({ id, vector: { [DENSE]: dense } }));
    if (points.length === 0) return;
    const body = { collection_name: context.collections.name(kind), wait: true, points };
    try {
      await context.api.ask((calls, init) => calls.updateVectors(body, init), {
        what: `store ${points.length} vectors`,
        form: completedWrite,
        signal,
        write: true,
      });
      return;
    } catch (thrown) {
      const gone = thrown instanceof QdrantFailure && thrown.trouble.startsWith("no-");
      if (!gone || tried === MAX_TRIES) throw thrown;
    }
  }
}

/** The ids of chunks of this index: the server would refuse a missing one. */
async function ownIds(
  { api, collections, identity }: QdrantContext,
  kind: CollectionKind,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const body = {
    collection_name: collections.name(kind),
    ids: part.map(({ id }) => id),
    with_payload: ["index", "what"],
    with_vector: false,
  };
  const found = api.ask((calls, init) => calls.getPoints(body, init), {
    what: "look up chunks",
    form: owners,
    signal,
  });
  const own = (await orWithout(found, [])).filter(
    ({ payload }) => payload.index === identity.index && payload.what === "chunk",
  );
  return new Set(own.map(({ id }) => id));
}

const removePoints = (
  { api, collections }: QdrantContext,
  kind: CollectionKind,
  filter: Filter,
  signal: AbortSignal,
): Promise<void> => removePointsIn(api, collections.name(kind), filter, signal);

/** Qdrant accepts 32 MB per request by default, and keeps the whole request in memory. */
const MAX_POINTS = 256;
const MAX_REQUEST_BYTES = 8 * 2 ** 20;
/** Requests of one call in flight at a time. */
const SIDE_BY_SIDE = 2;

/** Splits items in order into batches within the limits; a larger item is a batch of its own. */
export function batches<T>(items: readonly T[], bytesOf: (item: T) => number): readonly (readonly T[])[] {
  const all: T[][] = [];
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = bytesOf(item);
    if (batch.length > 0 && (batch.length >= MAX_POINTS || bytes + size > MAX_REQUEST_BYTES)) {
      all.push(batch);
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += size;
  }
  return batch.length > 0 ? [...all, batch] : all;
}

/** After a failure no further item begins; rejects with the first failure once everything that began has ended. */
export async function runConcurrently<T>(
  items: readonly T[],
  act: (item: T) => Promise<void>,
  most = SIDE_BY_SIDE,
): Promise<void> {
  const failures: unknown[] = [];
  const rest = items.values();
  const work = async (): Promise<void> => {
    for (const item of rest) {
      if (failures.length > 0) return;
      await act(item).catch((thrown: unknown) => void failures.push(thrown));
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, work));
  if (failures.length > 0) throw failures[0];
}

const collectionList = resultOf(z.object({ collections: z.array(z.object({ name: z.string() })) }));

/**
 * Removes the index from all our collections, including those of models that it had before. An empty pair of
 * collections is deleted; another index that is just beginning makes it again.
 */
export async function clearIndex(
  { api, identity, collections }: QdrantContext,
  signal: AbortSignal,
): Promise<void> {
  collections.forget();
  for (const pair of pairsOf(await ownCollections(api, signal)))
    await removeFromPair(api, { pair, index: identity.index }, signal);
}

/**
 * Removes outdated points from collections of other models. Collections without points of this index are not touched,
 * not even empty ones.
 */
export async function tidyIndex(
  { api, identity, collections }: QdrantContext,
  signal: AbortSignal,
): Promise<void> {
  const { index } = identity;
  const own = new Set(COLLECTION_KINDS.map((kind) => collections.name(kind)));
  for (const pair of pairsOf(await ownCollections(api, signal))) {
    if (pair.some((name) => own.has(name))) continue;
    const counts = await Promise.all(
      pair.map((name) => pointsIn(api, { name, filter: ofIndex(index) }, signal)),
    );
    if (counts.some((count) => (count ?? 0) > 0)) await removeFromPair(api, { pair, index }, signal);
  }
}

/** Pairs of collections for code and documentation of the same model. */
const pairsOf = (names: readonly string[]): readonly (readonly string[])[] => [
  ...Map.groupBy(names, withoutCollection).values(),
];

async function ownCollections(api: QdrantApi, signal: AbortSignal): Promise<readonly string[]> {
  const { collections } = await api.ask((calls, init) => calls.getCollections({}, init), {
    what: "list its collections",
    form: collectionList,
    signal,
  });
  return collections.map(({ name }) => name).filter(isOurs);
}

/** Never deletes one collection of a pair alone: an index with points in the other would consider its data lost. */
async function removeFromPair(
  api: QdrantApi,
  { pair, index }: { readonly pair: readonly string[]; readonly index: string },
  signal: AbortSignal,
): Promise<void> {
  for (const name of pair) await orWithout(removePointsIn(api, name, ofIndex(index), signal), undefined);
  for (const name of pair) if (((await pointsIn(api, { name }, signal)) ?? 0) > 0) return;
  for (const name of pair) await dropCollection(api, name, signal);
}

/** Null if there is no such collection. */
async function pointsIn(
  api: QdrantApi,
  { name, filter }: { readonly name: string; readonly filter?: Filter },
  signal: AbortSignal,
): Promise<number | null> {
  const body = { collection_name: name, exact: true, ...(filter === undefined ? {} : { filter }) };
  const answer = api.ask((calls, init) => calls.countPoints(body, init), {
    what: "count what is left",
    form: resultOf(z.object({ count: z.int() })),
    signal,
  });
  return (await orWithout(answer, null))?.count ?? null;
}

async function removePointsIn(
  api: QdrantApi,
  collection: string,
  filter: Filter,
  signal: AbortSignal,
): Promise<void> {
  const body = { collection_name: collection, wait: true, filter };
  await api.ask((calls, init) => calls.deletePoints(body, init), {
    what: "remove stale entries",
    form: completedWrite,
    signal,
    write: true,
  });
}

const dropCollection = (api: QdrantApi, name: string, signal: AbortSignal): Promise<boolean> =>
  api.ask((calls, init) => calls.deleteCollection({ collection_name: name }, init), {
    what: `remove ${name}`,
    form: resultOf(z.boolean()),
    signal,
    write: true,
  });
