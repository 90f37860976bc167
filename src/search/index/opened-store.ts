import path from "node:path";
import { CATALOG, tryWriter } from "../embedded/catalog-file.ts";
import type { CatalogFacts } from "../embedded/catalog.ts";
import type { IndexPlace } from "../embedded/catalog-workspace.ts";
import { setAside, troubleOf } from "../index-failure.ts";
import type { SearchStore, StoreIdentity } from "../search-store.ts";
import type { IndexOptions, StoreOpening } from "./index-means.ts";

export const storeFolder = ({ folder }: Pick<IndexPlace, "folder">): string => path.join(folder, "store");

export const vectorsOf = ({ model, dimension }: CatalogFacts): StoreIdentity["vectors"] =>
  model === null || dimension === null ? null : { model, dimension };

interface Opening extends Pick<StoreOpening, "only" | "signal"> {
  readonly before: CatalogFacts;
  readonly vectors: StoreIdentity["vectors"];
}

/** Opens the store. A damaged embedded store is set aside like a damaged catalog; its files are read again. */
export async function openedStore(
  { openStore, warn }: IndexOptions,
  place: IndexPlace,
  { before, vectors, only, signal }: Opening,
): Promise<SearchStore> {
  const folder = storeFolder(place);
  const identity = { index: place.id, vectors };
  const kept = { earlier: before.store, only: only && before.store !== null };
  const opening = { folder, identity, ...kept, access: "write" as const, signal };
  try {
    return await openStore(opening);
  } catch (thrown) {
    if (!isDamaged(thrown)) throw thrown;
    warn(`a damaged store was set aside as ${setAside(folder)} and is being rebuilt`);
    return openStore(opening);
  }
}

/** Whether no readable index is there: it belongs to another version, or is gone. */
export const isAnother = (thrown: unknown): boolean =>
  thrown instanceof Error && troubleOf(thrown.cause) === "another";

export const isDamaged = (thrown: unknown): boolean =>
  thrown instanceof Error && troubleOf(thrown.cause) === "damaged";

/**
 * Runs `work`. An index that turns out to be damaged during the work is set aside, and the work is repeated: an index
 * can always be rebuilt from the files. If another process is writing the index, that process repairs it.
 */
export async function withRepair<T>(
  { warn }: Pick<IndexOptions, "warn">,
  place: IndexPlace | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (place === undefined || !isDamaged(thrown) || !trySetAside(place)) throw thrown;
    warn(`a damaged index was set aside in ${place.folder} and is being rebuilt`);
    return await work();
  }
}

function trySetAside(place: IndexPlace): boolean {
  using lock = tryWriter(place.folder);
  if (lock === undefined) return false;
  for (const each of [path.join(place.folder, CATALOG), storeFolder(place)]) setAside(each);
  return true;
}
