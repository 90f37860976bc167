import { z } from "zod";
import { type QdrantApi, resultOf, written } from "./api.ts";
import { orWithout } from "./collections.ts";
import { type Filter, ofIndex } from "./filters.ts";
import { isOurs } from "./names.ts";
import type { Seat } from "./seat.ts";

const listed = resultOf(z.object({ collections: z.array(z.object({ name: z.string() })) }));

/**
 * From all collections of ours, those of models that the index had before too. One in which nothing is left goes with
 * it; another index that is just being begun makes it again.
 */
export async function clearIndex({ api, identity }: Seat, signal: AbortSignal): Promise<void> {
  const { collections } = await api.ask((calls, init) => calls.getCollections({}, init), {
    what: "list its collections",
    form: listed,
    signal,
  });
  for (const { name } of collections.filter((one) => isOurs(one.name))) {
    await orWithout(removePoints(api, name, ofIndex(identity.index), signal), undefined);
    const left = api.ask((calls, init) => calls.countPoints({ collection_name: name, exact: true }, init), {
      what: "count what is left",
      form: resultOf(z.object({ count: z.int() })),
      signal,
    });
    if ((await orWithout(left, null))?.count === 0) await drop(api, name, signal);
  }
}

export async function removePoints(
  api: QdrantApi,
  collection: string,
  filter: Filter,
  signal: AbortSignal,
): Promise<void> {
  const body = { collection_name: collection, wait: true, filter };
  await api.ask((calls, init) => calls.deletePoints(body, init), {
    what: "remove what is gone",
    form: written,
    signal,
    write: true,
  });
}

const drop = (api: QdrantApi, name: string, signal: AbortSignal): Promise<boolean> =>
  api.ask((calls, init) => calls.deleteCollection({ collection_name: name }, init), {
    what: `remove ${name}`,
    form: resultOf(z.boolean()),
    signal,
    write: true,
  });
