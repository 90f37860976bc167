import { type Entry, keyOf, pathOf, sameEntry, type Tree } from "./entry.ts";
import { type EntryCursor, EntryList, type EntryRecord, EntryWriter } from "./entry-list.ts";

export function packed(tree: Tree): EntryList {
  return tree instanceof EntryList ? tree : listOf(tree);
}

/** Accepts records in any order. */
export function listOf(records: Iterable<EntryRecord>): EntryList {
  const all = Array.from(records, ([path, entry]) => ({ key: keyOf(path), entry }));
  const writer = new EntryWriter();
  for (const { key, entry } of all.toSorted((a, b) => Buffer.compare(a.key, b.key))) writer.add(key, entry);
  return writer.finish();
}

/** Below 0: take the first; 0: take both; above 0: take the second. */
const orderOf = (a: EntryCursor, b: EntryCursor): number =>
  b.ended ? -1 : a.compareTo(b.key.subarray(0, b.keyLength));

/** The older tree with the newer records on top; `whole`: leaves out records of removed paths. */
export function merged(older: EntryList, newer: EntryList, whole = true): EntryList {
  const writer = new EntryWriter();
  const [a, b] = [older.cursor(), newer.cursor()];
  a.next();
  b.next();
  while (!a.ended || !b.ended) {
    const order = orderOf(a, b);
    const from = order < 0 ? a : b;
    if (!whole || !from.isGone) writer.copy(from);
    if (order <= 0) a.next();
    if (order >= 0) b.next();
  }
  return writer.finish();
}

/** The tree with these entries replaced; undefined removes an entry. */
export const overlaid = (tree: Tree, changes: ReadonlyMap<string, Entry | undefined>): EntryList =>
  merged(packed(tree), listOf(changes));

export function filtered(tree: Tree, isWanted: (path: string) => boolean): EntryList {
  const writer = new EntryWriter();
  for (const cursor = packed(tree).cursor(); cursor.next();) if (isWanted(cursor.path)) writer.copy(cursor);
  return writer.finish();
}

export interface EntryChange {
  readonly path: string;
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

interface KeyChange extends Omit<EntryChange, "path"> {
  readonly key: Buffer;
}

/** In key order; a yielded key is valid only until the next one. */
export function* changedIn(before: EntryList, after: EntryList): Generator<KeyChange> {
  const [a, b] = [before.cursor(), after.cursor()];
  a.next();
  b.next();
  while (!a.ended || !b.ended) {
    const order = orderOf(a, b);
    if (order !== 0 || !a.isAlike(b)) {
      const { key, keyLength } = order < 0 ? a : b;
      const [from, to] = [order <= 0 ? a.entry : undefined, order >= 0 ? b.entry : undefined];
      if (!sameEntry(from, to)) yield { key: key.subarray(0, keyLength), from, to };
    }
    if (order <= 0) a.next();
    if (order >= 0) b.next();
  }
}

export function* changesBetween(before: EntryList, after: EntryList): Generator<EntryChange> {
  for (const { key, from, to } of changedIn(before, after)) yield { path: pathOf(key), from, to };
}
