import type { RunChanges } from "./events.ts";

/** One changed path below the workspace. */
export interface Change {
  readonly what: "added" | "modified" | "deleted";
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve mode bits; of a deleted path, the former ones. */
  readonly mode: number;
  readonly path: string;
}

/** Upper bound of a list in bytes of JSON; a bound on the number of paths would not bound their size. */
export const LIST_BYTES = 2 ** 20;

export type ListedChanges = Pick<RunChanges, "added" | "modified" | "deleted" | "left_out">;

/** The first paths that fit, and a count of the others; `hides` selects paths that are counted apart. */
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

/** Includes the paths that are not listed. */
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

/** Shown beside a list that may be incomplete. */
export const UNSEEN = "and perhaps more: not all of the folder could be seen";
