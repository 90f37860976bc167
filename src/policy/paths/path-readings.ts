import { isInside } from "../../core/file-names.ts";
import { specialKind } from "./devices.ts";
import { resolvePath } from "./normal-path.ts";
import { type Op, type PlaceOf, placeOf, type Surroundings } from "./path-place.ts";

/**
 * Supplied by the caller: the real target of an absolute path, with every link followed and `..` applied after them, also
 * for a path that does not exist yet. Null: unknown, and the path is judged as written.
 */
export type LinkFacts = (path: string) => string | null;

/** One way to read a path; the strictest decides. */
export interface Reading {
  readonly place: PlaceOf;
  /** Suffix for each reason; empty for the path as written. */
  readonly note: string;
}

interface ReadingContext extends Surroundings {
  readonly links?: LinkFacts;
}

/** The path as written, then its real target if that is elsewhere. */
export function readingsOf(path: string, op: Op, context: ReadingContext): readonly [Reading, ...Reading[]] {
  const { links, ...rest } = context;
  const around = {
    ...rest,
    workspace: resolvePath("/", context.workspace),
    home: resolvePath("/", context.home),
  };
  if (path.startsWith("~") && !isOwnHome(path)) return [{ place: homeOfUser(path, op, around), note: "" }];
  const text = isOwnHome(path) ? around.home + path.slice(1) : path;
  const written = placeOf(text, op, around);
  // The judging machine is not asked about block devices or the view of another process.
  if (links === undefined || specialKind(written.path) !== undefined) return [{ place: written, note: "" }];
  const real = withRealFolders(around, links);
  const movedInside = !isInside(around.workspace, written.path) && isInside(real.workspace, written.path);
  const first = { place: movedInside ? placeOf(written.path, op, real) : written, note: "" };
  const paths = text.startsWith("/proc/") ? [written.path] : [written.path, absolute(text, around)];
  const targets = new Set([...new Set(paths)].map(links));
  const others = [...targets].filter((end) => end !== null && end !== written.path) as string[];
  return [first, ...others.map((end) => ({ place: placeOf(end, op, real), note: `; it leads to ${end}` }))];
}

const isOwnHome = (path: string): boolean => path === "~" || path.startsWith("~/");

/** `~name` is only known to the system; it is judged as a folder among the usual homes. */
const homeOfUser = (path: string, op: Op, around: Surroundings): PlaceOf => ({
  ...placeOf(`/home/${path.slice(1)}`, op, around),
  kind: "unknown",
  path,
});

/** Resolves the folders, so that link targets are compared with real folders. */
function withRealFolders(around: Surroundings, links: LinkFacts): Surroundings {
  const end = (folder: string): string => resolvePath("/", links(folder) ?? folder);
  return { ...around, workspace: end(around.workspace), home: end(around.home) };
}

const absolute = (path: string, { cwd, workspace }: Surroundings): string =>
  path.startsWith("/") ? path : `${cwd ?? workspace}/${path}`;
