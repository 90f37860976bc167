import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { firstOf } from "../../core/wording.ts";

/** Lists parents before children, without paths that lie in another one. */
export function outermost(paths: Iterable<string>): readonly string[] {
  const kept = new Set<string>();
  for (const file of parentsFirst(new Set(paths))) if (!liesIn(file, kept)) kept.add(file);
  return [...kept];
}

/** Whether one of the folders above a path is among these. */
export function liesIn(file: string, folders: ReadonlySet<string>): boolean {
  for (let up = path.dirname(file); up !== path.dirname(up); up = path.dirname(up))
    if (folders.has(up)) return true;
  return false;
}

function parentsFirst(paths: Iterable<string>): readonly string[] {
  const known = Array.from(paths, (file) => ({ file, depth: file.split(path.sep).length }));
  known.sort((a, b) => a.depth - b.depth || (a.file < b.file ? -1 : 1));
  return known.map(({ file }) => file);
}

export interface MountArrangement {
  readonly readOnly: readonly string[];
  readonly pinned: readonly string[];
  readonly warnings: readonly string[];
}

/** Each mount makes the start of a container slower; the engine itself documents no limit. */
const MAX_MOUNTS = 200;

/**
 * The mounts for these paths; the folders between them and the workspace are pinned. If there are too many, the folders
 * that hold most of them become read-only as a whole, or the smallest folder that is enough. Each path is visited a few
 * times, however many there are.
 */
export function arrange(root: string, paths: Iterable<string>, limit = MAX_MOUNTS): MountArrangement {
  const readOnly = outermost(paths);
  const saves = savings(root, readOnly);
  let excess = readOnly.length + saves.size - limit;
  if (excess <= 0) return { readOnly, pinned: parentsFirst(saves.keys()), warnings: [] };
  const closed = new Set<string>();
  // A folder saves more mounts than any folder below it, so the folders at the top save most.
  const top = [...saves]
    .filter(([folder]) => path.dirname(folder) === root)
    .toSorted(([, a], [, b]) => a - b);
  while (excess > 0) {
    const [folder, saved] = top.pop() ?? [];
    if (folder === undefined || saved === undefined) throw tooManyPaths(root, limit);
    if (saved < excess) {
      closed.add(folder);
      excess -= saved;
      continue;
    }
    closed.add(smallest(saves, closed, excess) ?? folder);
    break;
  }
  const left = outermost([...readOnly, ...closed]);
  return {
    readOnly: left,
    pinned: parentsFirst(savings(root, left).keys()),
    warnings: [closedNote([...closed])],
  };
}

/** For each folder between the workspace and these paths: the number of mounts below it, without its own pin. */
function savings(root: string, readOnly: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const count = (file: string): void => {
    for (let up = path.dirname(file); up !== root && isInside(root, up); up = path.dirname(up))
      counts.set(up, (counts.get(up) ?? 0) + 1);
  };
  readOnly.forEach(count);
  const pins = Array.from(counts.keys());
  pins.forEach(count);
  return counts;
}

function smallest(
  saves: ReadonlyMap<string, number>,
  closed: ReadonlySet<string>,
  excess: number,
): string | undefined {
  let best: readonly [folder: string, saved: number] | undefined;
  for (const one of saves)
    if (one[1] >= excess && (best === undefined || one[1] < best[1]))
      if (!closed.has(one[0]) && !liesIn(one[0], closed)) best = one;
  return best?.[0];
}

const NAMED = 5;

const closedNote = (closed: readonly string[]): string => {
  const [are, each] = closed.length === 1 ? ["is", "it holds"] : ["are", "they hold"];
  return `${firstOf(closed, NAMED)} ${are} read-only as a whole: ${each} too many protected paths to mount each of them`;
};

const tooManyPaths = (root: string, limit: number): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${root} holds more than ${limit} protected paths in folders side by side`,
    "use --isolation overlay (nothing reaches the folder before harness apply), start in one of its folders, or use --mode read-only",
  );
