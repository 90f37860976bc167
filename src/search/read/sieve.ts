import { DEPENDENCIES, isDependencies } from "../../core/protected-names.ts";
import { lastName } from "../../core/text/file-paths.ts";
import type { Skip } from "../index-words.ts";
import type { IgnoredPaths, PathRules } from "./found-file.ts";

/**
 * Folders that are never entered, whatever the ignore rules say: those of version control and package managers, and the
 * caches of interpreters and build tools. Copied third-party code (`vendor`, `third_party`) and folders that projects
 * write by hand as often as tools do (`build`, `dist`, `target`) are not among them.
 */
const NEVER = new Set(
  `.git .hg .svn .jj .bzr _darcs .harness
   __pycache__ .mypy_cache .pytest_cache .ruff_cache .nox .eggs .ipynb_checkpoints
   .gradle .next .nuxt .svelte-kit .turbo .parcel-cache .angular .cache .nyc_output
   .terraform .terragrunt-cache .dart_tool .bundle .direnv jspm_packages elm-stuff`.split(/\s+/),
);

const isNeverEntered = (name: string): boolean => NEVER.has(name.toLowerCase()) || isDependencies(name);

/** Names of folders that a listing need not enter. */
export const NEVER_ENTERED: readonly string[] = [...NEVER, ...DEPENDENCIES];

const GITIGNORE = ".gitignore";
export const OWN_IGNORE = ".harnessignore";

export const isRuleFile = (path: string): boolean =>
  path === OWN_IGNORE || path === GITIGNORE || path.endsWith(`/${GITIGNORE}`);

/** The `.git` file of a worktree or submodule: it points to the repository on the host. */
const isGitLink = (name: string): boolean => name.toLowerCase() === ".git";

export const folderOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf("/"), 0));

/**
 * Decides which files of a workspace are indexed. Ask from the top down, and nothing about the contents of a folder
 * that is left out.
 */
export class Sieve {
  readonly #rules: PathRules;
  readonly #texts: ReadonlyMap<string, string>;
  readonly #largest: number;
  readonly #own: IgnoredPaths;
  /** The ignore rules that apply in a folder, by folder. */
  readonly #levels = new Map<string, IgnoredPaths>();

  /** `texts`: contents of the rule files, by path. */
  constructor(rules: PathRules, texts: ReadonlyMap<string, string>, largest: number) {
    this.#rules = rules;
    this.#texts = texts;
    this.#largest = largest;
    const own = texts.get(OWN_IGNORE);
    const { ignored } = rules;
    this.#own = own === undefined ? ignored : ignored.below({ folder: "", text: own, strict: true });
  }

  /** Whether a folder is entered. */
  enters(path: string): boolean {
    const name = lastName(path);
    if (isNeverEntered(name) || this.#rules.guarded(name, name === path)) return false;
    return !this.#ignored(path, true);
  }

  /** Whether a file is read, the reason why not, or undefined if the index ignores it. */
  file(path: string, size: number): "read" | Skip | undefined {
    if (isGitLink(lastName(path)) || this.#ignored(path, false)) return undefined;
    if (this.#rules.secret(path)) return "secret";
    return size > this.#largest ? "huge" : "read";
  }

  #ignored(path: string, isFolder: boolean): boolean {
    if (this.#own.leavesOut(path, isFolder)) return true;
    return this.#level(folderOf(path)).leavesOut(path, isFolder);
  }

  #level(folder: string): IgnoredPaths {
    const known = this.#levels.get(folder);
    if (known !== undefined) return known;
    const above = folder === "" ? this.#rules.ignored : this.#level(folderOf(folder));
    const text = this.#texts.get(folder === "" ? GITIGNORE : `${folder}/${GITIGNORE}`);
    const level = text === undefined ? above : above.below({ folder, text, strict: false });
    this.#levels.set(folder, level);
    return level;
  }
}
