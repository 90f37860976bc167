import {
  depthOf,
  type Entry,
  type FileEntry,
  type FolderEntry,
  isBelow,
  isClosed,
  notRecreated,
  parentOf,
  putText,
  sameContent,
  sameEntry,
  textOf,
  type Tree,
} from "./entry.ts";
import { mergeLines, type ChangeSpan, type Spans } from "./checkpoint-diff.ts";
import type { Packs } from "./packs.ts";

/** One path, with its present and its target entry; null: nothing. */
export interface EntryMove {
  readonly path: string;
  readonly from: Entry | null;
  readonly to: Entry | null;
}

interface Refusal {
  readonly path: string;
  readonly reason: string;
}

export interface ChangePlan {
  /** Sorted by path. Includes folders whose mode has to be opened up on the way, with the same entry at both ends. */
  readonly ops: readonly EntryMove[];
  /** Paths whose content combines changes from both sides. */
  readonly merged: readonly string[];
  readonly refused: readonly Refusal[];
  /** Folders that the run made but that stay, because they hold other content. */
  readonly left: readonly string[];
}

/** Plans how to take these spans back from the present tree. Changes nothing except that it stores merged contents. */
export function planOf(spans: Spans, now: Tree, packs: Packs): ChangePlan {
  const wanted = new Map<string, Entry | undefined>();
  const merged: string[] = [];
  const refused: Refusal[] = [];
  for (const [path, each] of spans) {
    const resolved = resolvedTarget(each, now.get(path), packs);
    if (resolved.kind === "refused") refused.push({ path, reason: resolved.reason });
    else if (!sameEntry(resolved.target, now.get(path))) {
      wanted.set(path, resolved.target);
      if (resolved.merged) merged.push(path);
    }
  }
  const left = keepFilledFolders(wanted, now);
  refused.push(...blockedByFolders(wanted, now), ...createParents(wanted, now));
  for (const { path } of refused) wanted.delete(path);
  const ops = [...wanted].map(([path, to]) => ({ path, from: now.get(path) ?? null, to: to ?? null }));
  return { ops: byPath([...ops, ...foldersToOpen(wanted, now)]), merged, refused: byPath(refused), left };
}

const byPath = <T extends { readonly path: string }>(list: readonly T[]): readonly T[] =>
  list.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));

type Wanted = Map<string, Entry | undefined>;

/** The expected later entry at a path. */
const expectedAt = (path: string, wanted: Wanted, now: Tree): Entry | undefined =>
  wanted.has(path) ? wanted.get(path) : now.get(path);

/** Keeps folders that were to be removed but will still contain something. */
function keepFilledFolders(wanted: Wanted, now: Tree): readonly string[] {
  const removed = [...wanted].filter(([path, to]) => to === undefined && now.get(path)?.kind === "folder");
  if (removed.length === 0) return [];
  const filled = new Set<string>();
  for (const path of now.keys()) if (expectedAt(path, wanted, now) !== undefined) filled.add(parentOf(path));
  for (const [path, to] of wanted) if (to !== undefined) filled.add(parentOf(path));
  const left: string[] = [];
  for (const [path] of removed.toSorted(([a], [b]) => depthOf(b) - depthOf(a)))
    if (filled.has(path)) {
      wanted.delete(path);
      left.push(path);
      filled.add(parentOf(path));
    }
  return left.toSorted();
}

/** A file or link cannot replace a folder that holds something else. */
function blockedByFolders(wanted: Wanted, now: Tree): readonly Refusal[] {
  const replaced = [...wanted].filter(
    ([path, to]) => to !== undefined && to.kind !== "folder" && now.get(path)?.kind === "folder",
  );
  return replaced.flatMap(([path]) => {
    const stays = firstIn(
      now.keys(),
      (each) => isBelow(each, path) && expectedAt(each, wanted, now) !== undefined,
    );
    return stays === undefined ? [] : [{ path, reason: `a folder is there now, and it contains ${stays}` }];
  });
}

function firstIn<T>(all: Iterable<T>, isWanted: (one: T) => boolean): T | undefined {
  for (const one of all) if (isWanted(one)) return one;
  return undefined;
}

/** Every path needs folders above it. A missing folder is created again, unless the path is refused for one above that. */
function createParents(wanted: Wanted, now: Tree): readonly Refusal[] {
  const refused: Refusal[] = [];
  const coming = [...wanted].filter(([, to]) => to !== undefined).map(([path]) => path);
  for (const path of coming) {
    const above = foldersAbove(path).map((folder) => ({ folder, there: expectedAt(folder, wanted, now) }));
    const blocked = above.find(({ there }) => there !== undefined && there.kind !== "folder");
    if (blocked !== undefined) refused.push({ path, reason: `${blocked.folder} is no longer a folder` });
    else
      for (const { folder, there } of above)
        if (there === undefined) wanted.set(folder, { kind: "folder", mode: 0o755 });
  }
  return refused;
}

/** The nearest one first. */
export function foldersAbove(path: string): readonly string[] {
  const folder = parentOf(path);
  return folder === "" ? [] : [folder, ...foldersAbove(folder)];
}

const OWNER_RIGHTS = 0o700;

/** Folders in which something changes but whose mode does not allow it. */
function foldersToOpen(wanted: Wanted, now: Tree): readonly EntryMove[] {
  const folders = new Set([...wanted.keys()].map(parentOf));
  return [...folders].flatMap((path) => {
    const there = now.get(path);
    if (wanted.has(path) || there?.kind !== "folder" || (there.mode & OWNER_RIGHTS) === OWNER_RIGHTS)
      return [];
    return [{ path, from: there, to: there }];
  });
}

/** The target entry of a path, or why the path stays as it is. */
type Resolved =
  | { readonly kind: "target"; readonly target: Entry | undefined; readonly merged: boolean }
  | { readonly kind: "refused"; readonly reason: string };

/** Takes the spans back from the present entry, last one first. Later changes by somebody else stay. */
function resolvedTarget(spans: readonly ChangeSpan[], current: Entry | undefined, packs: Packs): Resolved {
  let target = current;
  let merged = false;
  for (const span of spans.toReversed()) {
    const next = spanTakenBack(span, target, packs);
    if (next.kind === "refused") return next;
    ({ target } = next);
    merged ||= next.merged;
  }
  return targetOf(target, merged);
}

const refusedBecause = (reason: string): Resolved => ({ kind: "refused", reason });
const targetOf = (target: Entry | undefined, merged = false): Resolved => ({
  kind: "target",
  target,
  merged,
});

function spanTakenBack({ from, to }: ChangeSpan, now: Entry | undefined, packs: Packs): Resolved {
  if (sameEntry(now, from)) return targetOf(now);
  if (sameEntry(now, to)) return restorable(from, packs);
  if (now === undefined) return refusedBecause("it was deleted since");
  if (to === undefined) return refusedBecause("something else is there now");
  if (now.kind === "folder" && to.kind === "folder")
    return isOpened(to, now) ? restorable(from, packs) : folderTarget(from, now);
  if (from?.kind === "file" && to.kind === "file" && now.kind === "file")
    return mergedTarget({ from, to, now }, packs);
  return refusedBecause("it was changed since");
}

const OPEN = 0o700;

/** When a box ends, folders that its commands closed to their owner are opened to be searched. */
const isOpened = (to: FolderEntry, now: FolderEntry): boolean =>
  isClosed(to) && now.mode === (to.mode | OPEN);

/** The folder's mode was changed since and stays; a folder that the run made is still removed if it is empty. */
function folderTarget(from: Entry | undefined, now: FolderEntry): Resolved {
  if (from === undefined) return targetOf(from);
  return from.kind === "folder" ? targetOf(now) : refusedBecause("it was changed since");
}

function restorable(from: Entry | undefined, packs: Packs): Resolved {
  if (from?.kind === "unkept") return refusedBecause(WHY_UNKEPT[from.why]);
  if (from?.kind === "odd") return refusedBecause(notRecreated(from));
  if (from?.kind === "file" && !from.pieces.every((piece) => packs.isWhole(piece)))
    return refusedBecause("its content is no longer stored");
  return targetOf(from);
}

const WHY_UNKEPT = {
  large: "its content was not saved: it was too large",
  unreadable: "its content was not saved: it could not be read",
  deep: "its content was not saved: its path is too long",
} as const;

interface ThreeWay {
  readonly from: FileEntry;
  readonly to: FileEntry;
  readonly now: FileEntry;
}

/** Merges mode and content independently. */
function mergedTarget({ from, to, now }: ThreeWay, packs: Packs): Resolved {
  const mode = now.mode === to.mode ? from.mode : now.mode;
  if (sameContent(now, to)) return restorable({ ...from, mode }, packs);
  if (sameContent(from, to) || sameContent(now, from)) return targetOf({ ...now, mode }, true);
  const texts = [to, now, from].map((entry) => textOf(packs, entry));
  const [base, ours, theirs] = texts;
  if (base === undefined || ours === undefined || theirs === undefined)
    return refusedBecause("it was changed since, and is not a text file");
  const text = mergeLines(base, ours, theirs);
  if (text === undefined) return refusedBecause("the same lines were changed since");
  return targetOf({ ...now, mode, ...putText(packs, text) }, true);
}
