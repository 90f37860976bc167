import { type Entry, sameEntry, type Tree } from "./entry.ts";
import type { TreeFiles } from "./tree-files.ts";

export interface EntryChange {
  readonly path: string;
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

/** Goes from tree to tree with one of them in memory. */
export class TreeWalk {
  readonly #files: TreeFiles;
  #at: { readonly id: string; readonly tree: Map<string, Entry> } | undefined;

  constructor(files: TreeFiles) {
    this.#files = files;
  }

  /** What is other there; nothing for the first one. */
  moveTo(id: string): readonly EntryChange[] {
    const here = this.#at;
    if (here?.id === id) return [];
    const delta = here === undefined ? undefined : this.#files.deltaFrom(here.id, id);
    if (here === undefined || delta === undefined) {
      const tree = new Map(this.#files.load(id));
      this.#at = { id, tree };
      return here === undefined ? [] : changesBetween(here.tree, tree);
    }
    const changes: EntryChange[] = [];
    for (const path of delta.gone) {
      changes.push({ path, from: here.tree.get(path), to: undefined });
      here.tree.delete(path);
    }
    for (const [path, to] of delta.entries) {
      changes.push({ path, from: here.tree.get(path), to });
      here.tree.set(path, to);
    }
    this.#at = { id, tree: here.tree };
    return changes;
  }
}

function changesBetween(before: Tree, after: Tree): readonly EntryChange[] {
  const changes: EntryChange[] = [];
  for (const [path, from] of before)
    if (!sameEntry(from, after.get(path))) changes.push({ path, from, to: after.get(path) });
  for (const [path, to] of after) if (!before.has(path)) changes.push({ path, from: undefined, to });
  return changes;
}
