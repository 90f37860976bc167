/** Manifests and lock files: their fields, the packages that they fix, and which lock a file is. Pure. */
import { parse as parseJsonc, type ParseError } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { type Fields, isFields } from "../core/raw-data.ts";

/** Manifests are small; a larger text is not read as one. */
const MAX_MANIFEST = 4 * 2 ** 20;

/** The fields of an object, or of a JSON text, in which comments and trailing commas are accepted. */
export function fieldsOf(value: unknown, most = MAX_MANIFEST): Fields | undefined {
  if (typeof value !== "string") return isFields(value) ? value : undefined;
  if (value.length > most) return undefined;
  const text = value.startsWith("\ufeff") ? value.slice(1) : value;
  try {
    const plain: unknown = JSON.parse(text);
    return isFields(plain) ? plain : undefined;
  } catch {
    return parseLooseJson(text);
  }
}

/** The parser is recursive. */
const MAX_DEPTH = 200;

/** Whether a text is complete JSON, apart from comments and trailing commas. */
function isWholeJson(text: string): boolean {
  if (isDeep(text)) return false;
  const errors: ParseError[] = [];
  return isFields(parseJsonc(text, errors, { allowTrailingComma: true })) && errors.length === 0;
}

function isDeep(text: string): boolean {
  let [depth, deepest] = [0, 0];
  for (const character of text) {
    if (character === "[" || character === "{") deepest = Math.max(deepest, (depth += 1));
    else if (character === "]" || character === "}") depth -= 1;
  }
  return deepest > MAX_DEPTH;
}

function parseLooseJson(text: string): Fields | undefined {
  if (isDeep(text)) return undefined;
  const errors: ParseError[] = [];
  const value: unknown = parseJsonc(text, errors, { allowTrailingComma: true });
  return isFields(value) ? value : undefined;
}

export function tomlOf(text: string, most = MAX_MANIFEST): Fields | undefined {
  if (text.length > most) return undefined;
  try {
    return parseToml(text, { maxDepth: MAX_DEPTH });
  } catch {
    return undefined;
  }
}

/** The value at a path of keys. */
export const fieldAt = (fields: Fields | undefined, ...keys: readonly string[]): unknown =>
  keys.reduce<unknown>((value, key) => (isFields(value) ? value[key] : undefined), fields);

/** The text of a value with or without quotes. */
export const textIn = (value: unknown): string =>
  typeof value === "string" ? value.trim().replace(/^["']|["'],?$/g, "") : "";

/** All texts in a value, however deep. */
export function textsIn(value: unknown, depth = 0): readonly string[] {
  if (typeof value === "string") return [value];
  if (depth > 20 || typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each) => textsIn(each, depth + 1));
}

const USUAL = new Set(
  "git node npm npx yarn pnpm sudo su doas ssh scp curl wget sh bash zsh python python3 pip pip3 make cmake gcc cc g++ clang go cargo rustc java javac mvn gradle docker kubectl ls cat cp mv rm ps kill grep find sed awk env id whoami gpg gh aws ssh-agent ssh-add ruby gem php composer perl vi vim code".split(
    " ",
  ),
);

/** Whether somebody who types this name means another, well-known program. */
export const isUsualProgram = (name: string): boolean => USUAL.has(name.toLowerCase());

/** One package that a lock or manifest fixes, whatever its form. */
export interface LockEntry {
  readonly ecosystem: Ecosystem;
  /** The name under which it is imported. */
  readonly name: string;
  /** The package's own name, if it is fetched under another name on purpose. */
  readonly real?: string;
  readonly version: string;
  /** Address as it is written; empty where the lock names none. */
  readonly resolved: string;
  readonly integrity: string;
  /** The lock says that the package runs code when it is installed. */
  readonly runs?: true;
  /** The path of the lock or manifest. */
  readonly from: string;
  readonly line?: number;
}

/**
 * Stands before the sum of a Go module's `go.mod`, which is the only sum where nothing else of the module is fetched.
 */
export const OF_GO_MOD = "go.mod:";

/** Name and version, as people write them. */
export const entryText = ({ name, version }: Pick<LockEntry, "name" | "version">): string =>
  version === "" ? name : `${name} ${version}`;

export type Ecosystem = "npm" | "pip" | "cargo" | "composer" | "gem" | "go" | "maven";

/** Most entries of one lock; any more are not compared. */
export const MAX_ENTRIES = 50_000;
/** Most characters of one lock. */
export const MAX_LOCK = 16 * 2 ** 20;

/* Which lock a file is, by its name or its contents, and whether the lock is complete. */

export type LockForm =
  | "npm"
  | "yarn"
  | "pnpm"
  | "bun"
  | "cargo"
  | "poetry"
  | "uv"
  | "pdm"
  | "go"
  | "requirements"
  | "pipenv"
  | "composer"
  | "bundler"
  | "gradle";

interface Form {
  /** Pattern of the whole name in lower case. */
  readonly name: RegExp;
  /** The usual name. */
  readonly usual: string;
  /** Whether a text with another name is such a lock. */
  readonly looks: (text: string) => boolean;
  /** Why a text is no such lock, or only a part of one. */
  readonly broken: (text: string) => string | undefined;
}

const PINNED = /^[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?\s*(?:===?\s*\S|@\s*[a-z+]+:\/\/)/;
const PIP_OPTION = /^--?[a-z]/;
const REQUIREMENT = /^\s*(?:$|#|-|[A-Za-z0-9./\\$"'~])/;
const GO_SUM = /^(?:\S+ v\S+ h1:\S+)?\s*$/;
const GRADLE = /^(?:#.*|empty=.*|[\w.-]+:[\w.-]+:[^\s:=]+=.*)?\s*$/;

/** Forms that could be taken for one another stand in the order in which they are told apart. */
const FORMS: Readonly<Record<LockForm, Form>> = {
  bun: {
    name: /^bun\.lock$/,
    usual: "bun.lock",
    looks: (text) =>
      /^\s*\{\s*"lockfileVersion"\s*:\s*\d[^"]*(?:"configVersion"[^"]*)?"workspaces"/.test(text),
    broken: (text) => (isWholeJson(text) ? undefined : "it is not JSON, or not complete"),
  },
  npm: {
    name: /^(?:package-lock|npm-shrinkwrap|\.package-lock)\.json$/,
    usual: "package-lock.json",
    looks: (text) => /^\s*\{/.test(text) && /"lockfileVersion"\s*:\s*\d/.test(text),
    broken: (text) =>
      ofJson(text, (fields) =>
        ["packages", "dependencies"].some((key) => !["undefined", "object"].includes(typeof fields[key])) ||
        !["packages", "dependencies", "lockfileVersion"].some((key) => key in fields)
          ? "it has neither packages nor dependencies"
          : undefined,
      ),
  },
  composer: {
    name: /^composer\.lock$/,
    usual: "composer.lock",
    looks: (text) => /^\s*\{/.test(text) && /"content-hash"\s*:/.test(text),
    broken: (text) =>
      ofJson(text, ({ packages }) => (Array.isArray(packages) ? undefined : "it has no list of packages")),
  },
  pipenv: {
    name: /^pipfile\.lock$/,
    usual: "Pipfile.lock",
    looks: (text) => /^\s*\{/.test(text) && /"pipfile-spec"\s*:/.test(text),
    broken: (text) =>
      ofJson(text, (fields) =>
        "_meta" in fields || "default" in fields ? undefined : "it has no default packages",
      ),
  },
  yarn: {
    name: /^yarn\.lock$/,
    usual: "yarn.lock",
    looks: (text) => /^# yarn lockfile v1|^__metadata:/m.test(text),
    broken: brokenYarn,
  },
  pnpm: {
    name: /^pnpm-lock\.yaml$/,
    usual: "pnpm-lock.yaml",
    looks: (text) => /^lockfileVersion:/m.test(text),
    broken: (text) => (/^lockfileVersion:/m.test(text) ? undefined : "it has no lockfileVersion"),
  },
  uv: {
    name: /^uv\.lock$/,
    usual: "uv.lock",
    looks: (text) => isToml(text) && /^(?:requires-python = |source = \{ )/m.test(text),
    broken: brokenToml,
  },
  poetry: {
    name: /^poetry\.lock$/,
    usual: "poetry.lock",
    looks: (text) => isToml(text) && /generated by Poetry|^lock-version = /m.test(text),
    broken: brokenToml,
  },
  pdm: {
    name: /^pdm\.lock$/,
    usual: "pdm.lock",
    looks: (text) => isToml(text) && /generated by PDM|^lock_version = /m.test(text),
    broken: brokenToml,
  },
  cargo: {
    name: /^cargo\.lock$/,
    usual: "Cargo.lock",
    looks: (text) => isToml(text) && /generated by Cargo|^source = "(?:registry|sparse|git)\+/m.test(text),
    broken: brokenToml,
  },
  go: {
    name: /^go(?:\.work)?\.sum$/,
    usual: "go.sum",
    looks: (text) => text.trim() !== "" && text.split("\n").every((line) => GO_SUM.test(line)),
    broken: (text) => wrongLine(text, GO_SUM),
  },
  bundler: {
    name: /^(?:gemfile|gems)\.lock(?:ed)?$/,
    usual: "Gemfile.lock",
    looks: (text) => /^GEM\n {2}remote: /m.test(text),
    broken: (text) =>
      /^(?:GEM|GIT|PATH|DEPENDENCIES)$/m.test(text)
        ? undefined
        : "it has none of the expected sections, such as GEM",
  },
  gradle: {
    name: /^(?:buildscript-)?gradle\.lockfile$/,
    usual: "gradle.lockfile",
    looks: (text) => /^[\w.-]+:[\w.-]+:[^\s:=]+=/m.test(text) && wrongLine(text, GRADLE) === undefined,
    broken: (text) => wrongLine(text, GRADLE),
  },
  requirements: {
    name: /^(?:.*requirements.*|constraints.*)\.(?:txt|in)$/,
    usual: "requirements.txt",
    looks: (text) => {
      const lines = text.split("\n").filter((line) => !/^\s*(?:#|--hash=|$)/.test(line));
      return (
        lines.some((line) => PINNED.test(line)) &&
        lines.every((line) => PINNED.test(line) || PIP_OPTION.test(line))
      );
    },
    broken: (text) => wrongLine(text.replaceAll("\\\n", " "), REQUIREMENT),
  },
};

const EACH = Object.entries(FORMS) as readonly (readonly [LockForm, Form])[];

/** The form by the name alone, which is given in lower case. */
export const lockFormNamed = (lower: string): LockForm | undefined =>
  EACH.find(([, { name }]) => name.test(lower))?.[0];

/** Characters at the beginning of a text that are enough to tell its form. */
const HEAD_LENGTH = 2 ** 16;

/** The form of a file with any name, such as one that `git show` wrote. */
export function lockFormOf(lower: string, text: string): LockForm | undefined {
  const head = text.length > HEAD_LENGTH ? text.slice(0, text.lastIndexOf("\n", HEAD_LENGTH)) : text;
  return lockFormNamed(lower) ?? EACH.find(([, { looks }]) => looks(head))?.[0];
}

export const usualName = (form: LockForm): string => FORMS[form].usual;

/** Forms that are empty where nothing is locked. */
const MAY_BE_EMPTY: ReadonlySet<LockForm> = new Set<LockForm>(["go", "requirements", "gradle"]);

/** Why findings about the lock would not be true; undefined if it can be read to its end. */
export function brokenLock(form: LockForm, text: string): string | undefined {
  if (text.trim() === "") return MAY_BE_EMPTY.has(form) ? undefined : "it is empty";
  const conflict = /^(?:<{7} |>{7} )/m.exec(text);
  if (conflict !== null) return `line ${lineOf(text, conflict.index)} belongs to an unfinished merge`;
  return FORMS[form].broken(text);
}

const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length;

function ofJson(text: string, problem: (fields: Fields) => string | undefined): string | undefined {
  try {
    const value: unknown = JSON.parse(text.startsWith("\ufeff") ? text.slice(1) : text);
    return isFields(value) ? problem(value) : "it is not a JSON object";
  } catch {
    return "it is not JSON, or not complete";
  }
}

const isToml = (text: string): boolean => /^\[\[package\]\]/m.test(text);

function brokenToml(text: string): string | undefined {
  const fields = tomlOf(text, MAX_LOCK);
  if (fields === undefined) return "it is not TOML, or not complete";
  const packages = fieldAt(fields, "package");
  const isEmpty = packages === undefined && ["version", "metadata"].some((key) => key in fields);
  return Array.isArray(packages) || isEmpty ? undefined : "it has no list of packages";
}

/** Blocks at the beginning of a line; those of packages have a version. */
function brokenYarn(text: string): string | undefined {
  let [head, isWhole] = [0, true];
  for (const [at, line] of text.split("\n").entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    if (/^\s/.test(line)) isWhole ||= /^ +"?version"?:? /.test(line);
    else {
      if (!line.trimEnd().endsWith(":")) return `line ${at + 1} does not belong in such a lock`;
      if (!isWhole) break;
      [head, isWhole] = [at + 1, line.startsWith("__metadata:")];
    }
  }
  return isWhole ? undefined : `the entry on line ${head} has no version`;
}

function wrongLine(text: string, form: RegExp): string | undefined {
  const at = text.split("\n").findIndex((line) => !form.test(line));
  return at === -1 ? undefined : `line ${at + 1} does not belong in such a lock`;
}
