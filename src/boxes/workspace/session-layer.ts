import { Buffer } from "node:buffer";
import { existsSync, type Stats } from "node:fs";
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import type { LayerChanges } from "../../core/ports.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { formatSize } from "../../core/wording.ts";
import { removeTree } from "../box-record.ts";
import {
  allLayers,
  type FoundLayer,
  giveUpLayer,
  type Layer,
  layerOf,
  type LayerRecord,
  makeLayer,
} from "./layer-record.ts";
import { archiveOf, unpack } from "./workspace-archive.ts";
import { changesOfCopy } from "./workspace-changes.ts";
import { lockWorkspace } from "./workspace-lock.ts";

/**
 * The layer or copy that keeps a session's changes: held by one process at a time, limited in size, and, for a copy, what
 * has come back of it: its tree, and pieces that came before the box ended.
 */

type HeldLayer = AsyncDisposable & { readonly layer: Layer };

type WantedLayer = Pick<LayerRecord, "session" | "workspace" | "isolation" | "engine" | "at">;

/** Holds the session's layer, or a new one if there is room, for this process alone. */
export async function holdLayer(
  stateDir: string,
  wanted: WantedLayer,
  room: QuotaOptions,
): Promise<HeldLayer> {
  const existing = await holdExisting(stateDir, wanted.session);
  if (existing === undefined) {
    await refuseWithoutRoom(stateDir, room);
    await makeLayer(stateDir, { ...wanted, volume: null, made: Date.now() }).catch(ignoreExisting);
    return holdLayer(stateDir, wanted, room);
  }
  const { layer } = existing;
  const { workspace, isolation, engine } = layer;
  if (workspace === wanted.workspace && isolation === wanted.isolation && engine === wanted.engine)
    return existing;
  if (await isEmpty(layer)) {
    await giveUpLayer(stateDir, wanted.session);
    await existing[Symbol.asyncDispose]();
    return holdLayer(stateDir, wanted, room);
  }
  await existing[Symbol.asyncDispose]();
  throw new HarnessError(
    EXIT.usage,
    `this session's changes are in ${isolation === "copy" ? "a copy of" : "a layer over"} ${workspace}${engine === undefined ? "" : " that pods work on"}, and have not been applied`,
    `harness apply ${wanted.session}   (or continue with it: --isolation ${isolation} --cwd ${workspace}${engineFlag(layer)})`,
  );
}

/** Undefined if the session has no layer. */
export async function holdExisting(stateDir: string, session: string): Promise<HeldLayer | undefined> {
  const before = await layerOf(stateDir, session);
  if (before === undefined) return undefined;
  const { dev, ino } = await lstat(before.folder, { bigint: true });
  const lock = await lockWorkspace({ path: before.folder, dev, ino, write: true, stateDir });
  // The previous holder may have given the layer up.
  const layer = await layerOf(stateDir, session);
  if (layer !== undefined && (await lstat(layer.folder, { bigint: true })).ino === ino)
    return { layer, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
  await lock[Symbol.asyncDispose]();
  return holdExisting(stateDir, session);
}

/** Whether the layer has nothing to apply. */
export async function isEmpty({ folder, isolation, volume, engine }: Layer): Promise<boolean> {
  if (engine !== undefined) return (await returnedTree(folder)) === undefined && !(await hasPieces(folder));
  if (isolation === "copy") return volume === null;
  return (await readdir(path.join(folder, "upper"))).length === 0;
}

/** An engine on this machine is the default and needs no flag. */
function engineFlag({ engine, at, context }: Layer): string {
  if (engine !== undefined) return ` --engine ${at ?? "kubernetes:"}`;
  return at === undefined || at.startsWith("unix:") ? "" : ` --engine ${context ?? at}`;
}

/** Another run of the session may have made it meanwhile. */
function ignoreExisting(thrown: unknown): void {
  const cause = thrown instanceof HarnessError ? thrown.cause : thrown;
  if (!["EEXIST", "ENOTEMPTY"].includes(errorCode(cause) ?? "")) throw thrown;
}

/** Limit for all layers and copies of a state folder together. */
const QUOTA_BYTES = 20 * 2 ** 30;

/** Above this share of the limit there is a warning. */
const WARN_SHARE = 0.8;

const MAX_NAMED = 3;

interface QuotaOptions {
  readonly warn: (text: string) => void;
  /** In bytes; the default when left out. */
  readonly quota?: number;
}

/**
 * Called before a new layer is made. Only a person may apply or give up kept changes, so nothing is deleted: without
 * room no new layer begins, and existing layers continue.
 */
async function refuseWithoutRoom(
  stateDir: string,
  { warn, quota = QUOTA_BYTES }: QuotaOptions,
): Promise<void> {
  const kept = (await allLayers(stateDir)).filter(({ state }) => state === "kept");
  const all = await Promise.all(kept.map(usedSpaceOf));
  const bytes = all.reduce((sum, each) => sum + each.bytes, 0);
  if (bytes <= quota * WARN_SHARE) return;
  const largest = all.toSorted((a, b) => b.bytes - a.bytes).slice(0, MAX_NAMED);
  const named = largest.map((each) => `${each.session} (${formatSize(each.bytes)})`).join(", ");
  const usage = `unapplied changes of sessions take up ${formatSize(bytes)} of ${formatSize(quota)}: ${named}`;
  if (bytes <= quota) return warn(usage);
  const { session = "ID" } = largest[0] ?? {};
  throw new HarnessError(
    EXIT.sandbox,
    `${usage}; there is no room for another`,
    `harness apply ${session}   (or discard it: harness sessions rm ${session})`,
  );
}

interface UsedSpace {
  readonly session: string;
  readonly bytes: number;
}

async function usedSpaceOf({ folder, volume, engine }: FoundLayer): Promise<UsedSpace> {
  const session = path.basename(folder);
  if (volume === null) {
    const parts = engine === undefined ? ["upper"] : ["tree", "pieces"];
    const sizes = await Promise.all(parts.map((part) => bytesIn(path.join(folder, part))));
    return { session, bytes: sizes.reduce((sum, each) => sum + each, 0) };
  }
  const noted = Number(await readFile(path.join(folder, "bytes"), "utf8").catch(() => "0"));
  return { session, bytes: Number.isFinite(noted) ? noted : 0 };
}

/** Records the size of a copy when it is made: later only its engine can see the copy. */
export const noteBytes = (folder: string, bytes: number): Promise<void> =>
  writeFile(path.join(folder, "bytes"), String(bytes), { mode: 0o600 });

/** Bytes on the disk. Entries that cannot be read or that vanish meanwhile are not counted. */
async function bytesIn(folder: string | Buffer): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    const at = Buffer.concat([Buffer.from(folder), SLASH, entry.name]);
    const stats = await lstat(at).catch(() => undefined);
    bytes += (stats?.blocks ?? 0) * DISK_BLOCK;
    if (entry.isDirectory()) bytes += await bytesIn(at);
  }
  return bytes;
}

const DISK_BLOCK = 512;

const SLASH = Buffer.from("/");

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

/**
 * `<layer>/pieces/` holds what the calls of a box over a copy changed, fetched after each call: folders in numeric
 * order, each with a `tree` of added and modified entries and `gone`, the deleted paths. `base` identifies the tree
 * that the pieces apply to; with another tree in its place they no longer count.
 */
const piecesOf = (folder: string): string => path.join(folder, "pieces");

/** What one call changed; paths are relative to the workspace. */
interface Piece {
  readonly number: number;
  readonly deleted: readonly string[];
  /** Below one top folder: the remaining files, and every folder above them and above the deleted files. */
  readonly archive: AsyncIterable<Buffer>;
}

/** Stores the piece as a whole or not at all. The first piece of a box is number 1. */
export async function keepPiece(folder: string, { number, deleted, archive }: Piece): Promise<void> {
  const all = piecesOf(folder);
  if (number === 1) await beginPieces(folder);
  const aside = path.join(all, ".new");
  await removeTree(aside);
  for (const each of [aside, path.join(aside, "tree")]) await mkdir(each, { mode: 0o700 });
  await unpack(archive, path.join(aside, "tree"));
  const gone = await deletedPaths(Buffer.from(path.join(aside, "tree")), deleted);
  await writeFile(path.join(aside, "gone"), bytesOfText(gone.map((each) => `${each}\0`).join("")));
  await rename(aside, pieceAt(folder, number));
}

/** Deletes a file that another piece contains anew, to save space. */
export async function dropFromPiece(folder: string, number: number, file: string): Promise<void> {
  const at = Buffer.concat([
    Buffer.from(`${pieceAt(folder, number)}/tree/`),
    ...(isPath(file) ? [bytesOfText(file)] : []),
  ]);
  await unlink(at).catch(() => undefined);
}

const pieceAt = (folder: string, number: number): string =>
  path.join(piecesOf(folder), String(number).padStart(6, "0"));

async function beginPieces(folder: string): Promise<void> {
  const [all, aside] = [piecesOf(folder), `${piecesOf(folder)}.new`];
  for (const each of [all, aside]) await removeTree(each);
  await mkdir(aside, { mode: 0o700 });
  await writeFile(path.join(aside, "base"), await baseOf(folder));
  await rename(aside, all);
}

/** The tree's inode number. A replacing tree is made while the old tree exists, so the two numbers differ. */
async function baseOf(folder: string): Promise<string> {
  const tree = await returnedTree(folder);
  return tree === undefined ? "workspace" : String((await lstat(tree, { bigint: true })).ino);
}

/** The valid pieces, in order. */
async function piecesIn(folder: string): Promise<readonly string[]> {
  const base = await readFile(path.join(piecesOf(folder), "base"), "utf8").catch(() => undefined);
  if (base === undefined || base !== (await baseOf(folder))) return [];
  const names = (await readdir(piecesOf(folder))).filter((name) => /^\d+$/.test(name));
  return names.toSorted((a, b) => Number(a) - Number(b)).map((name) => path.join(piecesOf(folder), name));
}

export const hasPieces = async (folder: string): Promise<boolean> => (await piecesIn(folder)).length > 0;

/** For a layer whose tree already includes all pieces. */
export const dropPieces = (folder: string): Promise<void> => removeTree(piecesOf(folder));

/**
 * Merges the pieces that a lost box had sent into the layer's tree, as if the tree had been returned when the box
 * ended. The caller must hold the layer. If it is killed midway, the next call starts over.
 */
export async function foldPieces({ folder, workspace, apart }: Layer): Promise<void> {
  const pieces = await piecesIn(folder);
  if (pieces.length > 0) {
    const aside = path.join(folder, "tree.new");
    await removeTree(aside);
    await mkdir(aside, { mode: 0o700 });
    const base = (await returnedTree(folder)) ?? workspace;
    await unpack(
      archiveOf(base, "tree", () => undefined, apart),
      aside,
    );
    for (const piece of pieces) await applyPiece(piece, Buffer.from(aside));
    await returnTree(folder, aside);
  }
  await dropPieces(folder);
}

/** Nothing else writes below `onto`, and only real folders in it are entered. */
async function applyPiece(piece: string, onto: Buffer): Promise<void> {
  const gone = textOfBytes(await readFile(path.join(piece, "gone"))).split("\0");
  for (const each of gone) if (isPath(each)) await removeBelow(onto, each);
  await overlayFolder(Buffer.from(path.join(piece, "tree")), onto);
}

async function overlayFolder(from: Buffer, onto: Buffer): Promise<void> {
  for (const name of await readdir(from, { encoding: "buffer" })) {
    const [mine, theirs] = [joinPath(from, name), joinPath(onto, name)];
    const [is, was] = [await lstat(mine), await statsOf(theirs)];
    if (was !== undefined && !(is.isDirectory() && was.isDirectory())) await remove(theirs);
    if (is.isDirectory()) {
      if (was?.isDirectory() !== true) await mkdir(theirs);
      // A folder's mode may lock out its own owner.
      for (const each of [mine, theirs]) await chmod(each, is.mode | 0o700);
      await overlayFolder(mine, theirs);
      await chmod(theirs, is.mode & 0o7777);
    } else if (is.isSymbolicLink()) await symlink(await readlink(mine, { encoding: "buffer" }), theirs);
    else await link(mine, theirs);
  }
}

async function removeBelow(root: Buffer, file: string): Promise<void> {
  const names = file.split("/").map((name) => bytesOfText(name));
  let at = root;
  for (const name of names) {
    const stats = await statsOf(at);
    if (stats?.isDirectory() !== true) return;
    await chmod(at, stats.mode | 0o700);
    at = joinPath(at, name);
  }
  await remove(at);
}

async function remove(at: Buffer): Promise<void> {
  const stats = await statsOf(at);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(at);
  await chmod(at, 0o700);
  for (const name of await readdir(at, { encoding: "buffer" })) await remove(joinPath(at, name));
  await rmdir(at);
}

/** The deleted paths and the deleted folders above them, that is, those that are no folders in the piece's tree. */
async function deletedPaths(tree: Buffer, deleted: readonly string[]): Promise<readonly string[]> {
  const gone = new Set<string>();
  const stay = new Set<string>();
  for (const file of deleted) {
    if (!isPath(file)) continue;
    for (const folder of foldersAbove(file)) {
      if (stay.has(folder) || gone.has(folder)) continue;
      const stats = await statsOf(joinPath(tree, bytesOfText(folder)));
      (stats?.isDirectory() === true ? stay : gone).add(folder);
    }
    gone.add(file);
  }
  return [...gone];
}

/** The outermost folder first. */
export function foldersAbove(file: string): readonly string[] {
  const names = file.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

/** Whether the path stays below its folder; a box can send any text. */
export const isPath = (file: string): boolean =>
  file.split("/").every((name) => !["", ".", ".."].includes(name)) && !file.includes("\0");

const joinPath = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, Buffer.from("/"), name]);

async function statsOf(at: Buffer): Promise<Stats | undefined> {
  try {
    return await lstat(at);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return undefined;
    throw thrown;
  }
}
