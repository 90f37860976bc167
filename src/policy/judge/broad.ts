import type { Places } from "./files.ts";

/** Folders whose own folders are as good as everything. */
const SYSTEM =
  /^\/(?:bin|boot|dev|etc|home|lib\w*|media|mnt|opt|proc|root|run|s?bin|srv|sys|usr|var|Users|System|Library|Applications)(?:\/[^/]+)?$/;

/** The workspace as a whole, what lies above it, a home, the system. Patterns that take all of a folder count as the folder. */
export function isBroad(path: string, { workspace, home }: Pick<Places, "workspace" | "home">): boolean {
  const folder = wholeOf(path);
  const holds = (inner: string): boolean =>
    folder === "/" || inner === folder || inner.startsWith(`${folder}/`);
  return (
    holds(workspace) ||
    holds(home) ||
    isTop(folder) ||
    (SYSTEM.test(folder) && !folder.startsWith(`${workspace}/`))
  );
}

/** Any folder right below the root, but for temporary files. */
const isTop = (folder: string): boolean => /^\/[^/]+$/.test(folder) && folder !== "/tmp";

/** `/a/*`, `/a/.*`, `/a/[a-z]*`: without the names that are nothing but a pattern. */
function wholeOf(path: string): string {
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
