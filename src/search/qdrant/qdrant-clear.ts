import { z } from "zod";
import { type QdrantApi, resultOf, completedWrite } from "./qdrant-api.ts";
import { orWithout } from "./qdrant-collections.ts";
import type { QdrantContext } from "./qdrant-context.ts";
import { isOurs, COLLECTION_KINDS, withoutCollection } from "./qdrant-points.ts";
import { type Filter, ofIndex } from "./qdrant-query.ts";

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
  const own = new Set(COLLECTION_KINDS.map((shelf) => collections.name(shelf)));
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
  for (const name of pair) await orWithout(removePoints(api, name, ofIndex(index), signal), undefined);
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

export async function removePoints(
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
