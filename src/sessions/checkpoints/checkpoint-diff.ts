import { diffArrays } from "diff";
import type { Step, StepStore } from "../../core/session.ts";
import {
  type LineChange,
  changesOf,
  differingLines,
  type FileDiff,
  type FileSide,
  hunksOf,
  lineCounts,
  type LineDiff,
  splitLines,
} from "../../core/text/line-diff.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import { type Entry, type FileEntry, MAX_TEXT, sameContent, sameEntry, textOf } from "./entry.ts";
import type { Packs } from "./packs.ts";
import { type EntryChange, type TreeFiles, TreeWalk } from "./file-tree.ts";

/** What was changed: path by path between the trees of steps, and line by line between two texts. */

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
  { session, steps, from }: { readonly session: string; readonly steps: StepStore; readonly from: number },
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
  const lines = linesOfAll(changes, packs);
  const files = byPath(changes).map((change): FileDiff => {
    const { from, to } = change;
    const source = from === undefined && to?.kind === "file" ? gone.get(keyOf(to))?.shift() : undefined;
    if (source === undefined) return fileOf(change, lines.get(change));
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

/** `lines` is left out if the diff has no room for them. */
function fileOf({ path, from, to }: EntryChange, lines: FileDiff["lines"] | undefined): FileDiff {
  const change = from === undefined ? "added" : to === undefined ? "deleted" : "modified";
  const sides = { before: sideOf(from), after: sideOf(to) };
  const file = { path, change, was: null, ...sides, lines: lines ?? null } as const;
  return lines === undefined ? { ...file, cut: true } : file;
}

/** The most bytes that the lines of one diff take up: a command makes any number of names for one file. */
const MAX_DIFF_BYTES = 2 ** 28;
/** What a line takes up besides its text. */
const LINE_BYTES = 40;

/** Equal changes are compared once. If not all lines fit, those of the largest files are left out. */
function linesOfAll(
  changes: readonly EntryChange[],
  packs: Packs,
): ReadonlyMap<EntryChange, FileDiff["lines"]> {
  const found = new Map<EntryChange, FileDiff["lines"]>();
  const compared = new Map<string, FileDiff["lines"]>();
  let room = MAX_DIFF_BYTES;
  const sized = changes.map((change) => ({ change, bytes: sizeOf(change.from) + sizeOf(change.to) }));
  for (const { change, bytes } of sized.toSorted((a, b) => a.bytes - b.bytes)) {
    const { from, to } = change;
    const key = `${contentKey(from)}:${contentKey(to)}`;
    const known = compared.get(key);
    if (known === undefined && bytes > room && (from === undefined || to === undefined)) continue;
    const lines = known === undefined ? linesOf(from, to, packs) : known;
    compared.set(key, lines);
    const taken = lines === null ? 0 : lengthOf(lines);
    if (taken > room) continue;
    room -= taken;
    found.set(change, lines);
  }
  return found;
}

/** Entries with the same key have the same text. */
function contentKey(entry: Entry | undefined): string {
  if (entry?.kind === "link") return `link ${entry.target}`;
  return entry?.kind === "file"
    ? `file ${keyOf(entry)}`
    : entry?.kind === "folder"
      ? ""
      : (entry?.kind ?? "");
}

/** The bytes that are read to compare the entry. */
const sizeOf = (entry: Entry | undefined): number =>
  entry?.kind === "file" && entry.size <= MAX_TEXT ? entry.size : 0;

const lengthOf = ({ hunks }: LineDiff): number =>
  hunks.reduce((sum, { lines }) => lines.reduce((all, line) => all + LINE_BYTES + line.length, sum), 0);

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

const CONTEXT_LINES = 3;
/** Texts that differ in more lines are shown as one change, and merged only as wholes, which usually fails. */
const MAX_CHANGED_LINES = 2000;

function diffOf(from: string, to: string): LineDiff {
  const [before, after] = [splitLines(from), splitLines(to)];
  const changes = lineChanges(before, after, MAX_CHANGED_LINES);
  return { ...lineCounts(changes), hunks: hunksOf(changes, { before, after }, CONTEXT_LINES) };
}

/** What runs changed at a path without an intervening change by somebody else. */
export interface ChangeSpan {
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

/** First to last. A path has several spans if somebody else changed it between two steps. */
export type Spans = ReadonlyMap<string, readonly ChangeSpan[]>;

/** A step with a tree at both ends. */
export interface WholeStep {
  readonly step: number;
  readonly before: string;
  readonly after: string;
}

/**
 * Sorted by their ends: of steps that ran side by side, each holds what changed since the previous end. Killed steps
 * come last, and the last of them ends now.
 */
export function wholeSteps(
  steps: readonly Step[],
  now: string,
): { readonly whole: readonly WholeStep[]; readonly cut: boolean } {
  const order = steps
    .filter(({ before }) => before !== null)
    .toSorted((a, b) => (a.ended ?? Infinity) - (b.ended ?? Infinity) || a.step - b.step);
  const whole: WholeStep[] = [];
  let lastEnd = -Infinity;
  for (const [at, { step, before, after, ended, at: begun }] of order.entries()) {
    const isParallel = ended === null && begun <= lastEnd;
    const from = (isParallel ? whole.at(-1)?.after : before) ?? now;
    whole.push({ step, before: from, after: after ?? (at === order.length - 1 ? now : from) });
    lastEnd = ended ?? lastEnd;
  }
  return { whole, cut: order.at(-1)?.after === null };
}

export function spansOf(steps: readonly WholeStep[], files: TreeFiles): Spans {
  const walk = new TreeWalk(files);
  const spans = new Map<string, ChangeSpan[]>();
  for (const { before, after } of steps) {
    // Changes that somebody else made between two steps do not count as work of the steps.
    for (const _ of walk.moveTo(before));
    for (const { path, from, to } of walk.moveTo(after)) {
      const known = spans.get(path) ?? [];
      spans.set(path, known);
      const last = known.at(-1);
      if (last !== undefined && sameEntry(last.to, from)) known[known.length - 1] = { from: last.from, to };
      else known.push({ from, to });
    }
  }
  for (const [path, known] of spans) {
    const left = known.filter(({ from, to }) => !sameEntry(from, to));
    if (left.length === 0) spans.delete(path);
    else spans.set(path, left);
  }
  return spans;
}

export interface StandingSteps {
  /** The steps of runs whose work still stands. */
  readonly live: readonly Step[];
  /**
   * The steps that the last undo took back, and that undo, if no step followed it. Undos that left something out belong
   * to the undo that follows them.
   */
  readonly undone: { readonly steps: readonly Step[]; readonly by: readonly Step[] } | undefined;
  /** From this step on nothing could be stored. */
  readonly lost: Step | undefined;
}

/** What remains of everything that was done and undone. An undo that left something out can still be repeated. */
export function standingOf(steps: readonly Step[]): StandingSteps {
  let live: readonly Step[] = [];
  let undone: StandingSteps["undone"];
  let lost: Step | undefined;
  for (const step of steps) {
    if (step.kind === "lost") lost = step;
    else if (step.kind === "call") {
      live = [...live, step];
      undone = undefined;
    } else if (step.kind === "undo" && step.after !== null) {
      const { target } = step;
      const isTaken = ({ step: each }: Step): boolean => target !== null && each > target;
      const repeated = undone?.by.every((by) => by.target === null) === true ? undone.by : [];
      undone = { steps: live.filter(isTaken), by: [...repeated, step] };
      live = live.filter((each) => !isTaken(each));
    } else if (step.kind === "redo" && undone !== undefined) {
      const { steps: back } = undone;
      live = [...live.filter((each) => !back.includes(each)), ...back];
      // A redo that left something out can be repeated.
      if (step.after !== null) undone = undefined;
    }
  }
  return { live, undone, lost };
}

/**
 * The changes that turn one list of lines into the other. If they add and remove more than `maxChanged` lines, they
 * become one change: the cost of a diff grows with the square of that number, and the texts are untrusted.
 */
export function lineChanges(
  before: readonly string[],
  after: readonly string[],
  maxChanged: number,
): readonly LineChange[] {
  const middle = differingLines(before, after);
  const runs =
    middle.least > maxChanged
      ? undefined
      : diffArrays(middle.before, middle.after, { maxEditLength: maxChanged });
  return changesOf(runs, middle);
}

/**
 * Merges two texts that were made from the same one; undefined if both change the same lines differently. A line
 * includes its line end. Changes of adjacent lines do not conflict.
 */
export function mergeLines(base: string, ours: string, theirs: string): string | undefined {
  const [from, a, b] = [splitLines(base), splitLines(ours), splitLines(theirs)];
  const left = [...lineChanges(from, a, MAX_CHANGED_LINES)];
  const right = [...lineChanges(from, b, MAX_CHANGED_LINES)];
  const out: string[] = [];
  let at = 0;
  for (let [mine, other] = [left[0], right[0]]; mine !== undefined || other !== undefined;) {
    if (mine !== undefined && other !== undefined && conflict(mine, other)) {
      if (!isSameChange(mine, other, a, b)) return undefined;
      right.shift();
    }
    const ahead = mine !== undefined && (other === undefined || comesFirst(mine, other));
    const [change, lines] = ahead ? [left.shift(), a] : [right.shift(), b];
    if (change === undefined) break;
    out.push(...from.slice(at, change.from), ...lines.slice(change.newFrom, change.newTo));
    at = change.to;
    [mine, other] = [left[0], right[0]];
  }
  return [...out, ...from.slice(at)].join("");
}

/** Two insertions at the same place conflict too: nobody knows which comes first. */
const conflict = (a: LineChange, b: LineChange): boolean =>
  (a.from < b.to && b.from < a.to) || (a.from === b.from && a.from === a.to && b.from === b.to);

const comesFirst = (a: LineChange, b: LineChange): boolean =>
  a.from < b.from || (a.from === b.from && a.to <= b.to);

function isSameChange(
  a: LineChange,
  b: LineChange,
  ours: readonly string[],
  theirs: readonly string[],
): boolean {
  const mine = ours.slice(a.newFrom, a.newTo);
  return (
    a.from === b.from &&
    a.to === b.to &&
    mine.length === b.newTo - b.newFrom &&
    mine.every((line, at) => line === theirs[b.newFrom + at])
  );
}
