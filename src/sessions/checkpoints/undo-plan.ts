import {
  depthOf,
  type Entry,
  type FileEntry,
  type FolderEntry,
  isBelow,
  parentOf,
  sameContent,
  sameEntry,
  type Tree,
} from "./entry.ts";
import { putText, textOf } from "./file-content.ts";
import { mergeLines } from "./merge-lines.ts";
import type { Packs } from "./packs.ts";
import type { Span, Spans } from "./spans.ts";

/** One path that is brought from what is there to what is to be there; null: nothing. */
export interface Op {
  readonly path: string;
  readonly from: Entry | null;
  readonly to: Entry | null;
}

interface Refusal {
  readonly path: string;
  readonly reason: string;
}

export interface Plan {
  /** By path. Folders whose rights are needed on the way are among them, with the same at both ends. */
  readonly ops: readonly Op[];
  /** Paths whose content is of two hands. */
  readonly merged: readonly string[];
  readonly refused: readonly Refusal[];
  /** Folders of the run's that stay, since they hold what is not. */
  readonly left: readonly string[];
}

/** What takes these spans back from the tree as it is now. It changes nothing but for merged contents put by. */
export function planOf(spans: Spans, now: Tree, packs: Packs): Plan {
  const wanted = new Map<string, Entry | undefined>();
  const merged: string[] = [];
  const refused: Refusal[] = [];
  for (const [path, each] of spans) {
    const resolved = resolve(each, now.get(path), packs);
    if (resolved.kind === "refused") refused.push({ path, reason: resolved.reason });
    else if (!sameEntry(resolved.target, now.get(path))) {
      wanted.set(path, resolved.target);
      if (resolved.merged) merged.push(path);
    }
  }
  const left = keepFilled(wanted, now);
  refused.push(...inTheWay(wanted, now), ...withoutGround(wanted, now));
  for (const { path } of refused) wanted.delete(path);
  const ops = [...wanted].map(([path, to]) => ({ path, from: now.get(path) ?? null, to: to ?? null }));
  return { ops: inOrder([...ops, ...passages(wanted, now)]), merged, refused: inOrder(refused), left };
}

const inOrder = <T extends { readonly path: string }>(list: readonly T[]): readonly T[] =>
  list.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));

type Wanted = Map<string, Entry | undefined>;

/** What will be there, as far as it is known. */
const later = (path: string, wanted: Wanted, now: Tree): Entry | undefined =>
  wanted.has(path) ? wanted.get(path) : now.get(path);

/** Folders that would go but for what stays in them: those stay as they are. */
function keepFilled(wanted: Wanted, now: Tree): readonly string[] {
  const going = [...wanted].filter(([path, to]) => to === undefined && now.get(path)?.kind === "folder");
  if (going.length === 0) return [];
  const filled = new Set<string>();
  for (const path of now.keys()) if (later(path, wanted, now) !== undefined) filled.add(parentOf(path));
  for (const [path, to] of wanted) if (to !== undefined) filled.add(parentOf(path));
  const left: string[] = [];
  for (const [path] of going.toSorted(([a], [b]) => depthOf(b) - depthOf(a)))
    if (filled.has(path)) {
      wanted.delete(path);
      left.push(path);
      filled.add(parentOf(path));
    }
  return left.toSorted();
}

/** A file or link cannot take the place of a folder that holds something else. */
function inTheWay(wanted: Wanted, now: Tree): readonly Refusal[] {
  const replaced = [...wanted].filter(
    ([path, to]) => to !== undefined && to.kind !== "folder" && now.get(path)?.kind === "folder",
  );
  return replaced.flatMap(([path]) => {
    const stays = firstIn(
      now.keys(),
      (each) => isBelow(each, path) && later(each, wanted, now) !== undefined,
    );
    return stays === undefined ? [] : [{ path, reason: `a folder stands there, and ${stays} is in it` }];
  });
}

function firstIn<T>(all: Iterable<T>, isWanted: (one: T) => boolean): T | undefined {
  for (const one of all) if (isWanted(one)) return one;
  return undefined;
}

/** Above what is to be there, folders must be. One that is gone is made again. */
function withoutGround(wanted: Wanted, now: Tree): readonly Refusal[] {
  const refused: Refusal[] = [];
  const coming = [...wanted].filter(([, to]) => to !== undefined).map(([path]) => path);
  for (const path of coming)
    for (let folder = parentOf(path); folder !== ""; folder = parentOf(folder)) {
      const there = later(folder, wanted, now);
      if (there === undefined) wanted.set(folder, { kind: "folder", mode: 0o755 });
      else if (there.kind !== "folder") {
        refused.push({ path, reason: `${folder} is no folder any more` });
        break;
      }
    }
  return refused;
}

const ENTER = 0o700;

/** Folders in which something is done, and whose rights do not let it be done. */
function passages(wanted: Wanted, now: Tree): readonly Op[] {
  const folders = new Set([...wanted.keys()].map(parentOf));
  return [...folders].flatMap((path) => {
    const there = now.get(path);
    if (wanted.has(path) || there?.kind !== "folder" || (there.mode & ENTER) === ENTER) return [];
    return [{ path, from: there, to: there }];
  });
}

/** What is to stand at a path, or why nothing is done about it. */
type Resolved =
  | { readonly kind: "target"; readonly target: Entry | undefined; readonly merged: boolean }
  | { readonly kind: "refused"; readonly reason: string };

/** Takes the spans back from what is there now, the last one first. What somebody else made since stays. */
function resolve(spans: readonly Span[], current: Entry | undefined, packs: Packs): Resolved {
  let target = current;
  let merged = false;
  for (const span of spans.toReversed()) {
    const next = takenBack(span, target, packs);
    if (next.kind === "refused") return next;
    ({ target } = next);
    merged ||= next.merged;
  }
  return TARGET(target, merged);
}

const REFUSED = (reason: string): Resolved => ({ kind: "refused", reason });
const TARGET = (target: Entry | undefined, merged = false): Resolved => ({ kind: "target", target, merged });

function takenBack({ from, to }: Span, now: Entry | undefined, packs: Packs): Resolved {
  if (sameEntry(now, from)) return TARGET(now);
  if (sameEntry(now, to)) return restorable(from, packs);
  if (now === undefined) return REFUSED("it was deleted since");
  if (to === undefined) return REFUSED("something was put there since");
  if (now.kind === "folder" && to.kind === "folder") return folderSince(from, now);
  if (from?.kind === "file" && to.kind === "file" && now.kind === "file")
    return mergedFile({ from, to, now }, packs);
  return REFUSED("it was changed since");
}

/** Its rights were changed since: those stay; a folder of the run's goes all the same when nothing is left in it. */
function folderSince(from: Entry | undefined, now: FolderEntry): Resolved {
  if (from === undefined) return TARGET(from);
  return from.kind === "folder" ? TARGET(now) : REFUSED("it was changed since");
}

function restorable(from: Entry | undefined, packs: Packs): Resolved {
  if (from?.kind === "unkept") return REFUSED(WHY_UNKEPT[from.why]);
  if (from?.kind === "odd") return REFUSED(`a ${from.what} is not made again`);
  if (from?.kind === "file" && !from.pieces.every((piece) => packs.isWhole(piece)))
    return REFUSED("what it held is no longer kept");
  return TARGET(from);
}

const WHY_UNKEPT = {
  large: "what it held was not kept: it was too large",
  unreadable: "what it held was not kept: it could not be read",
  deep: "what it held was not kept: its path is too long",
} as const;

interface Three {
  readonly from: FileEntry;
  readonly to: FileEntry;
  readonly now: FileEntry;
}

/** Rights and content each by themselves. */
function mergedFile({ from, to, now }: Three, packs: Packs): Resolved {
  const mode = now.mode === to.mode ? from.mode : now.mode;
  if (sameContent(now, to)) return restorable({ ...from, mode }, packs);
  if (sameContent(from, to) || sameContent(now, from)) return TARGET({ ...now, mode }, true);
  const texts = [to, now, from].map((entry) => textOf(packs, entry));
  const [base, ours, theirs] = texts;
  if (base === undefined || ours === undefined || theirs === undefined)
    return REFUSED("it was changed since, and is not a text");
  const text = mergeLines(base, ours, theirs);
  if (text === undefined) return REFUSED("the same lines were changed since");
  return TARGET({ ...now, mode, ...putText(packs, text) }, true);
}
