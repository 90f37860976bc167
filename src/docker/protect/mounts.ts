import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";

/** True for the folder itself and everything below it. */
export const within = (folder: string, file: string): boolean =>
  file === folder || file.startsWith(folder.endsWith(path.sep) ? folder : folder + path.sep);

/** Parents before children, and nothing that lies in another of them. */
export function outermost(paths: Iterable<string>): readonly string[] {
  const kept = new Set<string>();
  for (const file of [...new Set(paths)].toSorted(parentsFirst))
    if (!ancestors(file).some((folder) => kept.has(folder))) kept.add(file);
  return [...kept];
}

const depth = (file: string): number => file.split(path.sep).length;

const parentsFirst = (a: string, b: string): number => depth(a) - depth(b) || (a < b ? -1 : a > b ? 1 : 0);

function ancestors(file: string): readonly string[] {
  const found: string[] = [];
  for (let up = path.dirname(file); up !== path.dirname(up); up = path.dirname(up)) found.push(up);
  return found;
}

/** The folders between the workspace and its protected paths, without both. */
function pins(root: string, readOnly: readonly string[]): readonly string[] {
  const folders = readOnly.flatMap((file) => ancestors(file).filter((up) => up !== root && within(root, up)));
  return [...new Set(folders)].toSorted(parentsFirst);
}

export interface Arranged {
  readonly readOnly: readonly string[];
  readonly pinned: readonly string[];
  readonly warnings: readonly string[];
}

/** A container start grows with its mounts; the engine itself names no limit. */
const MOUNTS = 200;

/** The mounts for these paths. Too many: the folders that hold most of them become read-only as a whole. */
export function arrange(root: string, paths: Iterable<string>, limit = MOUNTS): Arranged {
  const warnings: string[] = [];
  let readOnly = outermost(paths);
  for (;;) {
    const pinned = pins(root, readOnly);
    const excess = readOnly.length + pinned.length - limit;
    if (excess <= 0) return { readOnly, pinned, warnings };
    const folder = bestToClose(pinned, [...readOnly, ...pinned], excess);
    if (folder === undefined) throw tooMany(root, limit);
    warnings.push(`${folder} is read-only as a whole: it holds too many protected paths for a mount each`);
    readOnly = outermost([...readOnly, folder]);
  }
}

/** The smallest folder that saves enough mounts, else the one that saves most. */
function bestToClose(
  pinned: readonly string[],
  mounts: readonly string[],
  excess: number,
): string | undefined {
  const counts = new Map(pinned.map((folder) => [folder, 0]));
  for (const mount of mounts)
    for (const up of ancestors(mount)) {
      const count = counts.get(up);
      if (count !== undefined) counts.set(up, count + 1);
    }
  const saving = [...counts].filter(([, saved]) => saved > 0).toSorted(([, a], [, b]) => a - b);
  return (saving.find(([, saved]) => saved >= excess) ?? saving.at(-1))?.[0];
}

const tooMany = (root: string, limit: number): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${root} holds more than ${limit} protected paths in folders side by side`,
    "start in one of its folders, or use --mode read-only",
  );
