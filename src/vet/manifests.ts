/** Manifests and locks: their fields, the variables that they set, and the packages that they fix. */
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
    return loose(text);
  }
}

/** The parser is recursive. */
const MAX_DEPTH = 200;

/** Whether a text is complete JSON, apart from comments and trailing commas. */
export function isWholeJson(text: string): boolean {
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

function loose(text: string): Fields | undefined {
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

/** Variables through which a program loads code, or starts another program, before it does its own work. */

const ALWAYS =
  /^(?:LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|PROMPT_COMMAND|PYTHONSTARTUP|PERL5DB|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|GIT_EXTERNAL_DIFF|GIT_PAGER|GIT_EDITOR|SSH_ASKPASS|LESSOPEN|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER)$/;
/** Variables that load code through an option that names it. */
const OPTIONS: readonly (readonly [RegExp, RegExp])[] = [
  [
    /^NODE_OPTIONS$/,
    /(?:^|\s)["']?(?:-r|--require|--import|--(?:experimental-)?loader)[\s=]\s*["']?(?:\.{0,2}\/|data:|\$)/,
  ],
  [/^(?:PERL5OPT)$/, /-M|-I\s?[./]/],
  [/^(?:RUBYOPT)$/, /-r\s?[./]/],
  [
    /^(?:JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|SBT_OPTS)$/,
    /-javaagent|-agentpath|-agentlib|OnOutOfMemoryError|OnError/,
  ],
  [/^GOFLAGS$/, /-toolexec/],
  [/^LD_PRELOAD$/, /^(?!\/(?:usr\/|lib|opt\/))\s*\S/],
];

export const isVariableThatLoads = (name: string, value: string): boolean =>
  (ALWAYS.test(name) && /[/$\s]/.test(value) && !/^\/(?:usr|etc|bin)\//.test(value)) ||
  OPTIONS.some(([names, values]) => names.test(name) && values.test(value));

interface Variable {
  readonly name: string;
  readonly value: string;
  readonly line: number;
}

/** The variables of a file with one on each line, without quotes and `export`. */
export function* variablesIn(text: string): Generator<Variable> {
  let line = 0;
  for (const each of text.split("\n")) {
    line += 1;
    const [, name, value = ""] = /^\s*(?:export\s+)?(\w{1,100})\s*=\s*(.{0,2000})$/.exec(each) ?? [];
    if (name !== undefined) yield { name, value: value.trim().replace(/^(["'])(.*)\1$/, "$2"), line };
  }
}

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
