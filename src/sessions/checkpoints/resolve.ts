import { putText, textOf } from "./contents.ts";
import { type Entry, type FileEntry, type FolderEntry, sameContent, sameEntry } from "./entry.ts";
import { mergeLines } from "./merge.ts";
import type { Packs } from "./packs.ts";
import type { Span } from "./spans.ts";

/** What is to stand at a path, or why nothing is done about it. */
export type Resolved =
  | { readonly kind: "target"; readonly target: Entry | undefined; readonly merged: boolean }
  | { readonly kind: "refused"; readonly reason: string };

/** Takes the spans back from what is there now, the last one first. What somebody else made since stays. */
export function resolve(spans: readonly Span[], current: Entry | undefined, packs: Packs): Resolved {
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
