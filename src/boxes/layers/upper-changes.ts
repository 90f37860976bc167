import { Buffer } from "node:buffer";
import { readlinkSync, type Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { textOfBytes } from "../../core/text/bytes.ts";
import type { Change } from "../../core/changes.ts";
import { errorCode } from "../../core/errors.ts";
import { isInside } from "../../core/text/file-paths.ts";
import { NotRegularError, openRegular } from "../../platform/safe-files.ts";
import { changeListOf, type FoundChange } from "../runner/change-list.ts";
import { below, type Held, hold, lookIn, namesIn } from "./open-folders.ts";
import type { Changed } from "./place.ts";

interface Layers {
  readonly lower: string;
  readonly upper: string;
  /** Whether the merged tree has this path, or undefined where that cannot be told. */
  readonly shows: (path: string) => Promise<boolean | undefined>;
  /** Changes that are listed; 500,000 when left out. */
  readonly most?: number;
}

/**
 * What the upper layer makes different: kind, mode or content; folders are listed, too. Whiteouts say what was
 * deleted. That a folder hides the one below it is written where only root can read, so the merged tree is asked
 * for one name that it would hide. Ordered by path.
 */
export async function changesOfUpper(layers: Layers): Promise<Changed> {
  const { lower, upper, shows, most = 500_000 } = layers;
  const look: Look = { changes: [], incomplete: false, shows, most };
  await within(look, undefined, async () => {
    using under = hold(lower);
    using above = hold(upper);
    await compareFolders(look, { path: Buffer.alloc(0), lower: under, upper: above, depth: 0 });
  });
  return { changes: changeListOf(look.changes), incomplete: look.incomplete };
}

interface Look extends Pick<Layers, "shows"> {
  readonly changes: FoundChange[];
  incomplete: boolean;
  readonly most: number;
}

interface Pair {
  readonly path: Buffer;
  /** Undefined where the lower layer has no folder of this path. */
  readonly lower: Held | undefined;
  readonly upper: Held;
  readonly depth: number;
}

async function compareFolders(look: Look, pair: Pair): Promise<void> {
  const { path, lower, upper } = pair;
  const names = namesIn(upper, look.most);
  for (const name of names) {
    const mine = lookIn(upper, name);
    const theirs = lower && lookIn(lower, name);
    if (mine === undefined) continue;
    if (isWhiteout(mine)) {
      if (lower !== undefined && theirs !== undefined) gone(look, lower, { name, path, stats: theirs });
    } else await compare(look, pair, { name, mine, theirs });
  }
  if (lower !== undefined) await hidden(look, { ...pair, lower }, names);
}

/** What the lower folder has and the upper one does not mention: all of it shows through, or none. */
async function hidden(look: Look, { path, lower }: Pair & { lower: Held }, names: readonly Buffer[]) {
  const mentioned = new Set(names.map((name) => name.toString("latin1")));
  const rest = namesIn(lower, look.most).filter((name) => !mentioned.has(name.toString("latin1")));
  const paths = rest.map((name) => textOfBytes(below(path, name)));
  const asked = paths.find((each) => each.isWellFormed()) ?? paths[0];
  // The layer's own folder was made by us, and hides nothing.
  if (asked === undefined || path.length === 0) return;
  const shown = await look.shows(asked);
  if (shown === undefined) look.incomplete = true;
  if (shown !== false) return;
  for (const name of rest) {
    const stats = lookIn(lower, name);
    if (stats !== undefined) gone(look, lower, { name, path, stats });
  }
}

interface Entry {
  readonly name: Buffer;
  readonly mine: Stats;
  readonly theirs: Stats | undefined;
}

async function compare(look: Look, pair: Pair, entry: Entry): Promise<void> {
  const { name, mine, theirs } = entry;
  const { lower, upper } = pair;
  const path = below(pair.path, name);
  const found = { folder: pair.path, name, stats: mine };
  const [wasFolder, isFolder] = [theirs?.isDirectory() === true, mine.isDirectory()];
  if (lower !== undefined && theirs !== undefined && wasFolder !== isFolder)
    gone(look, lower, { name, path: pair.path, stats: theirs });
  if (theirs === undefined || wasFolder !== isFolder) note(look, "added", found);
  else if (theirs.mode !== mine.mode || !(isFolder || (await sameThing(look, pair, entry))))
    note(look, "modified", found);
  if (!isFolder) return;
  if (pair.depth >= MAX_DEPTH) return void (look.incomplete = true);
  await within(look, undefined, async () => {
    using above = hold(upper.at(name));
    using under = lower !== undefined && wasFolder ? hold(lower.at(name)) : undefined;
    // The box sees nothing of what is mounted in the workspace.
    const foreign = under !== undefined && under.stats.dev !== lower?.stats.dev;
    if (foreign) look.incomplete = true;
    const next = { path, lower: foreign ? undefined : under, upper: above, depth: pair.depth + 1 };
    await compareFolders(look, next);
  });
}

/** Of two things of the same kind and mode; what cannot be read here counts as changed. */
async function sameThing(look: Look, { lower, upper }: Pair, { name, mine }: Entry): Promise<boolean> {
  if (lower === undefined) return false;
  const [one, other] = [lower.at(name), upper.at(name)];
  if (mine.isFile()) return within(look, false, () => sameContent(one, other));
  if (!mine.isSymbolicLink()) return true;
  return within(look, false, async () => readlinkSync(one, RAW).equals(readlinkSync(other, RAW)));
}

const RAW = { encoding: "buffer" } as const;

/** Commands may go on beside this: what vanishes or is locked away makes the answer incomplete, never wrong. */
async function within<T>(look: Look, otherwise: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (errorCode(thrown) === undefined) throw thrown;
    look.incomplete = true;
    return otherwise;
  }
}

/** A device of the number 0:0; no command can make one. */
const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

/** With all that is in it. */
function gone(
  look: Look,
  lower: Held,
  { name, path, stats }: { readonly name: Buffer; readonly path: Buffer; readonly stats: Stats },
): void {
  const here = below(path, name);
  note(look, "deleted", { folder: path, name, stats });
  if (!stats.isDirectory()) return;
  if (stats.dev !== lower.stats.dev) {
    look.incomplete = true;
    return;
  }
  using folder = hold(lower.at(name));
  for (const seen of treeOf(folder, here)) {
    note(look, "deleted", seen);
    if (seen.closed !== undefined) look.incomplete = true;
    if (look.changes.length >= look.most) return;
  }
}

interface Found extends Pick<FoundChange, "folder" | "name"> {
  readonly stats: Stats;
}

function note(look: Look, what: Change["what"], { folder, name, stats }: Found): void {
  if (look.changes.length >= look.most) look.incomplete = true;
  else look.changes.push({ what, kind: kindOf(stats), mode: stats.mode & 0o7777, folder, name });
}

export function kindOf(stats: Stats): Change["kind"] {
  if (stats.isDirectory()) return "folder";
  if (stats.isSymbolicLink()) return "link";
  return stats.isFile() ? "file" : "odd";
}

/** One entry of a tree, its folder before it. `at` leads to it only until the next one is asked for. */
export interface Seen {
  /** Below the root, as bytes. */
  readonly path: Buffer;
  /** Of the path: the same bytes for all that lies in one folder. */
  readonly folder: Buffer;
  readonly name: Buffer;
  readonly at: Buffer;
  readonly stats: Stats;
  /** Why what is in this folder is not shown. */
  readonly closed?: string;
}

const MAX_DEPTH = 512;

/** Everything below a folder. No link is followed, and nothing of another file system is entered. */
function* treeOf(root: Held, path: Buffer = Buffer.alloc(0), depth = 0): Generator<Seen, void> {
  for (const name of namesIn(root, Number.POSITIVE_INFINITY)) {
    const stats = lookIn(root, name);
    if (stats === undefined) continue;
    const [at, here] = [root.at(name), below(path, name)];
    const seen = { path: here, folder: path, name, at, stats };
    if (stats.isDirectory()) yield* folderIn(root, seen, depth);
    else yield seen;
  }
}

/** Without what lies at these paths, or below them. */
export function* treeWithout(root: Held, apart: readonly string[]): Generator<Seen, void> {
  const places = apart.map((place) => Buffer.from(place).toString("latin1"));
  for (const seen of treeOf(root)) {
    const name = seen.path.toString("latin1");
    if (!places.some((place) => isInside(place, name))) yield seen;
  }
}

function* folderIn(parent: Held, seen: Seen, depth: number): Generator<Seen, void> {
  const folder = opened(parent, seen, depth);
  if (typeof folder === "string") {
    yield { ...seen, closed: folder };
    return;
  }
  using held = folder;
  yield seen;
  yield* treeOf(held, seen.path, depth + 1);
}

/** The folder, or why it is not entered. */
function opened(parent: Held, { stats, at }: Seen, depth: number): Held | string {
  if (stats.dev !== parent.stats.dev) return "is another file system";
  if (depth >= MAX_DEPTH) return "is too deep";
  try {
    return hold(at);
  } catch (thrown) {
    return `cannot be read: ${errorCode(thrown) ?? "unknown"}`;
  }
}

const COMPARED_BYTES = 256 * 1024;

/** Whether both are regular files of the same bytes. Neither a link nor a pipe is entered. */
export async function sameContent(one: Buffer, other: Buffer): Promise<boolean> {
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
