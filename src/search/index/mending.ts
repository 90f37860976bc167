import path from "node:path";
import { CATALOG, tryWriter } from "../embedded/catalog-file.ts";
import type { IndexPlace } from "../embedded/catalog-workspace.ts";
import { setAside } from "../index-failure.ts";
import type { IndexOptions } from "./index-means.ts";
import { isDamaged, storeFolder } from "./opened-store.ts";

/**
 * What turns out to be damaged only while it is used is set aside, and the work done once more: all of an index comes
 * from files. When another process writes it just now, that process mends it.
 */
export async function mending<T>(
  { warn }: Pick<IndexOptions, "warn">,
  place: IndexPlace | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (place === undefined || !isDamaged(thrown) || !isSetAside(place)) throw thrown;
    warn(`a damaged index was set aside in ${place.folder}, and is built anew`);
    return await work();
  }
}

function isSetAside(place: IndexPlace): boolean {
  using lock = tryWriter(place.folder);
  if (lock === undefined) return false;
  for (const each of [path.join(place.folder, CATALOG), storeFolder(place)]) setAside(each);
  return true;
}
