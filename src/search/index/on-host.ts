import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import type { Stamp } from "../read/found.ts";

/** Names and metadata of a workspace on the host. Nothing is opened but folders, and no link is followed. */

/** Undefined where it cannot be looked into. */
export function entriesOf(workspace: string, folder: string): readonly Dirent[] | undefined {
  try {
    return readdirSync(folder === "" ? workspace : `${workspace}/${folder}`, { withFileTypes: true });
  } catch {
    return undefined;
  }
}

export function isAt(workspace: string, path: string, stamp: Stamp): boolean {
  const stats = statsOf(workspace, path);
  if (stats === undefined || !stats.isFile()) return false;
  const { size, mtimeMs, ctimeMs, ino } = stamp;
  return stats.size === size && stats.mtimeMs === mtimeMs && stats.ctimeMs === ctimeMs && stats.ino === ino;
}

export const isThere = (workspace: string, path: string): boolean => statsOf(workspace, path) !== undefined;

function statsOf(workspace: string, path: string): Stats | undefined {
  try {
    return lstatSync(`${workspace}/${path}`, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
