/** A table of paths that start at one known folder: why → rows. Rows are folded; each stands for itself and all below. */
export type Rows = Readonly<Record<string, readonly string[]>>;

/** By the first name of a row, then by the whole row. */
export type PrefixTable = ReadonlyMap<string, ReadonlyMap<string, string>>;

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

/** No row has more names; a test holds the tables to it. */
export const DEEPEST = 5;

/** The reason of the row that the path is, or lies below. Both have no leading slash. */
export function findPrefix(table: PrefixTable, path: string): string | null {
  let end = endOfName(path, 0);
  const under = table.get(path.slice(0, end));
  if (under === undefined) return null;
  for (let names = 0; names < DEEPEST; names += 1) {
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
