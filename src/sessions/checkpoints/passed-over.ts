import type { ContentReader } from "./content.ts";
import { type Entry, parentOf, type Tree } from "./entry.ts";
import { isLeftOut } from "./folder-names.ts";
import { entryAt, statsAt } from "./seen.ts";

/** What stands at one path, its content put by; owners do not count. `changed`: when it last was, in milliseconds. */
export function standingAt(
  reader: ContentReader,
  root: string,
  path: string,
): { readonly entry: Entry; readonly changed: number } | undefined {
  const stats = statsAt(root, path);
  if (stats === undefined) return undefined;
  const owner = `${stats.uid}:${stats.gid}`;
  const changed = Math.max(stats.ctimeMs, stats.mtimeMs);
  return { entry: entryAt(path, stats, { root, reader, owner }), changed };
}

/** What a look at a workspace passes over: git's own, and our settings. */
export const isPassedOver = (path: string): boolean => path.split("/").some(isLeftOut);

/** The tree with these paths of what a look passes over, and the folders above them. */
export function withPassedOver(
  tree: Tree,
  paths: readonly string[],
  { reader, root }: { readonly reader: ContentReader; readonly root: string },
): Tree {
  const wanted = new Set<string>();
  for (const path of paths)
    for (let each = path; each !== "" && isPassedOver(each); each = parentOf(each)) wanted.add(each);
  if (wanted.size === 0) return tree;
  const all = new Map(tree);
  for (const path of wanted) {
    const found = standingAt(reader, root, path);
    if (found !== undefined) all.set(path, found.entry);
  }
  return all;
}
