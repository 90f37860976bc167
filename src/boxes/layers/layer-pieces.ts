import { Buffer } from "node:buffer";
import type { Stats } from "node:fs";
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readlink,
  rmdir,
  symlink,
  unlink,
  readFile,
  rename,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { errorCode } from "../../core/errors.ts";
import { removeTree } from "../life/workspace-folders.ts";
import { returnedTree, returnTree, unpack } from "./copy-changes.ts";
import type { Layer } from "./layer-record.ts";
import { archiveOf } from "./workspace-archive.ts";

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
    const [mine, theirs] = [within(from, name), within(onto, name)];
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
    at = within(at, name);
  }
  await remove(at);
}

async function remove(at: Buffer): Promise<void> {
  const stats = await statsOf(at);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(at);
  await chmod(at, 0o700);
  for (const name of await readdir(at, { encoding: "buffer" })) await remove(within(at, name));
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
      const stats = await statsOf(within(tree, bytesOfText(folder)));
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

const within = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, Buffer.from("/"), name]);

async function statsOf(at: Buffer): Promise<Stats | undefined> {
  try {
    return await lstat(at);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return undefined;
    throw thrown;
  }
}
