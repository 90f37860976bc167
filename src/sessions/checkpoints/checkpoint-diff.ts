import type { Steps } from "../../core/checkpoint-port.ts";
import {
  type FileDiff,
  type FileSide,
  hunksOf,
  lineCounts,
  type LineDiff,
  splitLines,
} from "../../core/text/line-diff.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import { type Entry, type FileEntry, sameContent, sameEntry } from "./entry.ts";
import { textOf } from "./file-content.ts";
import { lineChanges } from "./merge-lines.ts";
import type { Packs } from "./packs.ts";
import { spansOf, standingOf, wholeSteps } from "./spans.ts";
import type { EntryChange } from "./tree-merge.ts";

export interface SessionDiff {
  readonly files: readonly FileDiff[];
  /** The last step was killed, so the present workspace counts as its end. */
  readonly cut: boolean;
  /** From this step on nothing could be stored. */
  readonly lostFrom: number | null;
}

/** What the session's work changed in the workspace, without what was undone. */
export async function sessionDiff(
  store: CheckpointStore,
  { session, steps, from }: { readonly session: string; readonly steps: Steps; readonly from: number },
): Promise<SessionDiff> {
  const standing = standingOf(steps.all());
  const live = standing.live.filter(({ step }) => step > from);
  const cut = live.at(-1)?.after === null;
  const now = cut ? await store.take(session) : "";
  const spans = spansOf(wholeSteps(live, now).whole, store.trees);
  const changes = [...spans].flatMap(([path, all]): readonly EntryChange[] => {
    const change = { path, from: all[0]?.from, to: all.at(-1)?.to };
    return sameEntry(change.from, change.to) ? [] : [change];
  });
  return { files: filesOf(changes, store.packs), cut, lostFrom: standing.lost?.step ?? null };
}

/** Sorted by path. A deleted file and a new file with the same content count as a rename. */
export function filesOf(changes: readonly EntryChange[], packs: Packs): readonly FileDiff[] {
  const gone = new Map<string, EntryChange[]>();
  for (const change of changes)
    if (change.to === undefined && change.from?.kind === "file" && change.from.size > 0) {
      const key = keyOf(change.from);
      gone.set(key, [...(gone.get(key) ?? []), change]);
    }
  const renamed = new Set<EntryChange>();
  const files = byPath(changes).map((change): FileDiff => {
    const { from, to } = change;
    const source = from === undefined && to?.kind === "file" ? gone.get(keyOf(to))?.shift() : undefined;
    if (source === undefined) return fileOf(change, packs);
    renamed.add(source);
    const sides = { before: sideOf(source.from), after: sideOf(to) };
    return { path: change.path, change: "renamed", was: source.path, ...sides, lines: SAME };
  });
  const taken = new Set([...renamed].map(({ path }) => path));
  return files.filter(({ path, change }) => change !== "deleted" || !taken.has(path));
}

const SAME: LineDiff = { added: 0, removed: 0, hunks: [] };

const byPath = (changes: readonly EntryChange[]): readonly EntryChange[] =>
  changes.toSorted((a, b) => (a.path < b.path ? -1 : 1));

const keyOf = ({ pieces }: FileEntry): string => pieces.join(" ");

function fileOf({ path, from, to }: EntryChange, packs: Packs): FileDiff {
  const change = from === undefined ? "added" : to === undefined ? "deleted" : "modified";
  const sides = { before: sideOf(from), after: sideOf(to) };
  return { path, change, was: null, ...sides, lines: linesOf(from, to, packs) };
}

function linesOf(from: Entry | undefined, to: Entry | undefined, packs: Packs): FileDiff["lines"] {
  if (from?.kind === "file" && to?.kind === "file" && sameContent(from, to)) return SAME;
  const [before, after] = [asText(from, packs), asText(to, packs)];
  return before === undefined || after === undefined ? null : diffOf(before, after);
}

/** The text of a link is its target. */
function asText(entry: Entry | undefined, packs: Packs): string | undefined {
  if (entry === undefined || entry.kind === "folder") return "";
  if (entry.kind === "link") return entry.target;
  return entry.kind === "file" ? textOf(packs, entry) : undefined;
}

function sideOf(entry: Entry | undefined): FileSide | null {
  if (entry === undefined) return null;
  if (entry.kind === "link") return { kind: "link", mode: null, size: entry.target.length };
  const kind = entry.kind === "odd" ? entry.what : entry.kind;
  return { kind, mode: entry.mode, size: "size" in entry ? entry.size : 0 };
}

const AROUND = 3;
/** Texts that differ in more lines are shown as one change. */
const MAX_CHANGED_LINES = 2000;

function diffOf(from: string, to: string): LineDiff {
  const [before, after] = [splitLines(from), splitLines(to)];
  const changes = lineChanges(before, after, MAX_CHANGED_LINES);
  return { ...lineCounts(changes), hunks: hunksOf(changes, { before, after }, AROUND) };
}
