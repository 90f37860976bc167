import { Buffer } from "node:buffer";
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { rename } from "node:fs/promises";
import { type TarEntry, textOfBytes, untar } from "../../core/raw-data.ts";
import type { LayerChange, LayerChanges } from "../../core/ports.ts";
import type { Layer } from "./layer-record.ts";
import { removeTree } from "../life/workspace-folders.ts";
import { hold } from "./open-folders.ts";
import { kindOf, sameContent, treeWithout } from "./upper-changes.ts";

/** How the copy whose tree is in `content` differs from the current workspace. */
export async function changesOfCopy(
  { workspace, made, apart = [] }: Layer,
  content: string,
): Promise<LayerChanges> {
  const [below, above] = [statsIn(workspace, apart), statsIn(content, apart)];
  const changes: LayerChange[] = [];
  for (const name of [...new Set([...below.keys(), ...above.keys()])].toSorted()) {
    const pair = { name, workspace, content, made, was: below.get(name), is: above.get(name) };
    for (const [what, stats] of await changesOfPair(pair)) {
      const bytes = Buffer.from(name, "latin1");
      changes.push({ path: textOfBytes(bytes), what, kind: kindOf(stats), mode: stats.mode & 0o7777 });
    }
  }
  return { changes, content, incomplete: false, since: made };
}

/** The tree that the last box over a copy returned into its layer; undefined before the first return. */
export async function returnedTree(folder: string): Promise<string | undefined> {
  const [tree, old] = [`${folder}/tree`, `${folder}/tree.old`];
  // A process was killed while it replaced the tree.
  if (!existsSync(tree) && existsSync(old)) await rename(old, tree);
  return existsSync(tree) ? tree : undefined;
}

/** Replaces the tree that was returned before with `aside`, which is complete; one of the two exists at any time. */
export async function returnTree(folder: string, aside: string): Promise<void> {
  const old = `${folder}/tree.old`;
  const before = await returnedTree(folder);
  await removeTree(old);
  if (before !== undefined) await rename(before, old);
  await rename(aside, `${folder}/tree`);
  await removeTree(old);
}

export async function changesOfReturned(layer: Layer): Promise<LayerChanges> {
  const content = await returnedTree(layer.folder);
  if (content !== undefined) return changesOfCopy(layer, content);
  return { changes: [], content: layer.folder, incomplete: false, since: layer.made };
}

interface Pair {
  /** The path's bytes as a latin1 string. */
  readonly name: string;
  readonly workspace: string;
  readonly content: string;
  readonly made: number;
  readonly was: Stats | undefined;
  readonly is: Stats | undefined;
}

async function changesOfPair(pair: Pair): Promise<readonly (readonly [LayerChange["what"], Stats])[]> {
  const { name, made, was, is } = pair;
  if (was === undefined) return is === undefined ? [] : [["added", is]];
  if (is === undefined) return wasCopied(pair, was) ? [["deleted", was]] : [];
  if (kindOf(was) !== kindOf(is))
    return [
      ["deleted", was],
      ["added", is],
    ];
  // A file that the box did not change is older than the copy; the user's git may have changed the workspace since.
  if (inGit(name) && is.mtimeMs < made - COARSE_MS) return [];
  return was.mode !== is.mode || !(await hasSameContent(pair, is)) ? [["modified", is]] : [];
}

/** An entry that was never in the copy was not deleted there: special files, unreadable files, git's new objects. */
function wasCopied({ workspace, name, made }: Pair, was: Stats): boolean {
  if (kindOf(was) === "odd" || (inGit(name) && was.ctimeMs >= made)) return false;
  if (was.isSymbolicLink()) return true;
  try {
    accessSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(name, "latin1")]), constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Archives count whole seconds. */
const COARSE_MS = 1000;
const inGit = (name: string): boolean => name.split("/").includes(".git");

/** Keyed by the path's bytes as a latin1 string. */
function statsIn(root: string, apart: readonly string[]): ReadonlyMap<string, Stats> {
  using folder = hold(root);
  return new Map(
    [...treeWithout(folder, apart)].map(({ path: name, stats }) => [name.toString("latin1"), stats]),
  );
}

async function hasSameContent({ workspace, content, name }: Pair, stats: Stats): Promise<boolean> {
  const at = (root: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
  if (stats.isFile()) return sameContent(at(workspace), at(content));
  if (!stats.isSymbolicLink()) return true;
  const target = (root: string): Buffer => readlinkSync(at(root), { encoding: "buffer" });
  return target(workspace).equals(target(content));
}

const NEW_FILE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const SLASH = Buffer.from("/");

/**
 * Extracts everything below the archive's one top folder into an empty folder. Nothing is created through a link or
 * above the folder. Modes and times are kept, owners are not; entries other than files, folders and links are left out.
 */
export async function unpack(
  archive: AsyncIterable<Buffer>,
  folder: string,
  most: UnpackLimits = { bytes: Number.POSITIVE_INFINITY, entries: Number.POSITIVE_INFINITY },
): Promise<void> {
  using target = new UnpackTarget(folder, most);
  for await (const each of untar(archive)) {
    if (Buffer.isBuffer(each)) target.write(each);
    else target.begin(each);
  }
  target.settle();
}

/** Limits for an archive that nobody has checked yet. */
export interface UnpackLimits {
  readonly bytes: number;
  readonly entries: number;
}

class UnpackTarget implements Disposable {
  readonly #folder: Buffer;
  readonly #left: { bytes: number; entries: number };
  readonly #made = new Set([""]);
  readonly #rights: (readonly [at: Buffer, entry: TarEntry])[] = [];
  #open: number | undefined;

  constructor(folder: string, most: UnpackLimits) {
    this.#folder = Buffer.from(folder);
    this.#left = { ...most };
  }

  #take(what: keyof UnpackLimits, count: number): void {
    this.#left[what] -= count;
    if (this.#left[what] < 0) throw new Error(`the tree has more ${what} than this machine accepts`);
  }

  begin(entry: TarEntry): void {
    this[Symbol.dispose]();
    this.#take("entries", 1);
    const path = belowTop(entry.name);
    if (path.length === 0) return;
    const at = this.#at(path);
    if (entry.type === "file") this.#open = openSync(at, NEW_FILE_FLAGS, 0o600);
    else if (entry.type === "folder") {
      mkdirSync(at, { mode: 0o700 });
      this.#made.add(path.toString("latin1"));
    } else if (entry.type === "link") symlinkSync(entry.target, at);
    else if (entry.type === "same") linkSync(this.#at(belowTop(entry.target)), at);
    if (entry.type === "file" || entry.type === "folder") this.#rights.push([at, entry]);
  }

  write(content: Buffer): void {
    const descriptor = this.#open;
    if (descriptor === undefined) return;
    this.#take("bytes", content.length);
    let at = 0;
    while (at < content.length) at += writeSync(descriptor, content, at);
  }

  /** Sets modes last, because a mode may lock a folder. */
  settle(): void {
    this[Symbol.dispose]();
    for (const [at, { mode, modified }] of this.#rights.toReversed()) {
      utimesSync(at, modified, modified);
      chmodSync(at, mode);
    }
  }

  [Symbol.dispose](): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  #at(path: Buffer): Buffer {
    if (!this.#made.has(parentOf(path)))
      throw new Error(`the archive has no folder for ${path.toString("latin1")}`);
    return Buffer.concat([this.#folder, SLASH, path]);
  }
}

/** The path without the archive's top folder. A path that leads out of the folder is refused. */
function belowTop(name: Buffer): Buffer {
  const names = name.toString("latin1").split("/").slice(1);
  const path = names.filter((each) => each !== "" && each !== ".");
  if (path.includes("..")) throw new Error("a path in the archive leads out of its folder");
  return Buffer.from(path.join("/"), "latin1");
}

function parentOf(path: Buffer): string {
  const slash = path.lastIndexOf(SLASH);
  return slash === -1 ? "" : path.toString("latin1", 0, slash);
}
