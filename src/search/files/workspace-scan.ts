import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { setImmediate as breath } from "node:timers/promises";
import { DEPENDENCIES, isDependencies, lastName } from "../../core/file-names.ts";
import type { KnownStamp } from "../catalog.ts";
import type { Skip } from "../search-store.ts";
import type { IgnoredPaths, PathRules, RuleFile, FileStamp } from "./box-files.ts";

/** Which files of a workspace are indexed, and where they have changed, as far as names and metadata on the host tell. */

interface ScanRequest {
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly files: ReadonlyMap<string, KnownStamp>;
  readonly ruleFiles: readonly RuleFile[];
  readonly rules: PathRules;
  readonly largest: number;
  /** Maximum number of changed folders; beyond it the scan gives up. */
  readonly most: number;
  readonly signal: AbortSignal;
}

export interface ChangedFolders {
  /** Folders with changed files: those that hold or held files of the catalog. The workspace itself is "". */
  readonly folders: ReadonlySet<string>;
  /** Those of `folders` below which there are folders unknown to the catalog with files to read. */
  readonly grown: ReadonlySet<string>;
  /** All folders that were read. */
  readonly visited: ReadonlySet<string>;
  /** All folders with a file of the catalog in them or below them. */
  readonly known: ReadonlySet<string>;
  /** Some names are not valid text. */
  readonly nameless: boolean;
}

/** `other`: more has changed than can be listed, or an ignore file has changed. */
type ScanResult = ({ readonly kind: "told" } & ChangedFolders) | { readonly kind: "other" };

const OTHER = { kind: "other" } as const;
const SLICE_MS = 20;
/**
 * More entries than any index has: a process that keeps swapping folders for links cannot prolong the scan for ever.
 */
const MAX_ENTRIES = 2_000_000;

const uptimeMs = (): number => process.uptime() * 1000;

/**
 * Finds where the workspace differs from the catalog, by names and metadata alone: no file is opened, no link followed.
 * Links, pipes and left-out folders count as unchanged. Only names in the catalog are reported.
 */
export async function scanForChanges(request: ScanRequest): Promise<ScanResult> {
  const { workspace, ruleFiles, signal } = request;
  if (ruleFiles.some(({ path, stamp }) => !isAt(workspace, path, stamp))) return OTHER;
  const look = new ChangeScan(request);
  // This clock is never set back, unlike the wall clock, and needs no module to be loaded, unlike `performance`.
  let slice = uptimeMs();
  while (look.goesOn) {
    look.next();
    if (uptimeMs() - slice < SLICE_MS) continue;
    await breath();
    signal.throwIfAborted();
    slice = uptimeMs();
  }
  return look.result;
}

class ChangeScan {
  readonly #request: ScanRequest;
  readonly #known: ReadonlySet<string>;
  readonly #sieve: Sieve;
  readonly #ruleFiles: ReadonlySet<string>;
  readonly #folders = new Set<string>();
  readonly #grown = new Set<string>();
  readonly #met = new Map<string, number>();
  readonly #waiting = [""];
  #entries = 0;
  #nameless = false;
  #other = false;

  constructor(request: ScanRequest) {
    this.#request = request;
    this.#known = foldersOf(request.files.keys());
    const texts = new Map(request.ruleFiles.map(({ path, text }) => [path, text]));
    this.#sieve = new Sieve(request.rules, texts, request.largest);
    this.#ruleFiles = new Set(texts.keys());
  }

  get goesOn(): boolean {
    if (this.#folders.size > this.#request.most || this.#entries > MAX_ENTRIES) this.#other = true;
    return !this.#other && this.#waiting.length > 0;
  }

  get result(): ScanResult {
    this.#miss();
    if (this.#other || this.#folders.size > this.#request.most) return OTHER;
    const [folders, grown, nameless] = [this.#folders, this.#grown, this.#nameless];
    return { kind: "told", folders, grown, visited: new Set(this.#met.keys()), known: this.#known, nameless };
  }

  next(): void {
    const folder = this.#waiting.pop() ?? "";
    const { workspace } = this.#request;
    const entries = entriesOf(workspace, folder);
    // The files that were in the folder then count as missing.
    if (entries === undefined) return;
    this.#entries += entries.length;
    let met = 0;
    for (const entry of entries) {
      const { name } = entry;
      const path = folder === "" ? name : `${folder}/${name}`;
      // Node replaces bytes that are no character, so the resulting path does not exist.
      if (name.includes("\uFFFD") && !isThere(workspace, path)) this.#nameless = true;
      else if (entry.isDirectory()) this.#folder(path);
      else if (entry.isFile()) met += this.#file(folder, path);
      // The ignore file cannot be read; the listing reports that.
      else if (path === OWN_IGNORE) this.#other = true;
    }
    this.#met.set(folder, met);
  }

  #folder(path: string): void {
    if (this.#known.has(path) || this.#sieve.enters(path)) this.#waiting.push(path);
  }

  /** Returns 1 for a file of the catalog. */
  #file(folder: string, path: string): 0 | 1 {
    const { workspace, files } = this.#request;
    const row = files.get(path);
    if (row !== undefined) {
      if (!isAsKnown(workspace, row)) this.#folders.add(folder);
      return 1;
    }
    if (isRuleFile(path)) this.#other ||= !this.#ruleFiles.has(path);
    else if (this.#sieve.file(path, 0) !== undefined) this.#grow(folder);
    return 0;
  }

  #grow(folder: string): void {
    const known = nearest(folder, this.#known);
    this.#folders.add(known);
    if (known !== folder) this.#grown.add(known);
  }

  /** Finds the folders of catalog files that were not met. */
  #miss(): void {
    const { files } = this.#request;
    let met = 0;
    for (const count of this.#met.values()) met += count;
    if (this.#other || met === files.size) return;
    const expected = new Map<string, number>();
    for (const path of files.keys()) expected.set(folderOf(path), (expected.get(folderOf(path)) ?? 0) + 1);
    for (const [folder, count] of expected)
      if (this.#met.get(folder) !== count) this.#folders.add(nearest(folder, this.#met));
  }
}

/** The folder itself or its nearest ancestor that is among `among`. */
function nearest(folder: string, among: { has(folder: string): boolean }): string {
  let at = folder;
  while (at !== "" && !among.has(at)) at = folderOf(at);
  return at;
}

function foldersOf(paths: Iterable<string>): ReadonlySet<string> {
  const folders = new Set([""]);
  for (const path of paths)
    for (let folder = folderOf(path); !folders.has(folder); folder = folderOf(folder)) folders.add(folder);
  return folders;
}

function isAsKnown(workspace: string, [path, size, mtimeMs, ctimeMs, ino, sure]: KnownStamp): boolean {
  return sure === 1 && isAt(workspace, path, { size, mtimeMs, ctimeMs, ino });
}

/** Undefined if the folder cannot be read. */
function entriesOf(workspace: string, folder: string): readonly Dirent[] | undefined {
  try {
    return readdirSync(folder === "" ? workspace : `${workspace}/${folder}`, { withFileTypes: true });
  } catch {
    return undefined;
  }
}

function isAt(workspace: string, path: string, stamp: FileStamp): boolean {
  const stats = statsOf(workspace, path);
  if (stats === undefined || !stats.isFile()) return false;
  const { size, mtimeMs, ctimeMs, ino } = stamp;
  return stats.size === size && stats.mtimeMs === mtimeMs && stats.ctimeMs === ctimeMs && stats.ino === ino;
}

const isThere = (workspace: string, path: string): boolean => statsOf(workspace, path) !== undefined;

function statsOf(workspace: string, path: string): Stats | undefined {
  try {
    return lstatSync(`${workspace}/${path}`, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

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
