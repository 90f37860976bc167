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
import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";
import { errorCode } from "../../core/errors.ts";
import { removeTree } from "../life/workspace-folders.ts";
import { returnedTree, returnTree, unpack } from "./copy-changes.ts";
import type { Layer } from "./layer-record.ts";
import { archiveOf } from "./workspace-archive.ts";

/**
 * `<layer>/pieces/` is what the calls of a box over a copy changed, as it came home behind each of them: folders in the order
 * of their numbers, each with a `tree` of what was added or modified and `gone`, the paths that went. `base` says which
 * tree they are to be laid over; with another one in its place they count no more.
 */
const piecesOf = (folder: string): string => path.join(folder, "pieces");

/** What one call changed; paths below the workspace. */
interface Piece {
  readonly number: number;
  readonly deleted: readonly string[];
  /** Below one top folder: the files that are there, and every folder above them and above the deleted ones. */
  readonly archive: AsyncIterable<Buffer>;
}

/** It is there as a whole or not at all. The first one of a box is number 1. */
export async function keepPiece(folder: string, { number, deleted, archive }: Piece): Promise<void> {
  const all = piecesOf(folder);
  if (number === 1) await beginPieces(folder);
  const aside = path.join(all, ".new");
  await removeTree(aside);
  for (const each of [aside, path.join(aside, "tree")]) await mkdir(each, { mode: 0o700 });
  await unpack(archive, path.join(aside, "tree"));
  const gone = await goneIn(Buffer.from(path.join(aside, "tree")), deleted);
  await writeFile(path.join(aside, "gone"), bytesOfText(gone.map((each) => `${each}\0`).join("")));
  await rename(aside, pieceAt(folder, number));
}

/** What another piece has anew takes no room in this one any more. */
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

/** By its inode; a tree that takes its place is made while it is still there. */
async function baseOf(folder: string): Promise<string> {
  const tree = await returnedTree(folder);
  return tree === undefined ? "workspace" : String((await lstat(tree, { bigint: true })).ino);
}

/** Those that count, in their order. */
async function piecesIn(folder: string): Promise<readonly string[]> {
  const base = await readFile(path.join(piecesOf(folder), "base"), "utf8").catch(() => undefined);
  if (base === undefined || base !== (await baseOf(folder))) return [];
  const names = (await readdir(piecesOf(folder))).filter((name) => /^\d+$/.test(name));
  return names.toSorted((a, b) => Number(a) - Number(b)).map((name) => path.join(piecesOf(folder), name));
}

export const hasPieces = async (folder: string): Promise<boolean> => (await piecesIn(folder)).length > 0;

/** For a layer whose tree has all of them. */
export const dropPieces = (folder: string): Promise<void> => removeTree(piecesOf(folder));

/**
 * What a box that was lost had brought home becomes the layer's tree, as if it had come back at its end; for whoever holds
 * the layer. Killed on the way, the next one begins anew.
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
    for (const piece of pieces) await laidOver(piece, Buffer.from(aside));
    await returnTree(folder, aside);
  }
  await dropPieces(folder);
}

/** Nobody else writes below `onto`, and what is no folder in there is never entered. */
async function laidOver(piece: string, onto: Buffer): Promise<void> {
  const gone = textOfBytes(await readFile(path.join(piece, "gone"))).split("\0");
  for (const each of gone) if (isPath(each)) await takeAway(onto, each);
  await layOver(Buffer.from(path.join(piece, "tree")), onto);
}

async function layOver(from: Buffer, onto: Buffer): Promise<void> {
  for (const name of await readdir(from, { encoding: "buffer" })) {
    const [mine, theirs] = [within(from, name), within(onto, name)];
    const [is, was] = [await lstat(mine), await statsOf(theirs)];
    if (was !== undefined && !(is.isDirectory() && was.isDirectory())) await remove(theirs);
    if (is.isDirectory()) {
      if (was?.isDirectory() !== true) await mkdir(theirs);
      // Rights may shut a folder to its own owner.
      for (const each of [mine, theirs]) await chmod(each, is.mode | 0o700);
      await layOver(mine, theirs);
      await chmod(theirs, is.mode & 0o7777);
    } else if (is.isSymbolicLink()) await symlink(await readlink(mine, { encoding: "buffer" }), theirs);
    else await link(mine, theirs);
  }
}

async function takeAway(root: Buffer, file: string): Promise<void> {
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

/** With the folders above them that went, too: those that are none in what came. */
async function goneIn(tree: Buffer, deleted: readonly string[]): Promise<readonly string[]> {
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

/** The outermost first. */
export function foldersAbove(file: string): readonly string[] {
  const names = file.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

/** Whether it leads to somewhere below a folder; a box says what it likes. */
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
