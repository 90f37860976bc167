import { Buffer } from "node:buffer";
import {
  chmodSync,
  closeSync,
  constants,
  type Dir,
  type Dirent,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  type Stats,
} from "node:fs";
import { lstat } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { bytesOfText } from "../../core/raw-data.ts";
import { openRegular, readWhole } from "../../platform/safe-files.ts";

/**
 * Paths that a process in a box may replace at any moment: looked at without following a link, opened part by part, and
 * held open while they are used.
 */

/** The entry itself, never the target of a link; undefined if nothing is there. */
export async function lstatIfThere(file: string): Promise<Stats | undefined> {
  return lstat(bytesOfText(file)).catch(absent);
}

function absent(thrown: unknown): undefined {
  if (!["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) throw thrown;
}

export const kindOf = (stats: Stats): string =>
  stats.isSymbolicLink()
    ? "link"
    : stats.isDirectory()
      ? "folder"
      : stats.isFile()
        ? "file"
        : stats.isFIFO()
          ? "FIFO"
          : stats.isSocket()
            ? "socket"
            : "device";

/**
 * Refuses a protected path that cannot be mounted safely: a link (also on the way to the path), FIFO, socket or device,
 * another owner, or a file with a second name that would stay writable. Undefined if nothing is there.
 */
export async function requireMountable(
  { root, uid, folders }: { readonly root: string; readonly uid: number; readonly folders: Set<string> },
  file: string,
): Promise<Stats | undefined> {
  let at = root;
  let stats: Stats | undefined;
  for (const part of path.relative(root, file).split(path.sep)) {
    at = path.join(at, part);
    if (at !== file && folders.has(at)) continue;
    stats = await lstatIfThere(at).catch((thrown: unknown) => {
      throw refusedPathError(file, `cannot be inspected: ${reasonOf(thrown)}`);
    });
    if (stats === undefined) return undefined;
    if (!stats.isDirectory() && (at !== file || !stats.isFile()))
      throw refusedPathError(
        file,
        at === file ? `is a ${kindOf(stats)}` : `is reached through a ${kindOf(stats)}, ${at}`,
      );
    if (at !== file) folders.add(at);
  }
  if (stats !== undefined) requireOwner(file, stats, uid);
  return stats;
}

export function requireOwner(file: string, stats: Stats, uid: number): void {
  if (stats.uid !== uid)
    throw refusedPathError(file, `belongs to uid ${stats.uid}, the workspace to uid ${uid}`);
  if (stats.isFile() && stats.nlink > 1)
    throw refusedPathError(
      file,
      `has ${stats.nlink} names (hard links); writing another one would change it`,
    );
}

export const refusedPathError = (file: string, why: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${escapeForTerminal(file)} is a protected path and ${escapeForTerminal(why)}`,
    "make it a plain file or folder of your own, or remove it; --mode read-only accepts it as it is",
  );

/** Escapes characters that act on a terminal. */
export const escapeForTerminal = (text: string): string =>
  JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');

const MAX_BYTES = 2 ** 20;

/** The text of a small regular file, opened without following a link or waiting for a FIFO; otherwise undefined. */
export async function readSmall(file: string): Promise<string | undefined> {
  await using opened = await openRegular(file, "refuse").catch(() => undefined);
  if (opened === undefined || opened.stats.size > MAX_BYTES) return undefined;
  return (await readWhole(opened, MAX_BYTES)).toString("utf8");
}

export const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder that stays the same one while it is used, whatever a process in the box renames meanwhile: it is opened part
 * by part without following links, and its entries are then named through the open descriptor.
 * Limit: only Linux can name entries through a descriptor; elsewhere the path itself is used, and a race can be lost.
 */
export interface HeldFolder extends Disposable {
  /** The path of an entry of this very folder. */
  readonly entry: (name: string) => string;
}

/** Throws ELOOP or ENOTDIR if a part of `relative` is no longer a folder. */
export function holdFolder(root: string, relative: string): HeldFolder {
  let folder = openSync(bytesOfText(root), DIRECTORY);
  let at = root;
  for (const part of relative.split(path.sep).filter((name) => name !== "" && name !== ".")) {
    at = path.join(at, part);
    const above = folder;
    try {
      folder = openSync(bytesOfText(descriptorPath(above, part, at)), DIRECTORY);
    } finally {
      closeSync(above);
    }
  }
  const [kept, place] = [folder, at];
  return {
    entry: (name) => descriptorPath(kept, name, path.join(place, name)),
    [Symbol.dispose]: () => closeSync(kept),
  };
}

const descriptorPath = (folder: number, name: string, plain: string): string =>
  process.platform === "linux" ? `/proc/self/fd/${folder}/${name}` : plain;

/** Turns a path with one character for each byte into one that Node accepts. */
export const openable = (place: string): string | Buffer =>
  /^[\u0000-\u007f]*$/.test(place) ? place : Buffer.from(place, "latin1");

/** A folder that paths start from: the root, or a folder further down that is held open. Its last user closes it. */
export class Anchor {
  readonly place: string;
  readonly full: string;
  readonly depth: number;
  readonly #close: () => void;
  #users = 1;

  constructor(place: string, full: string, depth = 0, close: () => void = () => undefined) {
    this.place = place;
    this.full = full;
    this.depth = depth;
    this.#close = close;
  }

  hold(): this {
    this.#users += 1;
    return this;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#close();
  }

  below(rest: string): Anchor {
    const fd = openSync(openable(this.place + rest), DIRECTORY);
    this.hold();
    return new Anchor(`/proc/self/fd/${fd}`, this.full + rest, this.depth + 1, () => {
      closeSync(fd);
      this.release();
    });
  }
}

/** Linux only: a descriptor that needs no right to read the folder. */
export const O_PATH = 0o10000000;

/** Gives the owner of a folder full rights to it; false if we may not do so. */
export function unlockFolder(place: string): boolean {
  if (process.platform !== "linux") return false;
  const fd = openSync(openable(place), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    chmodSync(`/proc/self/fd/${fd}`, (fstatSync(fd).mode & 0o7777) | 0o700);
    return true;
  } catch {
    return false;
  } finally {
    closeSync(fd);
  }
}

/**
 * A folder that is held open: names are looked up only in it, whatever is moved or linked meanwhile. Without /proc the
 * path is used, which is safe only for a tree that nobody writes to.
 */
export interface HeldFolderSync extends Disposable {
  readonly stats: Stats;
  readonly at: (name: Buffer) => Buffer;
}

/** Also fails for a folder whose names can be read but not looked up. */
export function holdFolderSync(folder: string | Buffer): HeldFolderSync {
  const fd = openSync(folder, DIRECTORY);
  const base = process.platform === "linux" ? Buffer.from(`/proc/self/fd/${fd}`) : Buffer.from(folder);
  const at = (name: Buffer): Buffer => Buffer.concat([base, SLASH, name]);
  try {
    return { stats: lstatSync(at(SELF)), at, [Symbol.dispose]: () => closeSync(fd) };
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

const SELF = Buffer.from(".");
const SLASH = Buffer.from("/");

/** The names as bytes, sorted, at most `limit`: one hostile folder must not fill the memory. */
export function namesIn(folder: HeldFolderSync, limit: number): readonly Buffer[] {
  // The types do not know the encoding `buffer`.
  const options = { encoding: "buffer" as BufferEncoding, bufferSize: 1024 };
  const opened = opendirSync(folder.at(SELF), options);
  const names: Buffer[] = [];
  try {
    for (let entry = next(opened); entry !== null && names.length < limit; entry = next(opened))
      names.push(entry.name);
  } finally {
    opened.closeSync();
  }
  return names.toSorted((a, b) => Buffer.compare(a, b));
}

const next = (opened: Dir): Dirent<Buffer> | null => opened.readSync() as unknown as Dirent<Buffer> | null;

/** Undefined if nothing has that name. */
export function lookIn(folder: HeldFolderSync, name: Buffer): Stats | undefined {
  try {
    return lstatSync(folder.at(name));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

/** The path of an entry below the root; the path of the root itself is empty. */
export const entryPath = (folder: Buffer, name: Buffer): Buffer =>
  folder.length === 0 ? name : Buffer.concat([folder, SLASH, name]);
