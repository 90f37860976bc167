/** Paths with slashes, as texts alone: no link is followed, and nothing is looked up. */

const SLASH = 0x2f;

/** What stands behind the last slash. */
export const lastName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** What stands before that, with the slash; empty where there is none. */
export const folderBefore = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** Both are without `.` and `..`, and absolute or named from the same place; a folder is inside itself. */
export const isInside = (folder: string, path: string): boolean =>
  folder === "/"
    ? path.startsWith("/")
    : path.startsWith(folder) && (path.length === folder.length || path.charCodeAt(folder.length) === SLASH);

/**
 * The rest of the path below the folder, without a leading slash; empty for the folder itself. The path must lie
 * inside.
 */
export const below = (folder: string, path: string): string =>
  path.slice(folder === "/" ? 1 : folder.length + 1);

/** As it is called from the folder, where it lies below it; any other as it is. */
export const asSeenFrom = (folder: string, path: string): string =>
  path !== folder && isInside(folder, path) ? below(folder, path) : path;

/** The names that a path leads to from those of a folder; undefined where it leads out above the first. */
export function namesFrom(folder: readonly string[], path: string): readonly string[] | undefined {
  const names = [...folder];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}
