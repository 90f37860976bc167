import { lstat } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { firstOf } from "../../core/wording.ts";

/** The mounts over protected paths, and whether they still cover what they were made for. */

/** Lists parents before children, without paths that lie in another one. */
export function outermostPaths(paths: Iterable<string>): readonly string[] {
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

interface MountArrangement {
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
  const readOnly = outermostPaths(paths);
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
  const left = outermostPaths([...readOnly, ...closed]);
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

const MAX_NAMED = 5;

const closedNote = (closed: readonly string[]): string => {
  const [are, each] = closed.length === 1 ? ["is", "it holds"] : ["are", "they hold"];
  return `${firstOf(closed, MAX_NAMED)} ${are} read-only as a whole: ${each} too many protected paths to mount each of them`;
};

const tooManyPaths = (root: string, limit: number): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${root} holds more than ${limit} protected paths in folders side by side`,
    "use --isolation overlay (nothing reaches the folder before harness apply), start in one of its folders, or use --mode read-only",
  );

/**
 * The file or folder at a path of the host. A mount covers this file and not its name: once the name is given to
 * something else, nothing protects the new file. An inode number can be reused, but not with the same birth time.
 */
export interface HostFile {
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  /** Nanoseconds since 1970, 0 if the file system does not know. */
  readonly born: string;
}

export async function hostFile(path: string): Promise<HostFile> {
  const { dev, ino, birthtimeNs } = await lstat(path, { bigint: true });
  return { path, dev: String(dev), ino: String(ino), born: String(birthtimeNs) };
}

/** The outermost of the files that are gone or were replaced. */
export async function replacedAmong(files: readonly HostFile[]): Promise<readonly string[]> {
  const now = await Promise.all(files.map(({ path }) => hostFile(path).catch(() => undefined)));
  const differs = ({ dev, ino, born }: HostFile, at: number): boolean =>
    now[at]?.dev !== dev || now[at]?.ino !== ino || now[at]?.born !== born;
  return outermostPaths(files.filter(differs).map(({ path }) => path));
}

export const MAY_HOLD = "may contain what commands in the box wrote: check it before you use it";

/** For a person, at the end of a box. If `workspace` itself was moved, the box stayed with the folder it was given. */
export const replacedNote = (path: string, workspace: string): string =>
  path === workspace
    ? `${path} was moved or replaced while the box was open: commands kept running in the folder that was there before`
    : `${path} was replaced from outside while the box was open: it lost its protection, and ${MAY_HOLD}`;

/** Another folder with the workspace's name is not ours: nothing is taken out of it. */
export const isMoved = async (workspace: string, files: readonly HostFile[]): Promise<boolean> =>
  (await replacedAmong(files.filter(({ path }) => path === workspace))).length > 0;

/** It is not known where the folder of the box went. */
export const workspaceMoved = (workspace: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${workspace} was moved or replaced while the box was open, so the folder that it wrote to was not searched for files that your programs obey`,
    "find the folder that was moved, and do not run git or an editor there until you have checked it",
  );
