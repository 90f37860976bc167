import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { setImmediate as breath } from "node:timers/promises";
import type { CatalogFile } from "../catalog/rows.ts";
import { isSameStamp, type PathRules, type RuleFile, type Stamp } from "../read/found.ts";
import { folderOf, isRuleFile, OWN_IGNORE, Sieve } from "../read/sieve.ts";

export interface FreshRequest {
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly files: ReadonlyMap<string, CatalogFile>;
  readonly ruleFiles: readonly RuleFile[];
  readonly rules: PathRules;
  readonly largest: number;
  readonly signal: AbortSignal;
}

const SLICE_MS = 20;

/**
 * Whether the workspace is as the catalog has it, by names and metadata alone: no file is opened, no link followed. The
 * first path at which it is not, or null. Links, pipes and folders that are left out are as they are.
 */
export async function firstChange(request: FreshRequest): Promise<string | null> {
  const { workspace, files, ruleFiles, signal } = request;
  const changedRule = ruleFiles.find(({ path, stamp }) => !isAt(workspace, path, stamp));
  if (changedRule !== undefined) return changedRule.path;
  const look = new Look(request);
  const folders = [""];
  let slice = performance.now();
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const change = look.at(folder, folders);
    if (change !== null) return change;
    if (performance.now() - slice < SLICE_MS) continue;
    await breath();
    signal.throwIfAborted();
    slice = performance.now();
  }
  return look.met === files.size ? null : (look.missing() ?? null);
}

class Look {
  met = 0;
  readonly #request: FreshRequest;
  readonly #known: ReadonlySet<string>;
  readonly #sieve: Sieve;
  readonly #ruleFiles: ReadonlySet<string>;

  constructor(request: FreshRequest) {
    this.#request = request;
    this.#known = foldersOf(request.files.keys());
    const texts = new Map(request.ruleFiles.map(({ path, text }) => [path, text]));
    this.#sieve = new Sieve(request.rules, texts, request.largest);
    this.#ruleFiles = new Set(texts.keys());
  }

  /** The first change in a folder, or null; the folders in it are added to those that wait. */
  at(folder: string, folders: string[]): string | null {
    for (const entry of entriesOf(this.#request.workspace, folder)) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (this.#known.has(path) || this.#sieve.enters(path)) folders.push(path);
      } else if (entry.isFile() && this.#isOther(path)) return path;
      // Nobody knows what it says, and whoever lists says so.
      else if (path === OWN_IGNORE && !entry.isFile()) return path;
    }
    return null;
  }

  missing(): string | undefined {
    const { workspace, files } = this.#request;
    return (
      [...files].find(([path, { stamp }]) => !isAt(workspace, path, stamp))?.[0] ?? files.keys().next().value
    );
  }

  #isOther(path: string): boolean {
    const { workspace, files } = this.#request;
    const row = files.get(path);
    if (row !== undefined) {
      this.met += 1;
      return !row.settled || !isAt(workspace, path, row.stamp);
    }
    if (isRuleFile(path)) return !this.#ruleFiles.has(path);
    // A name that is no text, as one is shown that has bytes of no character.
    if (path.includes("\uFFFD") && statOf(workspace, path) === undefined) return false;
    return this.#sieve.file(path, 0) !== undefined;
  }
}

function foldersOf(paths: Iterable<string>): ReadonlySet<string> {
  const folders = new Set([""]);
  for (const path of paths)
    for (let folder = folderOf(path); !folders.has(folder); folder = folderOf(folder)) folders.add(folder);
  return folders;
}

function entriesOf(workspace: string, folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder === "" ? workspace : `${workspace}/${folder}`, { withFileTypes: true });
  } catch {
    // What was in it is missed then.
    return [];
  }
}

function isAt(workspace: string, path: string, stamp: Stamp): boolean {
  const stats = statOf(workspace, path);
  return stats !== undefined && isSameStamp(stats, stamp);
}

function statOf(workspace: string, path: string): Stamp | undefined {
  try {
    const stats = lstatSync(`${workspace}/${path}`, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile()) return undefined;
    const { size, mtimeMs, ctimeMs, ino } = stats;
    return { size, mtimeMs, ctimeMs, ino };
  } catch {
    return undefined;
  }
}
