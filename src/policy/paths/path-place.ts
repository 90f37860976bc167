import { below, foldPath, isDependencies, isInside, protectedFolded } from "../../core/file-names.ts";
import { processSecret, type SpecialKind, specialKind } from "./devices.ts";
import { type IgnoreRules, isIgnored } from "./ignore-rules.ts";
import { resolvePath } from "./normal-path.ts";
import { namedSecretAt, secretAt } from "./secret-paths.ts";
import { HOME_STARTUP, SYSTEM_STARTUP } from "./startup-paths.generated.ts";
import { endOfName, findPrefix, isSystem, isTemp, prefixTable, tempFolderOf } from "./system-paths.ts";

export type Op = "read" | "write";

/** All folders are absolute and resolved (`resolvePath("/", …)`). */
export interface Surroundings {
  readonly workspace: string;
  /** Base of relative paths; the workspace by default. */
  readonly cwd?: string;
  readonly home: string;
  readonly ignore?: IgnoreRules;
}

export type PlaceKind = "workspace" | "temp" | "system" | "home" | "outside" | SpecialKind;

/** The location of a path, by its text alone, and its consequences for the operation. */
export interface PlaceOf {
  /** Absolute and resolved. */
  readonly path: string;
  readonly kind: PlaceKind;
  /** For a read: why it may show a password or a key. */
  readonly secret: string | null;
  /** For a write: the host program that runs or obeys a file of that name. */
  readonly protected: string | null;
  /** For a write outside of workspaces: why the host runs or obeys it. */
  readonly trap: string | null;
  readonly ignored: boolean;
}

export const placeOf = (path: string, op: Op, around: Surroundings): PlaceOf =>
  placeOfResolved(resolvePath(around.cwd ?? around.workspace, path), op, around);

/** The same for a path that is absolute and resolved. */
export function placeOfResolved(at: string, op: Op, around: Surroundings): PlaceOf {
  const kind = kindOf(at, around);
  const folded = kind === "null-device" ? "/" : foldPath(at);
  const write = op === "write";
  return {
    path: at,
    kind,
    secret: write ? null : secretOf(kind, folded),
    protected: write ? protectedOf(kind, at, folded, around.workspace) : null,
    trap: write ? startupAt(folded, around) : null,
    ignored: isHidden(at, around),
  };
}

/**
 * Whether a read of the resolved path shows a secret or a hidden file or, if the path may be written too, a write
 * reaches something that the host obeys: the findings of `placeOfResolved` for both operations at once.
 */
export function isKept(at: string, mayWrite: boolean, around: Surroundings): boolean {
  const kind = kindOf(at, around);
  const folded = kind === "null-device" ? "/" : foldPath(at);
  if (secretOf(kind, folded) !== null || isHidden(at, around)) return true;
  return (
    mayWrite &&
    (protectedOf(kind, at, folded, around.workspace) !== null || startupAt(folded, around) !== null)
  );
}

function isHidden(at: string, { workspace, ignore }: Surroundings): boolean {
  if (ignore === undefined) return false;
  const lists = [{ folder: workspace, rules: ignore }, ...(ignore.above ?? [])];
  return lists.some(({ folder, rules }) => isInside(folder, at) && isIgnored(rules, below(folder, at)));
}

function kindOf(path: string, { workspace, home }: Surroundings): PlaceKind {
  const special = specialKind(path);
  if (special !== undefined) return special === "proc" && isSystem(path) ? "system" : special;
  if (isInside(workspace, path)) return "workspace";
  if (isTemp(path)) return "temp";
  if (isSystem(path)) return "system";
  return isInside(home, path) ? "home" : "outside";
}

/**
 * Whether a path among temporary files is somebody's own, so that file tools must not take it for a temporary one: it
 * lies in the home, or below the same first folder as the workspace. What a command does there stays in the box, as
 * with any temporary file.
 */
export function isOwnedTemp({ kind, path }: PlaceOf, { workspace, home }: Surroundings): boolean {
  if (kind !== "temp") return false;
  if (tempFolderOf(home) !== undefined && isInside(home, path)) return true;
  const around = tempFolderOf(workspace);
  return around !== undefined && isInside(around, path);
}

function secretOf(kind: PlaceKind, folded: string): string | null {
  if (kind === "null-device") return null;
  return kind === "system" ? namedSecretAt(folded) : (secretAt(folded) ?? processSecret(folded));
}

const GIT = protectedFolded(".git", true)?.why ?? "git";

function protectedOf(kind: PlaceKind, path: string, folded: string, workspace: string): string | null {
  // Nothing in temporary folders starts by itself; a workspace there is treated as a workspace.
  if (kind === "temp" || kind === "null-device") return null;
  if (folded.endsWith("/.git") || folded.includes("/.git/")) return GIT;
  return kind === "workspace"
    ? protectedBelow(foldPath(below(workspace, path)), true)
    : protectedBelow(folded.slice(1), false);
}

/** Reason of the first protected name. Inside of dependency folders no name counts, except git's (above). */
function protectedBelow(folded: string, inWorkspace: boolean): string | null {
  for (let start = 0; start < folded.length;) {
    const end = endOfName(folded, start);
    const name = folded.slice(start, end);
    const entry = protectedFolded(name, inWorkspace && start === 0);
    if (entry !== undefined) return entry.why;
    if (isDependencies(name)) return null;
    start = end + 1;
  }
  return null;
}

/** Parents of home folders, from `/`: first name → number of names that lead to a home. */
const HOMES: ReadonlyMap<string, number> = new Map([
  ["home", 2],
  ["users", 2],
  ["root", 1],
]);

/** Checks every home folder: in a box the host's user may have any name. */
function startupAt(folded: string, { home, workspace }: Surroundings): string | null {
  const ownHome = foldPath(home);
  const own = isInside(ownHome, folded) ? startupInHome(below(ownHome, folded)) : null;
  return own ?? startupInHome(belowHome(folded, workspace)) ?? startupOfSystem(below("/", folded));
}

/** The path below a home folder; empty for a workspace that merely lies where homes do, as /home/project. */
function belowHome(folded: string, workspace: string): string {
  let end = endOfName(folded, 1);
  const names = HOMES.get(folded.slice(1, end)) ?? 0;
  if (names === 0) return "";
  if (names === 2) end = endOfName(folded, end + 1);
  return end === workspace.length && folded.startsWith(foldPath(workspace)) ? "" : folded.slice(end + 1);
}

const IN_HOME = prefixTable(HOME_STARTUP);

const IN_SYSTEM = prefixTable(SYSTEM_STARTUP);

/** Why a write to the path is a trap for the host. The path is folded and starts at a home folder. */
export const startupInHome = (folded: string): string | null => findPrefix(IN_HOME, folded);

/** The same for a folded path from `/`. */
export const startupOfSystem = (folded: string): string | null => findPrefix(IN_SYSTEM, folded);
