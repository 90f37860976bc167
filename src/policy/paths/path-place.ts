/** Where a path or a shell pattern lies, and whether it is secret, protected or obeyed by the host. */
import {
  pathBelow,
  foldName,
  foldPath,
  isDependencies,
  isInside,
  lastName,
  PROTECTED,
  protectedFolded,
} from "../../core/file-names.ts";
import { type IgnoreRules, isIgnored } from "./ignore-rules.ts";
import { processSecret, resolvePath, type SpecialKind, specialKind } from "./normal-path.ts";
import { fits, type NamePattern, readPattern } from "./path-pattern.ts";
import { SECRETS } from "./secret-paths.generated.ts";
import { HOME_STARTUP, SYSTEM_STARTUP } from "./startup-paths.generated.ts";
import { NOT_READABLE, READABLE as ROWS, TEMPORARY } from "./system-paths.generated.ts";

export type PathAccess = "read" | "write";

/** All folders are absolute and resolved (`resolvePath("/", …)`). */
export interface PathBase {
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

export const placeOf = (path: string, op: PathAccess, around: PathBase): PlaceOf =>
  placeOfResolved(resolvePath(around.cwd ?? around.workspace, path), op, around);

/** The same for a path that is absolute and resolved. */
export function placeOfResolved(at: string, op: PathAccess, around: PathBase): PlaceOf {
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
export function isKept(at: string, mayWrite: boolean, around: PathBase): boolean {
  const kind = kindOf(at, around);
  const folded = kind === "null-device" ? "/" : foldPath(at);
  if (secretOf(kind, folded) !== null || isHidden(at, around)) return true;
  return (
    mayWrite &&
    (protectedOf(kind, at, folded, around.workspace) !== null || startupAt(folded, around) !== null)
  );
}

function isHidden(at: string, { workspace, ignore }: PathBase): boolean {
  if (ignore === undefined) return false;
  const lists = [{ folder: workspace, rules: ignore }, ...(ignore.above ?? [])];
  return lists.some(({ folder, rules }) => isInside(folder, at) && isIgnored(rules, pathBelow(folder, at)));
}

function kindOf(path: string, { workspace, home }: PathBase): PlaceKind {
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
export function isOwnedTemp({ kind, path }: PlaceOf, { workspace, home }: PathBase): boolean {
  if (kind !== "temp") return false;
  if (tempFolderOf(home) !== undefined && isInside(home, path)) return true;
  const around = tempFolderOf(workspace);
  return around !== undefined && isInside(around, path);
}

function secretOf(kind: PlaceKind, folded: string): string | null {
  if (kind === "null-device") return null;
  return kind === "system" ? namedSecretAt(folded) : (secretAt(folded) ?? processSecret(folded));
}

const GIT = protectedFolded(".git", true, "")?.why ?? "git";

function protectedOf(kind: PlaceKind, path: string, folded: string, workspace: string): string | null {
  // Nothing in temporary folders starts by itself; a workspace there is treated as a workspace.
  if (kind === "temp" || kind === "null-device") return null;
  if (folded.endsWith("/.git") || folded.includes("/.git/")) return GIT;
  return kind === "workspace"
    ? protectedBelow(foldPath(pathBelow(workspace, path)), true)
    : protectedBelow(folded.slice(1), false);
}

/** Reason of the first protected name. Inside of dependency folders no name counts, except git's (above). */
function protectedBelow(folded: string, inWorkspace: boolean): string | null {
  let folder = "";
  for (let start = 0; start < folded.length;) {
    const end = endOfName(folded, start);
    const name = folded.slice(start, end);
    const entry = protectedFolded(name, inWorkspace && start === 0, folder);
    if (entry !== undefined) return entry.why;
    if (isDependencies(name)) return null;
    folder = name;
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
function startupAt(folded: string, { home, workspace }: PathBase): string | null {
  const ownHome = foldPath(home);
  const own = isInside(ownHome, folded) ? startupInHome(pathBelow(ownHome, folded)) : null;
  return own ?? startupInHome(belowHome(folded, workspace)) ?? startupOfSystem(pathBelow("/", folded));
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

const PATTERN_CHARACTER = /[*?[(]/;

/**
 * `placeOf` for a path with shell patterns. Its location is its last folder without a pattern. It is secret or protected
 * when it aims at such a name: `.e*`, `*.pem`, `id_*`, `.g?t/x`, but not `*` or `*.json`, which merely could match one.
 * Rules of `.harnessignore` are matched against the pattern as written.
 */
export function placeOfPattern(pattern: string, op: PathAccess, around: PathBase): PlaceOf {
  const at = resolvePath(around.cwd ?? around.workspace, pattern);
  const special = at.search(PATTERN_CHARACTER);
  const literal = placeOf(at, op, around);
  if (special === -1) return literal;
  const folder = at.slice(0, Math.max(1, at.lastIndexOf("/", special)));
  const known = placeOf(folder, op, around);
  const names = foldPath(at.slice(folder.length))
    .split("/")
    .filter((name) => name !== "");
  const place = withFolder(literal, known);
  if (at.includes("(")) return { ...place, kind: "unknown" };
  if (op === "read") return { ...place, secret: place.secret ?? aimedAt(names, SECRET_AIMS) };
  const protects =
    known.kind === "temp"
      ? null
      : (aimedAt(names, PROTECTED_AIMS) ?? aimedAtPair(foldName(lastName(folder)), names));
  const traps = isHome(folder, around) ? aimedAt(names, HOME_AIMS) : null;
  return { ...place, protected: place.protected ?? protects, trap: place.trap ?? traps };
}

/** Location of the folder, and findings against the folder and the pattern. */
const withFolder = (literal: PlaceOf, folder: PlaceOf): PlaceOf => ({
  path: literal.path,
  kind: folder.kind,
  secret: literal.secret ?? folder.secret,
  protected: literal.protected ?? folder.protected,
  trap: literal.trap ?? folder.trap,
  ignored: literal.ignored || folder.ignored,
});

interface Aim {
  /** One name that the table row is about. */
  readonly name: string;
  readonly why: string;
  /** The end of the row's names; empty where the row gives a whole name or its start. */
  readonly end: string;
  /** The row applies to folders too, so every name of a path is compared. */
  readonly anywhere: boolean;
}

function aim(row: string, why: string, anywhere: boolean): Aim {
  const name = row.replace(/\/$/, "").replace(/\*$/, "").replace(/^\*/, "x");
  return { name, why, end: row.startsWith("*") ? row.slice(1) : "", anywhere };
}

/** A shell pattern matches a leading dot only with a literal dot. */
interface Aims {
  readonly dotted: readonly Aim[];
  readonly plain: readonly Aim[];
}

const aims = (all: readonly Aim[]): Aims => ({
  dotted: all.filter(({ name }) => name.startsWith(".")),
  plain: all.filter(({ name }) => !name.startsWith(".")),
});

const PROTECTED_AIMS = aims(
  PROTECTED.filter(({ name }) => !name.includes("/")).map(({ name, why }) => aim(name, why, true)),
);

/** Rows of two names: the second counts in a folder of the first name, or in one that a pattern names. */
const PROTECTED_PAIRS = PROTECTED.filter(({ name }) => name.includes("/")).map(({ name, why }) => {
  const [folder = "", last = ""] = name.split("/");
  return { folder: aims([aim(folder, why, true)]), name: folder, aims: aims([aim(last, why, true)]), last };
});

/** `names` begin below the folder `above`; at least one of them is a pattern. */
function aimedAtPair(above: string, names: readonly string[]): string | null {
  const path = [above, ...names];
  for (const [index, second] of path.entries()) {
    const first = path[index - 1];
    if (first === undefined) continue;
    for (const pair of PROTECTED_PAIRS) {
      if (first !== pair.name && aimedAt([first], pair.folder) === null) continue;
      const why = second === pair.last ? aimedAt([first], pair.folder) : aimedAt([second], pair.aims);
      if (why !== null) return why;
    }
  }
  return null;
}

/** Rows of a single name; for longer ones the folder is known, or there is no name to compare a pattern with. */
const SECRET_AIMS = aims(
  Object.entries(SECRETS).flatMap(([why, rows]) =>
    rows.filter((row) => !row.slice(0, -1).includes("/")).map((row) => aim(row, why, row.endsWith("/"))),
  ),
);

const HOME_AIMS = aims(
  Object.entries(HOME_STARTUP).flatMap(([why, rows]) =>
    rows.filter((row) => !row.includes("/")).map((row) => aim(row, why, true)),
  ),
);

const isHome = (folder: string, { home }: PathBase): boolean =>
  folder === home || /^\/(?:root|(?:home|Users)\/[^/]*)$/.test(folder);

function aimedAt(names: readonly string[], { dotted, plain }: Aims): string | null {
  for (const [index, name] of names.entries()) {
    if (!PATTERN_CHARACTER.test(name)) continue;
    const last = index === names.length - 1;
    const hit = name.startsWith(".") ? firstDotted(name, dotted, last) : firstPlain(name, plain, last);
    if (hit !== undefined) return hit.why;
  }
  return null;
}

function firstDotted(text: string, aims: readonly Aim[], last: boolean): Aim | undefined {
  const pattern = patternOf(text);
  return aims.find(
    ({ name, anywhere }) => (last || anywhere) && (pattern === undefined || fits(pattern, name, false)),
  );
}

/** The first row that the pattern aims at, by at least two characters of a name's start or three of a name's end. */
function firstPlain(text: string, aims: readonly Aim[], last: boolean): Aim | undefined {
  const start = text.slice(0, text.search(PATTERN_CHARACTER));
  const byEnd = text.replaceAll(/[^a-z0-9.]/g, "").length >= 3;
  if (start.length < 2 && !byEnd) return undefined;
  const pattern = patternOf(text);
  if (pattern === undefined) return undefined;
  const tail = text.length - 1 - text.search(LAST_PATTERN_CHARACTER);
  return aims.find(
    ({ name, end, anywhere }) =>
      (last || anywhere) &&
      (end === "" ? start.length >= 2 && name.startsWith(start) : byEnd && tail > commonEnd(end)) &&
      fits(pattern, name, false),
  );
}

const LAST_PATTERN_CHARACTER = /[*?[\]](?=[^*?[\]]*$)/;

/** Length of the extension that an end like `_token.txt` shares with other files. */
const commonEnd = (end: string): number => {
  const dot = end.lastIndexOf(".");
  return dot > 0 ? end.length - dot : 0;
};

const patternOf = (text: string): NamePattern | undefined => readPattern(text)?.[0];

interface SecretRow {
  readonly why: string;
  /** The names before the last one, each with its slash; empty for most rows. */
  readonly before: string;
  readonly folder: boolean;
}

const SECRET_ROWS = Object.entries(SECRETS).flatMap(([why, paths]) => paths.map((path) => ({ why, path })));

const SECRETS_BY_NAME: ReadonlyMap<string, readonly SecretRow[]> = Map.groupBy(
  SECRET_ROWS.filter(({ path }) => !path.includes("*")).map(({ why, path }) => {
    const folder = path.endsWith("/");
    const whole = folder ? path.slice(0, -1) : path;
    const start = whole.lastIndexOf("/") + 1;
    return { why, folder, name: whole.slice(start), before: whole.slice(0, start) };
  }),
  ({ name }) => name,
);

const SECRET_STARTS = SECRET_ROWS.filter(({ path }) => path.endsWith("*")).map(({ path, why }) => ({
  start: path.slice(0, -1),
  why,
}));

/** Keyed by the ending with the dot, dash or underscore that it begins with. */
const SECRET_ENDS: ReadonlyMap<string, string> = new Map(
  SECRET_ROWS.filter(({ path }) => path.startsWith("*")).map(({ path, why }) => [path.slice(1), why]),
);

const MAX_END_LENGTH = Math.max(...[...SECRET_ENDS.keys()].map((end) => end.length));

/** Why a read there may show a password or a key. The path is absolute, resolved and folded. */
export function secretAt(folded: string): string | null {
  const name = lastName(folded);
  return saysHarmless(name) ? null : (bySpelling(name) ?? byTable(folded));
}

/** By whole names only: certificates and test keys in system folders are not secret. */
const namedSecretAt = (folded: string): string | null => byTable(folded);

const EXAMPLES = [".example", ".sample", ".template", ".dist"];

/** Names that say that they hold no secret: public keys and examples of environment files. */
const saysHarmless = (name: string): boolean =>
  name.endsWith(".pub") || (name.startsWith(".env.") && EXAMPLES.some((end) => name.endsWith(end)));

/** Dash, dot and underscore. */
const SEPARATORS: ReadonlySet<number> = new Set([45, 46, 95]);

function bySpelling(name: string): string | null {
  for (let at = Math.max(0, name.length - MAX_END_LENGTH); at < name.length; at += 1) {
    if (!SEPARATORS.has(name.charCodeAt(at))) continue;
    const why = SECRET_ENDS.get(name.slice(at));
    if (why !== undefined) return why;
  }
  for (const { start, why } of SECRET_STARTS) if (name.startsWith(start)) return why;
  return null;
}

/** Marks the first characters of the table's names by their codes: most names in paths start with none of them. */
const SECRET_FIRST_LETTERS = new Uint8Array(128);
for (const name of SECRETS_BY_NAME.keys()) SECRET_FIRST_LETTERS[name.charCodeAt(0)] = 1;

function byTable(folded: string): string | null {
  for (let start = 1; start <= folded.length;) {
    const end = endOfName(folded, start);
    const rows =
      SECRET_FIRST_LETTERS[folded.charCodeAt(start)] === 1
        ? SECRETS_BY_NAME.get(folded.slice(start, end))
        : undefined;
    const row = rows?.find((each) => (each.folder || end === folded.length) && follows(folded, start, each));
    if (row !== undefined) return row.why;
    start = end + 1;
  }
  return null;
}

const follows = (folded: string, start: number, { before }: SecretRow): boolean =>
  before === "" || folded.slice(0, start).endsWith(`/${before}`);

const READABLE = prefixTable(ROWS);

export const isSystem = (path: string): boolean =>
  findPrefix(READABLE, pathBelow("/", path)) !== null &&
  !NOT_READABLE.some((folder) => isInside(folder, path));

export function isTemp(path: string): boolean {
  for (const folder of TEMPORARY) if (isInside(folder, path)) return true;
  return false;
}

/** The path is in the workspace or among the temporary files. */
export const isBoxed = (path: string, workspace: string): boolean =>
  isInside(workspace, path) || isTemp(path);

/** The folder directly below one for temporary files that is the path or holds it; undefined for any other path. */
function tempFolderOf(path: string): string | undefined {
  for (const folder of TEMPORARY)
    if (path.length > folder.length && isInside(folder, path))
      return path.slice(0, endOfName(path, folder.length + 1));
  return undefined;
}

/** Paths from one known folder: reason → rows. Rows are folded; each stands for itself and everything below. */
type Rows = Readonly<Record<string, readonly string[]>>;

/** First name of a row → whole row → reason. */
type PrefixTable = ReadonlyMap<string, ReadonlyMap<string, string>>;

export function prefixTable(rows: Rows): PrefixTable {
  const table = new Map<string, Map<string, string>>();
  for (const [why, paths] of Object.entries(rows))
    for (const path of paths) {
      const [first = ""] = path.split("/");
      const under = table.get(first) ?? new Map<string, string>();
      table.set(first, under.set(path, why));
    }
  return table;
}

/** The most names in a row; a test checks the tables. */
export const MAX_DEPTH = 5;

/** The reason of the row that is the path or a folder above it. Both have no leading slash. */
export function findPrefix(table: PrefixTable, path: string): string | null {
  let end = endOfName(path, 0);
  const under = table.get(path.slice(0, end));
  if (under === undefined) return null;
  for (let names = 0; names < MAX_DEPTH; names += 1) {
    const why = under.get(path.slice(0, end));
    if (why !== undefined) return why;
    if (end === path.length) return null;
    end = endOfName(path, end + 1);
  }
  return null;
}

function endOfName(path: string, from: number): number {
  const slash = path.indexOf("/", from);
  return slash === -1 ? path.length : slash;
}
