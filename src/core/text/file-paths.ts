/** Paths with slashes, treated purely as text: no link is followed, and nothing is looked up. */

const SLASH = 0x2f;

/** The part after the last slash. */
export const lastName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The part up to and including the last slash; empty when there is none. */
export const folderBefore = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** Both paths have no `.` or `..`, and are absolute or start at the same place. A folder is inside itself. */
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

/** A path below the folder, relative to it; any other path unchanged. */
export const asSeenFrom = (folder: string, path: string): string =>
  path !== folder && isInside(folder, path) ? below(folder, path) : path;

/** The names of a path, starting from those of a folder; undefined when it leads above the first one. */
export function namesFrom(folder: readonly string[], path: string): readonly string[] | undefined {
  const names = [...folder];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}
