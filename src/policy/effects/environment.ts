import { resolvePath } from "../paths/normal-path.ts";
import { isBoxed, isSystem } from "../paths/path-place.ts";
import type { Place } from "./effect.ts";
import { VARIABLES } from "./environment.generated.ts";

/** Holds the variables of a process, often with keys and passwords. */
export const ENVIRONMENT = "/proc/self/environ";

/** A pattern of the table for a whole name or value. */
const wholePattern = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);

const SECRET = new RegExp(VARIABLES.secret, "i");

/** The variable's name says that its value is secret. */
export const namesSecret = (name: string): boolean => SECRET.test(name);

/** The same for a name in the form of environment variables; other names are mostly variables of the script. */
export const exportsSecret = (name: string): boolean =>
  /^[A-Z][A-Z0-9_]*$/.test(name) && SECRET.test(name) && name !== "OLDPWD";

const INERT = new Set(VARIABLES.inert);
const PAGERS = new Set(VARIABLES.pagers);
const FILES = wholePattern(VARIABLES.inertUnlessPath);

/** The variable in front of a command changes nothing that the program does. Null: the value is unknown. */
export function isInert(name: string, value: string | null): boolean {
  if (PAGERS.has(name)) return value === "cat" || value === "";
  if (!INERT.has(name)) return false;
  return value === null || !FILES.test(name) || !/^[:/.~]|\.\./.test(value);
}

/** A shell variable that no program gets, unless the environment already has one of that name. */
export const isPrivate = (name: string): boolean =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !/^npm_|_proxy$|^_$/.test(name);

const { names, beginnings, endings, anywhere } = VARIABLES.decides;
const DECIDING_NAMES = new Set(names);
const DECIDING = new RegExp(`^(?:${beginnings.join("|")})|(?:${endings.join("|")})$|${anywhere.join("|")}`);

/** `env.own`: only the variable's own program reads it, and no known program runs its value. */
export const variableDoubt = (name: string): "env.unknown" | "env.own" =>
  DECIDING_NAMES.has(name) || DECIDING.test(name) ? "env.unknown" : "env.own";

/** Location of a path inside a value; null where it is unknown or elsewhere. */
type PathPlace = (path: string) => "inside" | "system" | null;

const LISTS = new Set(VARIABLES.lists);
const FOLDERS = new Set(VARIABLES.folders);
const RELEASES = new Set(VARIABLES.releases);
/** Lists in which the box has folders of its own from the start. */
export const BOX_LISTS: ReadonlySet<string> = new Set(VARIABLES.boxLists);

type Forms = readonly (readonly [names: RegExp, forms: readonly RegExp[]])[];
const formsOf = (rows: typeof VARIABLES.values): Forms =>
  rows.map(([names, forms]) => [wholePattern(names), forms.map(wholePattern)]);
const VALUES = formsOf(VARIABLES.values);
const WORDS = formsOf(VARIABLES.words);
const formsFor = (table: Forms, name: string): readonly RegExp[] =>
  table.filter(([names]) => names.test(name)).flatMap(([, forms]) => forms);

/** With this value, a variable that decides what runs only lets code of the workspace, the box or its system run. */
function isTameValue(name: string, value: string, lies: PathPlace): boolean {
  const near = (path: string): boolean => lies(path) !== null;
  if (LISTS.has(name)) return value.split(":").every((path) => near(path === "" ? "." : path));
  if (FOLDERS.has(name)) return value !== "" && lies(value) === "inside";
  if (RELEASES.has(name)) return value !== "" && near(value);
  if (formsFor(VALUES, name).some((form) => form.test(value))) return true;
  const shapes = formsFor(WORDS, name);
  const words = value.split(/\s+/).filter((word) => word !== "");
  return shapes.length > 0 && words.every((word) => shapes.some((shape) => fits(word, shape, near)));
}

function fits(word: string, shape: RegExp, near: (path: string) => boolean): boolean {
  const match = shape.exec(word);
  if (match === null) return false;
  const [, path] = match;
  // A bare name is resolved among the modules of the project.
  return path === undefined || near(path);
}

const ANY = wholePattern(VARIABLES.anyValue);

interface Around {
  readonly folders: readonly Place[];
  readonly workspace: string;
}

/**
 * `NAME=value` in front of a command or exported: all code that it makes run lies inside. Null: the value is unknown.
 */
export function isTame(name: string, value: string | null, { folders, workspace }: Around): boolean {
  if (ANY.test(name)) return true;
  if (value === null) return false;
  const lies = (path: string): ReturnType<PathPlace> => {
    const kinds = new Set(folders.map((folder) => kindOf(path, folder, workspace)));
    if (kinds.has(null)) return null;
    return kinds.has("system") ? "system" : "inside";
  };
  return isTameValue(name, value, lies);
}

function kindOf(path: string, folder: Place, workspace: string): ReturnType<PathPlace> {
  if (folder === null && !path.startsWith("/")) return null;
  const at = resolvePath(folder ?? "/", path);
  if (isBoxed(at, workspace)) return "inside";
  return isSystem(at) ? "system" : null;
}
