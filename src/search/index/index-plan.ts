import type { Box } from "../../core/ports.ts";
import type { Catalog, CatalogFile } from "../embedded/catalog.ts";
import type { Trust } from "../index-words.ts";
import { isSameStamp, isSettled, type Listing, type PathRules, type Stamp } from "../read/found-file.ts";
import type { SearchStore } from "../search-store.ts";
import type { Cutting } from "./cutting.ts";

/** What an update has to do. */
export interface Plan {
  /** Files to read, in this order. */
  readonly changed: readonly string[];
  /** Files in the catalog that are gone from the workspace. */
  readonly gone: readonly string[];
  /** Files left out for a reason, newly or with another stamp. */
  readonly skipped: ReadonlyMap<string, CatalogFile>;
  /** Files as the catalog has them, except that those the store has lost count as unread. */
  readonly known: ReadonlyMap<string, CatalogFile>;
}

interface PlanRequest {
  readonly listing: Listing;
  readonly known: ReadonlyMap<string, CatalogFile>;
  /** The version of the current cutter. */
  readonly version: string;
  /** `times`: the files are copies that share only size and modification time with the originals. */
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
  // The file was left out for its name or size, but no longer is.
  if (row.skip === "secret" || row.skip === "huge") return true;
  return !(knownBy === "stamps" ? isSameStamp : isSameTime)(row.stamp, stamp);
}

/** Values for a file that was not read. */
export const NOTHING = { hash: null, language: null, role: null, chunks: 0 } as const;

const isSameTime = (a: Stamp, b: Stamp): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs;

/**
 * Compares the catalog with the store: they differ after an interrupted update, or if the store changed since. Files
 * that only the store has are removed from it; files that it has lost count as unread.
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
    // After the removal the counts may match by chance, and the rest would never be compared again.
    catalog.begin(store.name);
    await store.remove(strays, signal);
  }
  return new Map([...files].map(([path, file]) => [path, lost.has(path) ? { ...file, ...LOST } : file]));
}

const LOST = { hash: null, settled: false } as const;

export interface UpdateParts {
  /** The box over the workspace. */
  readonly box: Box;
  /** The workspace on the host: absolute and resolved. */
  readonly workspace: string;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  /** The id of the index. */
  readonly index: string;
  readonly trust: Trust;
  readonly rules: PathRules;
  /** Creates the cutter for this many files, when it is first needed. */
  readonly cutting: (files: number) => Cutting;
  /** Changes whenever the same text would give other pieces. */
  readonly version: string;
  readonly largest: number;
  readonly knownBy?: "stamps" | "times";
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}
