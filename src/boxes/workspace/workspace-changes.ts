import { Buffer } from "node:buffer";
import { accessSync, chmodSync, constants, readlinkSync, type Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { errorCode } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import type { Change, LayerChanges } from "../../core/ports.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { NotRegularError, openRegular } from "../../platform/safe-files.ts";
import { changeListOf, type FoundChange } from "../runner-files.ts";
import { type Changed, type Layer, leftOutOf } from "./layer-record.ts";
import { entryPath, type HeldFolderSync, holdFolderSync, lookIn, namesIn } from "./safe-paths.ts";

/** What a box changed in the workspace: the upper layer of an overlay, or a copy, compared with the folder itself. */

interface Layers {
  readonly lower: string;
  readonly upper: string;
  /** Whether the merged tree has this path; undefined if unknown. */
  readonly shows: (path: string) => Promise<boolean | undefined>;
  /** The most changes to list; 500,000 when left out. */
  readonly most?: number;
  /** The most bytes of holes to compare; MAX_HOLES when left out. */
  readonly holes?: number;
  /** Folders of the upper layer that commands closed to their owner are opened, and given here with their modes. */
  readonly opened?: OpenedFolder[];
}

export interface OpenedFolder {
  readonly path: Buffer;
  readonly mode: number;
}

/**
 * What the upper layer changes in kind, mode or content; folders are listed too. Whiteouts mark deleted entries. Only
 * root can read the mark of a folder that hides the folder below it, so the merged tree is asked for one name that it
 * would hide. Ordered by path.
 */
export async function changesOfUpper(layers: Layers): Promise<Changed> {
  const { lower, upper, shows, most = 500_000, holes = MAX_HOLES, opened } = layers;
  const look: ComparisonState = { changes: [], incomplete: false, shows, most, holes, opened };
  await orIncomplete(look, undefined, async () => {
    using under = holdFolderSync(lower);
    using above = holdFolderSync(upper);
    await compareFolders(look, { path: Buffer.alloc(0), lower: under, upper: above, depth: 0 });
  });
  return { changes: changeListOf(look.changes), incomplete: look.incomplete };
}

interface ComparisonState extends Pick<Layers, "shows"> {
  readonly changes: FoundChange[];
  incomplete: boolean;
  readonly most: number;
  /** How many bytes of holes may still be compared. */
  holes: number;
  readonly opened: OpenedFolder[] | undefined;
}

/** A file that takes no space can be as long as the file system allows: comparing it could take days. */
const MAX_HOLES = 8 * 2 ** 30;

interface FolderPair {
  readonly path: Buffer;
  /** Undefined if the lower layer has no folder with this path. */
  readonly lower: HeldFolderSync | undefined;
  readonly upper: HeldFolderSync;
  readonly depth: number;
}

async function compareFolders(look: ComparisonState, pair: FolderPair): Promise<void> {
  const { path, lower, upper } = pair;
  const names = namesIn(upper, look.most);
  for (const name of names) {
    const mine = lookIn(upper, name);
    const theirs = lower && lookIn(lower, name);
    if (mine === undefined) continue;
    if (isWhiteout(mine)) {
      if (lower !== undefined && theirs !== undefined)
        noteDeleted(look, lower, { name, path, stats: theirs });
    } else await compare(look, pair, { name, mine, theirs });
  }
  if (lower !== undefined) await noteHidden(look, { ...pair, lower }, names);
}

/** Entries of the lower folder that the upper folder does not have: either all of them show through, or none. */
async function noteHidden(
  look: ComparisonState,
  { path, lower }: FolderPair & { lower: HeldFolderSync },
  names: readonly Buffer[],
) {
  const mentioned = new Set(names.map((name) => name.toString("latin1")));
  const rest = namesIn(lower, look.most).filter((name) => !mentioned.has(name.toString("latin1")));
  const paths = rest.map((name) => textOfBytes(entryPath(path, name)));
  const sample = paths.find((each) => each.isWellFormed()) ?? paths[0];
  // We made the layer's own folder, and it hides nothing.
  if (sample === undefined || path.length === 0) return;
  const shown = await look.shows(sample);
  if (shown === undefined) look.incomplete = true;
  if (shown !== false) return;
  for (const name of rest) {
    const stats = lookIn(lower, name);
    if (stats !== undefined) noteDeleted(look, lower, { name, path, stats });
  }
}

interface Entry {
  readonly name: Buffer;
  readonly mine: Stats;
  readonly theirs: Stats | undefined;
}

async function compare(look: ComparisonState, pair: FolderPair, entry: Entry): Promise<void> {
  const { name, mine, theirs } = entry;
  const { lower, upper } = pair;
  const path = entryPath(pair.path, name);
  const found = { folder: pair.path, name, stats: mine };
  const [wasFolder, isFolder] = [theirs?.isDirectory() === true, mine.isDirectory()];
  if (lower !== undefined && theirs !== undefined && wasFolder !== isFolder)
    noteDeleted(look, lower, { name, path: pair.path, stats: theirs });
  if (theirs === undefined || wasFolder !== isFolder) note(look, "added", found);
  else if (theirs.mode !== mine.mode || !(isFolder || (await isSameEntry(look, pair, entry))))
    note(look, "modified", found);
  if (!isFolder) return;
  if (pair.depth >= MAX_DEPTH) return void (look.incomplete = true);
  await orIncomplete(look, undefined, async () => {
    if (look.opened !== undefined && (mine.mode & READ_AND_ENTER) !== READ_AND_ENTER) {
      const mode = mine.mode & 0o7777;
      chmodSync(upper.at(name), mode | READ_AND_ENTER);
      look.opened.push({ path, mode });
    }
    using above = holdFolderSync(upper.at(name));
    using under =
      lower !== undefined && wasFolder
        ? await orIncomplete(look, undefined, async () => holdFolderSync(lower.at(name)))
        : undefined;
    // The box does not see file systems that are mounted in the workspace.
    const foreign = under !== undefined && under.stats.dev !== lower?.stats.dev;
    if (foreign) look.incomplete = true;
    const next = { path, lower: foreign ? undefined : under, upper: above, depth: pair.depth + 1 };
    await compareFolders(look, next);
  });
}

/** For two entries of the same kind and mode; an entry that cannot be read or compared here counts as changed. */
async function isSameEntry(
  look: ComparisonState,
  { lower, upper }: FolderPair,
  { name, mine }: Entry,
): Promise<boolean> {
  if (lower === undefined) return false;
  const [one, other] = [lower.at(name), upper.at(name)];
  if (mine.isFile()) {
    const holes = mine.size - mine.blocks * DISK_BLOCK;
    if (holes > look.holes) return false;
    look.holes -= Math.max(holes, 0);
    return orIncomplete(look, false, () => sameContent(one, other));
  }
  if (!mine.isSymbolicLink()) return true;
  return orIncomplete(look, false, async () => readlinkSync(one, RAW).equals(readlinkSync(other, RAW)));
}

const DISK_BLOCK = 512;
const RAW = { encoding: "buffer" } as const;

/** Commands may still be running: an entry that vanishes or is locked makes the answer incomplete, never wrong. */
async function orIncomplete<T>(look: ComparisonState, otherwise: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (errorCode(thrown) === undefined) throw thrown;
    look.incomplete = true;
    return otherwise;
  }
}

/** A device with the number 0:0; no command can make one. */
const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

/** Records the entry and everything in it as deleted. */
function noteDeleted(
  look: ComparisonState,
  lower: HeldFolderSync,
  { name, path, stats }: { readonly name: Buffer; readonly path: Buffer; readonly stats: Stats },
): void {
  const here = entryPath(path, name);
  note(look, "deleted", { folder: path, name, stats });
  if (!stats.isDirectory()) return;
  if (stats.dev !== lower.stats.dev) {
    look.incomplete = true;
    return;
  }
  using folder = holdFolderSync(lower.at(name));
  for (const entry of treeOf(folder, { path: here, depth: 0, opens: false })) {
    note(look, "deleted", entry);
    if (entry.closed !== undefined) look.incomplete = true;
    if (look.changes.length >= look.most) return;
  }
}

interface FoundEntry extends Pick<FoundChange, "folder" | "name"> {
  readonly stats: Stats;
}

function note(look: ComparisonState, what: Change["what"], { folder, name, stats }: FoundEntry): void {
  if (look.changes.length >= look.most) look.incomplete = true;
  else look.changes.push({ what, kind: kindOf(stats), mode: stats.mode & 0o7777, folder, name });
}

function kindOf(stats: Stats): Change["kind"] {
  if (stats.isDirectory()) return "folder";
  if (stats.isSymbolicLink()) return "link";
  return stats.isFile() ? "file" : "odd";
}

/** One entry of a tree; a folder comes before its entries. `at` is valid only until the next entry is requested. */
export interface WalkedEntry {
  /** The path below the root, as bytes. */
  readonly path: Buffer;
  /** The path of the entry's folder; the same buffer for all entries of one folder. */
  readonly folder: Buffer;
  readonly name: Buffer;
  readonly at: Buffer;
  readonly stats: Stats;
  /** Why the contents of this folder are not listed. */
  readonly closed?: string;
}

const MAX_DEPTH = 512;

interface WalkedFolder {
  readonly path: Buffer;
  readonly depth: number;
  /** Folders that cannot be read are opened for good. */
  readonly opens: boolean;
}

/** Everything below a folder. No link is followed, and no other file system is entered. */
function* treeOf(root: HeldFolderSync, here: WalkedFolder): Generator<WalkedEntry, void> {
  for (const name of namesIn(root, Number.POSITIVE_INFINITY)) {
    const stats = lookIn(root, name);
    if (stats === undefined) continue;
    const entry = { path: entryPath(here.path, name), folder: here.path, name, at: root.at(name), stats };
    if (stats.isDirectory()) yield* folderIn(root, entry, here);
    else yield entry;
  }
}

/** Leaves out the entries at these paths and below them. */
export function* treeWithout(
  root: HeldFolderSync,
  apart: readonly string[],
  opens = false,
): Generator<WalkedEntry, void> {
  const places = apart.map((place) => Buffer.from(place).toString("latin1"));
  for (const entry of treeOf(root, { path: Buffer.alloc(0), depth: 0, opens })) {
    const name = entry.path.toString("latin1");
    if (!places.some((place) => isInside(place, name))) yield entry;
  }
}

function* folderIn(
  parent: HeldFolderSync,
  entry: WalkedEntry,
  above: WalkedFolder,
): Generator<WalkedEntry, void> {
  const folder = openFolder(parent, entry, above);
  if (typeof folder === "string") {
    yield { ...entry, closed: folder };
    return;
  }
  using entered = folder;
  yield entry;
  yield* treeOf(entered, { ...above, path: entry.path, depth: above.depth + 1 });
}

/** The opened folder, or why it is not entered. */
function openFolder(
  parent: HeldFolderSync,
  { stats, at }: WalkedEntry,
  { depth, opens }: WalkedFolder,
): HeldFolderSync | string {
  if (stats.dev !== parent.stats.dev) return "is on another file system";
  if (depth >= MAX_DEPTH) return "is nested too deeply";
  try {
    if (opens && (stats.mode & OWNER_RIGHTS) !== OWNER_RIGHTS)
      chmodSync(at, (stats.mode & 0o7777) | OWNER_RIGHTS);
    return holdFolderSync(at);
  } catch (thrown) {
    return `cannot be read: ${errorCode(thrown) ?? "unknown"}`;
  }
}

const OWNER_RIGHTS = 0o700;
const READ_AND_ENTER = 0o500;

const COMPARED_BYTES = 256 * 1024;

/** Whether both are regular files with the same bytes. Links and pipes are not opened. */
async function sameContent(one: Buffer, other: Buffer): Promise<boolean> {
  await using a = await openRegular(one, "refuse").catch(orUndefined);
  await using b = await openRegular(other, "refuse").catch(orUndefined);
  if (a === undefined || b === undefined || a.stats.size !== b.stats.size) return false;
  const left = a.stats;
  for (let at = 0; at < left.size; at += COMPARED_BYTES) {
    const length = Math.min(COMPARED_BYTES, left.size - at);
    const [mine, theirs] = await Promise.all([piece(a.handle, at, length), piece(b.handle, at, length)]);
    if (!mine.equals(theirs)) return false;
  }
  return true;
}

function orUndefined(thrown: unknown): undefined {
  if (!(thrown instanceof NotRegularError)) throw thrown;
  return undefined;
}

async function piece(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = globalThis.Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return bytes.subarray(0, bytesRead);
}

/**
 * How the copy whose tree is in `content` differs from the current workspace. What its commands closed to their owner is
 * opened in `content`; the changes have the modes that it had.
 */
export async function changesOfCopy(
  { workspace, made, apart = [], missing = [], folder }: Layer,
  content: string,
): Promise<LayerChanges> {
  const [below, above] = [statsIn(workspace, apart), statsIn(content, apart, true)];
  const absent = missing.map((each) => bytesOfText(each).toString("latin1"));
  const leftOut = new Map(
    (await leftOutOf(folder)).map((each) => [bytesOfText(each.path).toString("latin1"), each]),
  );
  const changes: Change[] = [];
  for (const name of [...new Set([...leftOut.keys(), ...below.keys(), ...above.keys()])].toSorted()) {
    const pair = { name, workspace, content, made, absent, was: below.get(name), is: above.get(name) };
    const path = textOfBytes(Buffer.from(name, "latin1"));
    const odd = leftOut.get(name);
    if (odd !== undefined && pair.was !== undefined && kindOf(pair.was) === "odd") continue;
    for (const [what, stats] of await changesOfPair(pair))
      changes.push({ path, what, kind: kindOf(stats), mode: stats.mode & 0o7777 });
    if (odd !== undefined) changes.push({ path, what: "added", kind: "odd", mode: odd.mode });
  }
  return { changes, content, incomplete: mayBeCut(above), since: made, unseen: missing };
}

/** Engines leave out what no path leads to without a word: an empty folder with a path almost too long may hold more. */
function mayBeCut(copied: ReadonlyMap<string, Stats>): boolean {
  const long = [...copied].filter(([name]) => name.length > NEARLY_TOO_LONG);
  const filled = new Set(long.map(([name]) => name.slice(0, name.lastIndexOf("/"))));
  return long.some(([name, stats]) => stats.isDirectory() && !filled.has(name));
}

const NEARLY_TOO_LONG = 3500;

/** Gives the folders of an upper layer their modes back, the deepest ones first. A layer that was given up is gone. */
export function closeAgain(upper: string, opened: readonly OpenedFolder[]): void {
  for (const { path, mode } of opened.toReversed())
    try {
      chmodSync(Buffer.concat([Buffer.from(`${upper}/`), path]), mode);
    } catch (thrown) {
      if (errorCode(thrown) !== "ENOENT") throw thrown;
    }
}

interface EntryPair {
  /** The path's bytes as a latin1 string. */
  readonly name: string;
  readonly workspace: string;
  readonly content: string;
  readonly made: number;
  /** Names whose entries were not in the copy when it was made, in the same form. */
  readonly absent: readonly string[];
  readonly was: Stats | undefined;
  readonly is: Stats | undefined;
}

async function changesOfPair(pair: EntryPair): Promise<readonly (readonly [Change["what"], Stats])[]> {
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
function wasCopied({ workspace, name, made, absent }: EntryPair, was: Stats): boolean {
  if (kindOf(was) === "odd" || (inGit(name) && was.ctimeMs >= made)) return false;
  if (absent.some((each) => isInside(each, name))) return false;
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
function statsIn(root: string, apart: readonly string[], opens = false): ReadonlyMap<string, Stats> {
  using folder = holdFolderSync(root);
  const found = new Map<string, Stats>();
  for (const { path: name, at, stats } of treeWithout(folder, apart, opens)) {
    found.set(name.toString("latin1"), stats);
    if (opens && stats.isFile() && (stats.mode & OWNER_READ) === 0)
      chmodSync(at, (stats.mode & 0o7777) | OWNER_READ);
  }
  return found;
}

const OWNER_READ = 0o400;

async function hasSameContent({ workspace, content, name }: EntryPair, stats: Stats): Promise<boolean> {
  const at = (root: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
  if (stats.isFile()) return sameContent(at(workspace), at(content));
  if (!stats.isSymbolicLink()) return true;
  const target = (root: string): Buffer => readlinkSync(at(root), { encoding: "buffer" });
  return target(workspace).equals(target(content));
}
