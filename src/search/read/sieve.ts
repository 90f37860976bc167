import { DEPENDENCIES, isDependencies } from "../../core/protected-names.ts";
import { lastName } from "../../core/text/file-paths.ts";
import type { Skip } from "../index-words.ts";
import type { IgnoredPaths, PathRules } from "./found-file.ts";

/**
 * Folders that are never entered, whatever the ignore rules say: what version control and package managers put there,
 * and what interpreters and build tools keep for themselves. Others' code that was copied in (`vendor`, `third_party`)
 * and folders that projects write by hand as often as tools do (`build`, `dist`, `target`) are not among them.
 */
const NEVER = new Set(
  `.git .hg .svn .jj .bzr _darcs .harness
   __pycache__ .mypy_cache .pytest_cache .ruff_cache .nox .eggs .ipynb_checkpoints
   .gradle .next .nuxt .svelte-kit .turbo .parcel-cache .angular .cache .nyc_output
   .terraform .terragrunt-cache .dart_tool .bundle .direnv jspm_packages elm-stuff`.split(/\s+/),
);

const isNeverEntered = (name: string): boolean => NEVER.has(name.toLowerCase()) || isDependencies(name);

/** Names of folders that a listing need not even look into. */
export const NEVER_ENTERED: readonly string[] = [...NEVER, ...DEPENDENCIES];

const GITIGNORE = ".gitignore";
export const OWN_IGNORE = ".harnessignore";

export const isRuleFile = (path: string): boolean =>
  path === OWN_IGNORE || path === GITIGNORE || path.endsWith(`/${GITIGNORE}`);

/** The `.git` file of a worktree or submodule: it points to the repository on the host. */
const isGitLink = (name: string): boolean => name.toLowerCase() === ".git";

export const folderOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf("/"), 0));

/** Tells what of a workspace is looked at. Asked from the top down: what is in a folder that was left out is not asked for. */
export class Sieve {
  readonly #rules: PathRules;
  readonly #texts: ReadonlyMap<string, string>;
  readonly #largest: number;
  readonly #own: IgnoredPaths;
  /** What counts in a folder, by the folder. */
  readonly #levels = new Map<string, IgnoredPaths>();

  /** `texts`: what is in the rule files, by path. */
  constructor(rules: PathRules, texts: ReadonlyMap<string, string>, largest: number) {
    this.#rules = rules;
    this.#texts = texts;
    this.#largest = largest;
    const own = texts.get(OWN_IGNORE);
    const { ignored } = rules;
    this.#own = own === undefined ? ignored : ignored.below({ folder: "", text: own, strict: true });
  }

  /** Whether it is looked into. */
  enters(path: string): boolean {
    const name = lastName(path);
    if (isNeverEntered(name) || this.#rules.guarded(name, name === path)) return false;
    return !this.#ignored(path, true);
  }

  /** Whether it is read, why not, or undefined: it is none of this index's business. */
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
