import { parse as parseToml } from "smol-toml";
import { asList, fieldsIn, fieldsOf } from "../../core/raw-data.ts";
import { globOf, MatchSteps } from "./context-files.ts";
import { NODE_LOCKS } from "./node-project.ts";
import type { Folder } from "./project-needs.ts";

/**
 * The members of workspaces: folders whose projects the installation at a workspace's top serves. Each ecosystem names
 * them by patterns.
 */

/** Patterns of a workspace's members, relative to its top; undefined if the folder is not such a top. */
export type PatternReader = (folder: Folder) => readonly string[] | undefined;

const ALL = ["**"];

/** pnpm's own file, or the manifest for all others. */
export const nodeMembers: PatternReader = (folder) => {
  const pnpm = folder.get("pnpm-workspace.yaml");
  if (pnpm !== undefined) return listIn(pnpm, "packages");
  const { workspaces } = fieldsIn(folder.get("package.json") ?? "");
  if (workspaces === undefined) return undefined;
  return textsIn(Array.isArray(workspaces) ? workspaces : fieldsOf(workspaces)["packages"]);
};

/** Without a list, paths of dependencies decide. */
export const cargoMembers: PatternReader = (folder) => {
  const text = folder.get("Cargo.toml") ?? "";
  if (!/^\s*\[workspace\]/m.test(text)) return undefined;
  const { exclude } = fieldsOf(tomlIn(text)["workspace"]);
  return [...ALL, ...textsIn(exclude).map((each) => `!${each}`)];
};

export const uvMembers: PatternReader = (folder) => {
  const { uv } = fieldsOf(tomlIn(folder.get("pyproject.toml") ?? "")["tool"]);
  const { workspace } = fieldsOf(uv);
  if (!folder.has("uv.lock") && workspace === undefined) return undefined;
  const { members, exclude } = fieldsOf(workspace);
  return [...textsIn(members), ...textsIn(exclude).map((each) => `!${each}`)];
};

/** The modules of a go.work file. */
export const goMembers: PatternReader = (folder) => {
  const text = folder.get("go.work")?.replace(/\/\/.*$/gm, "");
  if (text === undefined) return undefined;
  const blocks = [...text.matchAll(/^use[ \t]*\(([^)]*)\)/gm)].flatMap(([, block = ""]) => block.split("\n"));
  const single = [...text.matchAll(/^use[ \t]+([^\s(][^\n]*)$/gm)].map(([, one = ""]) => one);
  return [...blocks, ...single].map((one) => one.trim().replace(/^"(.*)"$/, "$1")).filter(Boolean);
};

export const allMembers =
  (isTop: (folder: Folder) => boolean): PatternReader =>
  (folder) =>
    isTop(folder) ? ALL : undefined;

/** A project below a workspace that is not its member has one of these, or it counts as a member. */
export const OWN_LOCKS: Readonly<Record<string, readonly string[]>> = {
  node: NODE_LOCKS,
  rust: ["Cargo.lock"],
  python: ["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"],
  go: ["go.sum"],
};

const MAX_PATTERNS = 200;

/** Whether a folder, relative to the workspace's top, is one of its members. Patterns that cannot be read match all. */
export function isMember(patterns: readonly string[], folder: string): boolean {
  if (patterns.length > MAX_PATTERNS) return true;
  const steps = new MatchSteps(MATCH_STEPS);
  let found = false;
  try {
    for (const pattern of patterns) {
      const isNot = pattern.startsWith("!");
      const hit = bracesOf(trimSlashes(isNot ? pattern.slice(1) : pattern)).some(
        (each) => globOf(each, true)?.matches(folder, steps) ?? true,
      );
      if (hit) found = !isNot;
    }
    return found;
  } catch {
    return true;
  }
}

const MATCH_STEPS = 200_000;

/**
 * Whether a folder of a name that is skipped elsewhere, such as `docs`, holds members or is one. A pattern for all
 * depths does not count: it would match what tests and tools keep there.
 */
export function namesFolder(patterns: readonly string[], folder: string): boolean {
  const plain = patterns.filter((each) => !each.startsWith("!") && !each.includes("**"));
  const names = folder.split("/").length;
  const heads = plain.flatMap((each) => bracesOf(trimSlashes(each))).map((each) => each.split("/"));
  return heads.some((parts) => {
    if (parts.length < names || (parts.length > names && parts[names - 1] !== folder.split("/").at(-1)))
      return false;
    return isMember([parts.slice(0, names).join("/")], folder);
  });
}

const trimSlashes = (pattern: string): string => pattern.replace(/^(?:\.?\/)+/, "").replace(/\/+$/, "");

const MAX_CHOICES = 50;

/** `{a,b}/*` as `a/*` and `b/*`. */
function bracesOf(pattern: string): readonly string[] {
  const [whole, before = "", choices = "", after = ""] = /^([^{]*)\{([^{}]*)\}(.*)$/.exec(pattern) ?? [];
  if (whole === undefined) return [pattern];
  return choices
    .split(",")
    .slice(0, MAX_CHOICES)
    .map((each) => `${before}${each}${after}`);
}

/** A list of texts below a top-level key of YAML; empty if it is written in another way. */
function listIn(yaml: string, key: string): readonly string[] {
  const lines = yaml.split(/\r?\n/).map((line) => line.replace(/(?:^|\s)#.*/, "").trimEnd());
  const at = lines.findIndex((line) => line.startsWith(`${key}:`));
  if (at === -1) return [];
  const inline = /^\[(.*)\]$/.exec((lines[at] ?? "").slice(key.length + 1).trim())?.[1];
  if (inline !== undefined) return inline.split(",").map(unquoted).filter(Boolean);
  const rest = lines.slice(at + 1).filter((line) => line !== "");
  const end = rest.findIndex((line) => !/^\s*-\s/.test(line));
  return (end === -1 ? rest : rest.slice(0, end)).map((line) => unquoted(line.replace(/^\s*-\s+/, "")));
}

const unquoted = (text: string): string => text.trim().replace(/^(["'])(.*)\1$/, "$2");

const textsIn = (value: unknown): readonly string[] =>
  asList(value).filter((each): each is string => typeof each === "string");

/** Empty when the text is not TOML. */
export function tomlIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return parseToml(text);
  } catch {
    return {};
  }
}
