import { below, isInside } from "../../core/file-names.ts";
import { NOT_READABLE, READABLE as ROWS, TEMPORARY } from "./system-paths.generated.ts";

const READABLE = prefixTable(ROWS);

export const isSystem = (path: string): boolean =>
  findPrefix(READABLE, below("/", path)) !== null && !NOT_READABLE.some((folder) => isInside(folder, path));

export function isTemp(path: string): boolean {
  for (const folder of TEMPORARY) if (isInside(folder, path)) return true;
  return false;
}

/** The folder directly below one for temporary files that is the path or holds it; undefined for any other path. */
export function tempFolderOf(path: string): string | undefined {
  for (const folder of TEMPORARY)
    if (path.length > folder.length && isInside(folder, path))
      return path.slice(0, endOfName(path, folder.length + 1));
  return undefined;
}

/** Paths from one known folder: reason → rows. Rows are folded; each stands for itself and everything below. */
export type Rows = Readonly<Record<string, readonly string[]>>;

/** First name of a row → whole row → reason. */
type PrefixTable = ReadonlyMap<string, ReadonlyMap<string, string>>;

export function prefixTable(rows: Rows): PrefixTable {
  const table = new Map<string, Map<string, string>>();
  for (const [why, paths] of Object.entries(rows))
    for (const path of paths) {
      const [first = ""] = path.split("/");
      const under = table.get(first) ?? new Map<string, string>();
      table.set(first, under.set(path, why));
    }
  return table;
}

/** The most names in a row; a test checks the tables. */
export const MAX_DEPTH = 5;

/** The reason of the row that is the path or a folder above it. Both have no leading slash. */
export function findPrefix(table: PrefixTable, path: string): string | null {
  let end = endOfName(path, 0);
  const under = table.get(path.slice(0, end));
  if (under === undefined) return null;
  for (let names = 0; names < MAX_DEPTH; names += 1) {
    const why = under.get(path.slice(0, end));
    if (why !== undefined) return why;
    if (end === path.length) return null;
    end = endOfName(path, end + 1);
  }
  return null;
}

export function endOfName(path: string, from: number): number {
  const slash = path.indexOf("/", from);
  return slash === -1 ? path.length : slash;
}
