import type { RunChanges } from "./events.ts";

/** Something below the workspace that is not as it was. */
export interface Change {
  readonly what: "added" | "modified" | "deleted";
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits; of what was deleted, as they were. */
  readonly mode: number;
  readonly path: string;
}

/** Bytes of JSON that the paths of one list take at most: the number of paths says nothing of their length. */
export const LIST_BYTES = 2 ** 20;

export type ListedChanges = Pick<RunChanges, "added" | "modified" | "deleted" | "left_out">;

/** The first paths that fit, and how many others there are; `hides` says which are not listed. */
export function listed(
  all: Iterable<Change>,
  hides: (path: string) => boolean = () => false,
  bytes = LIST_BYTES,
): ListedChanges {
  const lists = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  const left = { added: 0, modified: 0, deleted: 0 };
  let room = bytes;
  for (const { what, path } of all) {
    if (hides(path)) continue;
    room -= jsonBytes(path) + 1;
    if (room < 0) left[what] += 1;
    else lists[what].push(path);
  }
  return room < 0 ? { ...lists, left_out: left } : lists;
}

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Those that are not listed too. */
export function countsOf({ added, modified, deleted, left_out: left }: ListedChanges): {
  readonly added: number;
  readonly modified: number;
  readonly deleted: number;
} {
  return {
    added: added.length + (left?.added ?? 0),
    modified: modified.length + (left?.modified ?? 0),
    deleted: deleted.length + (left?.deleted ?? 0),
  };
}

/** Said beside a list that is not known to be whole. */
export const UNSEEN = "and perhaps more: not all of the folder could be seen";
