import { type Change, type FileDiff, groupChanges, splitLines } from "../core/text/line-diff.ts";
import { filesOf } from "./checkpoints/checkpoint-diff.ts";
import { isBelow } from "./checkpoints/entry.ts";
import { putText, textOf } from "./checkpoints/file-content.ts";
import { lineChanges } from "./checkpoints/merge-lines.ts";
import type { Packs } from "./checkpoints/packs.ts";
import type { Op } from "./checkpoints/undo-plan.ts";

/** A path that would be moved, in parts that can be chosen individually. */
interface Parts {
  /** What each part does, in order. A single part if there are no lines to choose from. */
  readonly shown: readonly FileDiff[];
  /** The operation with only these parts, contents stored; undefined if none is chosen. */
  readonly only: (wanted: readonly boolean[]) => Op | undefined;
}

/** Changes with fewer lines between them form one part. */
const APART = 3;

export function partsOf(op: Op, packs: Packs): Parts {
  const { path, from, to } = op;
  const [before, after] = [from, to].map((each) => (each?.kind === "file" ? textOf(packs, each) : undefined));
  const groups = before === undefined || after === undefined ? [] : groupsOf(before, after);
  if (
    from?.kind !== "file" ||
    to?.kind !== "file" ||
    before === undefined ||
    after === undefined ||
    groups.length < 2
  )
    return { shown: diffOf(op, packs), only: ([wanted]) => (wanted === true ? op : undefined) };
  const made = (wanted: readonly boolean[]): Op => {
    const text = textWith(before, after, groups.filter((_, at) => wanted[at] === true).flat());
    // The new mode comes with whichever part is moved first.
    return { path, from, to: { ...to, ...putText(packs, text) } };
  };
  const shown = groups.flatMap((_, at) => {
    const one = made(groups.map((__, other) => other === at));
    packs.flush();
    return diffOf(one, packs);
  });
  return {
    shown,
    only: (wanted) => {
      if (!wanted.includes(true)) return undefined;
      return wanted.includes(false) ? made(wanted) : op;
    },
  };
}

const diffOf = ({ path, from, to }: Op, packs: Packs): readonly FileDiff[] =>
  filesOf([{ path, from: from ?? undefined, to: to ?? undefined }], packs);

/** Texts that differ in more lines form one part. */
const MAX_CHANGED_LINES = 400;

const groupsOf = (before: string, after: string): readonly (readonly Change[])[] =>
  groupChanges(lineChanges(splitLines(before), splitLines(after), MAX_CHANGED_LINES), APART);

function textWith(before: string, after: string, changes: readonly Change[]): string {
  const [old, now] = [splitLines(before), splitLines(after)];
  const out: string[] = [];
  let at = 0;
  for (const { from, to, newFrom, newTo } of changes) {
    out.push(...old.slice(at, from), ...now.slice(newFrom, newTo));
    at = to;
  }
  return [...out, ...old.slice(at)].join("");
}

/**
 * Makes a choice of operations consistent: new folders come with the chosen paths in them, and a folder is not replaced
 * while something stays in it.
 */
export function standing(chosen: readonly Op[], all: readonly Op[]): readonly Op[] {
  const wanted = new Set(chosen.map(({ path }) => path));
  const left = all.filter(({ path }) => !wanted.has(path));
  const possible = chosen.filter(
    ({ path, from, to }) =>
      !(from?.kind === "folder" && to !== null && to.kind !== "folder") ||
      !left.some((op) => isBelow(op.path, path)),
  );
  const parents = left.filter(
    ({ path, to }) =>
      to?.kind === "folder" && possible.some((op) => op.to !== null && isBelow(op.path, path)),
  );
  return [...possible, ...parents].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
