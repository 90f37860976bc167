import type { RunChanges } from "./events.ts";

/** One changed path below the workspace. */
export interface Change {
  readonly what: "added" | "modified" | "deleted";
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve mode bits; for a deleted path, the former ones. */
  readonly mode: number;
  readonly path: string;
}

/** Adds later changes, so that the map describes all changes since the beginning. */
export function addChanges(all: Map<string, Change>, next: Iterable<Change>): void {
  for (const change of next) {
    const before = all.get(change.path)?.what;
    if (before === "added" && change.what === "deleted") all.delete(change.path);
    else all.set(change.path, { ...change, what: together(before, change.what) });
  }
}

function together(before: Change["what"] | undefined, now: Change["what"]): Change["what"] {
  if (before === "added") return "added";
  return before === "deleted" && now === "added" ? "modified" : now;
}

/** Earlier and later changes together, in the order of their paths. */
export function allChanges(before: ReadonlyMap<string, Change>, since: Iterable<Change>): Iterable<Change> {
  if (before.size === 0) return since;
  const all = new Map(before);
  addChanges(all, since);
  return [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Most bytes of JSON in a list; a limit on the number of paths would not limit their size. */
export const LIST_BYTES = 2 ** 20;

export type ListedChanges = Pick<RunChanges, "added" | "modified" | "deleted" | "left_out">;

/** The first paths that fit, and a count of the others. `hides` selects paths to leave out and not count. */
export function listed(all: Iterable<Change>, hides: (path: string) => boolean = () => false): ListedChanges {
  const lists = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  const left = { added: 0, modified: 0, deleted: 0 };
  let room = LIST_BYTES;
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
