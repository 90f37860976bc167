import type { Box } from "../../core/ports.ts";
import type { Catalog, CatalogFile } from "../embedded/catalog.ts";
import type { Trust } from "../index-words.ts";
import { isSameStamp, isSettled, type Listing, type PathRules, type Stamp } from "../read/found-file.ts";
import type { SearchStore } from "../search-store.ts";
import type { Cutting } from "./cutting.ts";

/** What an update has to do. */
export interface Plan {
  /** Read, in this order. */
  readonly changed: readonly string[];
  /** In the catalog, and no more in the workspace. */
  readonly gone: readonly string[];
  /** Left out for a reason, newly or with another stamp. */
  readonly skipped: ReadonlyMap<string, CatalogFile>;
  /** As the catalog has them, but for those that the store has lost. */
  readonly known: ReadonlyMap<string, CatalogFile>;
}

interface PlanRequest {
  readonly listing: Listing;
  readonly known: ReadonlyMap<string, CatalogFile>;
  /** Of what cuts files now. */
  readonly version: string;
  /** `times`: the files are copies, of which only size and time of change are those of the originals. */
  readonly knownBy: "stamps" | "times";
}

export function planOf(request: PlanRequest): Plan {
  const { listing, known } = request;
  const changed = [...listing.files].filter(([path, stamp]) => isChanged(request, known.get(path), stamp));
  const skipped = new Map<string, CatalogFile>();
  for (const [path, { stamp, why }] of listing.skipped) {
    const row = known.get(path);
    if (row?.skip === why && !isChanged({ ...request, knownBy: "stamps" }, { ...row, skip: null }, stamp))
      continue;
    const settled = isSettled(stamp, listing.at);
    skipped.set(path, { ...NOTHING, stamp, settled, version: request.version, skip: why });
  }
  const gone = [...known.keys()].filter((path) => !listing.files.has(path) && !listing.skipped.has(path));
  return { changed: changed.map(([path]) => path).toSorted(), gone, skipped, known };
}

function isChanged({ version, knownBy }: PlanRequest, row: CatalogFile | undefined, stamp: Stamp): boolean {
  if (row === undefined || !row.settled || row.version !== version) return true;
  // It was left out by its name or its size, and is not any more.
  if (row.skip === "secret" || row.skip === "huge") return true;
  return !(knownBy === "stamps" ? isSameStamp : isSameTime)(row.stamp, stamp);
}

/** Of a file that was not read. */
export const NOTHING = { hash: null, language: null, role: null, chunks: 0 } as const;

const isSameTime = (a: Stamp, b: Stamp): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs;

/**
 * What the catalog says, held against the store: after an update that was broken off, and where the store is not what it
 * was left as. The store may hold more than the catalog knows; that is removed. What it has lost counts as unread.
 */
export async function reconciled(
  catalog: Catalog,
  store: SearchStore,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, CatalogFile>> {
  const files = catalog.files();
  const stored = [...files].filter(([, { chunks }]) => chunks > 0);
  if (catalog.facts().whole && (await store.fileCount(signal)) === stored.length) return files;
  const held = await store.held(signal);
  const lost = new Set(stored.filter(([path, { hash }]) => held.get(path) !== hash).map(([path]) => path));
  const strays = [...held.keys()].filter((path) => (files.get(path)?.chunks ?? 0) === 0);
  if (strays.length > 0) {
    // Without them the count may match by chance, and the rest would never be compared again.
    catalog.begin(store.name);
    await store.remove(strays, signal);
  }
  return new Map([...files].map(([path, file]) => [path, lost.has(path) ? { ...file, ...LOST } : file]));
}

const LOST = { hash: null, settled: false } as const;

export interface UpdateParts {
  /** Over the workspace. */
  readonly box: Box;
  /** On the host: absolute and resolved. */
  readonly workspace: string;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  /** The id of the index. */
  readonly index: string;
  readonly trust: Trust;
  readonly rules: PathRules;
  /** Made when it is first needed, for so many files. */
  readonly cutting: (files: number) => Cutting;
  /** Changes with whatever makes other pieces of the same text. */
  readonly version: string;
  readonly largest: number;
  readonly knownBy?: "stamps" | "times";
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}
