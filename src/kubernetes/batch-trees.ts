import path from "node:path";
import { isInside } from "../core/file-names.ts";
import { isMountable } from "./pod-spec.ts";

/**
 * Where the tree of a row lies in its pod. The installed files of an environment refer to the path of the folder it was
 * built for, so a row with an environment is cloned to that very path: the loop mounts its volume of trees there too.
 */

/** The environment that the box of a row starts from instead of the image in the settings. */
export interface RowEnvironment {
  /** The real path of the folder that the environment was built for. */
  readonly workspace: string;
  /** The environment's digest and everything else that a loop needs to know about it. */
  readonly record: object;
}

/** An environment with its rows, for the loops: row indexes as `0,3-5`. */
export interface EnvironmentRows {
  readonly rows: string;
  readonly environment: object;
}

export const ENVIRONMENTS_FILE = "environments.json";

/** Where the volume of trees is mounted; the tree of a row without an environment is `tree`. */
export const WORK_AT = "/work";
export const TREE_AT = `${WORK_AT}/tree`;
const TEMPORARY = "/tmp";
const STATE = "/state";
const RESULTS = "/results";

/** Program folders of the loop's image, which no mount may cover or lie in. */
const PROGRAMS = ["/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local"];
const ROOTS_HOME = "/root";

/** Maximum number of mounts for trees in a pod. */
const MAX_MOUNTS = 32;

/** Why no loop can have its tree at this path; undefined if it can. */
export function noTreeAt(workspace: string): string | undefined {
  if (/[\t\r\n\0:]/.test(workspace) || !path.isAbsolute(workspace))
    return "its path has characters that the path of a mount in a pod cannot have";
  if (path.dirname(workspace) === "/") return "it is at the top of the file system";
  if (!isMountable(workspace) || [STATE, RESULTS].some((own) => isInside(own, workspace)))
    return "a pod uses that path itself";
  const at = mountAt(workspace);
  return at !== undefined && PROGRAMS.some((place) => isInside(at, place) || isInside(place, at))
    ? "programs of the loop's image are there"
    : undefined;
}

/** The parent folder, in which the clone is made; undefined if a volume is there anyway. */
function mountAt(workspace: string): string | undefined {
  // Only root may enter its home folder, unless that is a mount itself.
  if (isInside(ROOTS_HOME, workspace)) return ROOTS_HOME;
  const above = path.dirname(workspace);
  return isInside(WORK_AT, above) || above === TEMPORARY ? undefined : above;
}

type Rows = readonly { readonly environment?: RowEnvironment }[];

/** The other places where the volume of trees is mounted, for all rows of a batch. */
export function treeMounts(rows: Rows): readonly string[] {
  const all = rows.flatMap(({ environment }) =>
    environment === undefined ? [] : (mountAt(environment.workspace) ?? []),
  );
  return [...new Set(all)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Why the rows need too many mounts for one pod; undefined if they do not. */
export const tooManyTrees = (rows: Rows): string | undefined => {
  const { length } = treeMounts(rows);
  return length > MAX_MOUNTS
    ? `the environments of the rows were built below ${length} folders, but a pod can mount at most ${MAX_MOUNTS} of them`
    : undefined;
};

/** Each environment once, with the indexes of its rows; undefined if no row has one. */
export function environmentRows(rows: Rows): readonly EnvironmentRows[] | undefined {
  const indexes = new Map<string, { readonly environment: object; readonly rows: number[] }>();
  for (const [index, { environment }] of rows.entries()) {
    if (environment === undefined) continue;
    const text = JSON.stringify(environment.record);
    const known = indexes.get(text);
    if (known === undefined) indexes.set(text, { environment: environment.record, rows: [index] });
    else known.rows.push(index);
  }
  const all = [...indexes.values()];
  return all.length === 0
    ? undefined
    : all.map((each) => ({ rows: rangesOf(each.rows), environment: each.environment }));
}

function rangesOf(sorted: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const each of sorted) {
    const last = ranges.at(-1);
    if (last?.[1] === each - 1) last[1] = each;
    else ranges.push([each, each]);
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}
