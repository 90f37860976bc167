import path from "node:path";
import { isInside } from "../core/text/file-paths.ts";
import { isMountable } from "./pod-spec.ts";

/**
 * Where the tree of a row lies in its pod. What an environment installed knows the folder that it was built for by its path,
 * so a row that has one is cloned to that very path: the loop has its volume of trees there as well.
 */

/** What the box of a row starts from, other than the image of the settings. */
export interface RowEnvironment {
  /** The folder that it was built for, by its real path. */
  readonly workspace: string;
  /** Its digest, and all else that a loop has to know of it. */
  readonly told: object;
}

/** All rows that have one, for their loops: by their indexes, as `0,3-5`. */
export interface ToldEnvironment {
  readonly rows: string;
  readonly environment: object;
}

export const ENVIRONMENTS_FILE = "environments.json";

/** Where the volume is that trees lie in; that of a row without an environment is `tree`. */
export const WORK_AT = "/work";
export const TREE_AT = `${WORK_AT}/tree`;
const TEMPORARY = "/tmp";
const STATE = "/state";
const RESULTS = "/results";

/** What the image of a loop has its programs in, and what a mount must neither cover nor lie in. */
const PROGRAMS = ["/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local"];
const ROOTS_HOME = "/root";

/** A pod has a mount for each of them. */
const MOST_MOUNTS = 32;

/** Why no loop can have its tree there; undefined where it can. */
export function noTreeAt(workspace: string): string | undefined {
  if (/[\t\r\n\0:]/.test(workspace) || !path.isAbsolute(workspace))
    return "its path has characters that no mount of a pod can have";
  if (path.dirname(workspace) === "/") return "it lies at the top of the file system";
  if (!isMountable(workspace) || [STATE, RESULTS].some((own) => isInside(own, workspace)))
    return "a pod has something of its own there";
  const at = mountAt(workspace);
  return at !== undefined && PROGRAMS.some((place) => isInside(at, place) || isInside(place, at))
    ? "programs of the loop's image lie there"
    : undefined;
}

/** The folder above, for the clone to be made in; undefined where a volume is there anyway. */
function mountAt(workspace: string): string | undefined {
  // Nobody but root passes its home folder, unless it is a mount itself.
  if (isInside(ROOTS_HOME, workspace)) return ROOTS_HOME;
  const above = path.dirname(workspace);
  return isInside(WORK_AT, above) || above === TEMPORARY ? undefined : above;
}

type Rows = readonly { readonly environment?: RowEnvironment }[];

/** Where else the volume of trees is mounted, for all rows of a batch. */
export function treeMounts(rows: Rows): readonly string[] {
  const all = rows.flatMap(({ environment }) =>
    environment === undefined ? [] : (mountAt(environment.workspace) ?? []),
  );
  return [...new Set(all)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Why the rows have too many places for one pod; undefined where they have not. */
export const tooManyTrees = (rows: Rows): string | undefined => {
  const { length } = treeMounts(rows);
  return length > MOST_MOUNTS
    ? `the environments of the rows were built below ${length} folders, and a pod has at most ${MOST_MOUNTS} of them`
    : undefined;
};

/** Each environment once, with the indexes of its rows; undefined where none has one. */
export function toldEnvironments(rows: Rows): readonly ToldEnvironment[] | undefined {
  const indexes = new Map<string, { readonly environment: object; readonly rows: number[] }>();
  for (const [index, { environment }] of rows.entries()) {
    if (environment === undefined) continue;
    const text = JSON.stringify(environment.told);
    const known = indexes.get(text);
    if (known === undefined) indexes.set(text, { environment: environment.told, rows: [index] });
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
