/** Places so wide that deleting everything in them is never right. */
import { isInside } from "../../core/file-names.ts";

const TOPS =
  "(?:bin|boot|dev|etc|home|lib\\w*|media|mnt|opt|proc|root|run|s?bin|srv|sys|usr|var|Users|System|Library|Applications)";
/** A system folder itself. */
export const SYSTEM_TOP = new RegExp(`^/${TOPS}$`);
/** Folders whose subfolders count as everything. */
const SYSTEM = new RegExp(`^/${TOPS}(?:/[^/]+)?$`);

/**
 * The workspace itself, a folder above it, a home or a system folder. A pattern for all of a folder counts as the
 * folder.
 */
export function isBroad(
  path: string,
  { workspace, home }: { readonly workspace: string; readonly home: string },
): boolean {
  const folder = folderOfPattern(path);
  const holds = (inner: string): boolean => isInside(folder, inner);
  return (
    holds(workspace) ||
    holds(home) ||
    isTop(folder) ||
    (SYSTEM.test(folder) && !folder.startsWith(`${workspace}/`))
  );
}

/** On another machine or in a container: the root, a home or a system folder. What else lies at its root may be work. */
export function isBroadElsewhere(path: string, home: string): boolean {
  const folder = folderOfPattern(path);
  return folder === "/" || folder === home || SYSTEM_TOP.test(folder);
}

/** Any folder directly below the root, except temporary ones. */
const isTop = (folder: string): boolean => /^\/[^/]+$/.test(folder) && folder !== "/tmp";

/** `/a/*`, `/a/.*`, `/a/[a-z]*`: the path without the last names that are only a pattern. */
export function folderOfPattern(path: string): string {
  let folder = path;
  for (;;) {
    const slash = folder.lastIndexOf("/");
    const name = folder.slice(slash + 1);
    if (slash === -1 || !/[*?[]/.test(name) || /[^*?.[\]!^-]/.test(name.replaceAll(/\[[^\]]*\]/g, "?")))
      break;
    folder = folder.slice(0, slash);
  }
  return folder === "" ? "/" : folder;
}
