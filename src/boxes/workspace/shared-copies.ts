import {
  chmod,
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from "node:fs/promises";
import { errorCode } from "../../core/errors.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { NotRegularError, openRegular } from "../../platform/safe-files.ts";
import { type HeldFolder, holdFolder, lstatIfThere, unlockFolder } from "./safe-paths.ts";

/**
 * Copies trees that a box may have made, and moves them between file systems. A file with several names is copied only
 * once: a command makes any number of names for nothing, and the copies of all of them would fill the disk.
 */
export class SharedCopies implements AsyncDisposable {
  readonly #folder: string;
  /** Device and inode of a file → its copy in the folder. */
  readonly #copies = new Map<string, string>();
  readonly #made: string[] = [];

  /** The copies are kept in this folder, which is private and in the file system of all targets. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Copies a regular file; leaves out anything else. */
  async file(from: string, to: string): Promise<void> {
    const stats = await lstatIfThere(from);
    if (stats === undefined || stats.nlink === 1) return void (await copyRegular(from, to));
    const inode = `${stats.dev}:${stats.ino}`;
    const known = this.#copies.get(inode);
    if (known !== undefined && (await isLinked(known, to))) return;
    const copy = `${this.#folder}/copy-${this.#made.length}`;
    this.#made.push(copy);
    if (!(await copyRegular(from, copy))) return;
    this.#copies.set(inode, copy);
    await link(bytesOfText(copy), bytesOfText(to));
  }

  /** Moves one entry of any kind without following it. To another file system the entry is copied, then removed. */
  async move(from: string, to: string): Promise<void> {
    try {
      await renameOrOpenUp(from, to);
    } catch (thrown) {
      if (errorCode(thrown) !== "EXDEV") throw thrown;
      await this.whole(from, to);
      await remove(from);
    }
  }

  /** Removes an incomplete copy, which would take the room of what is moved next. */
  async whole(from: string, to: string): Promise<void> {
    try {
      await this.#copy(from, to);
    } catch (thrown) {
      await remove(to).catch(() => undefined);
      throw thrown;
    }
  }

  /** Links stay links; FIFOs, sockets and devices are left out, as they hold no data. Goes no deeper than paths can. */
  async #copy(from: string, to: string): Promise<void> {
    const stats = await lstatIfThere(from);
    if (stats?.isSymbolicLink() === true)
      await symlink(await readlink(bytesOfText(from), { encoding: "buffer" }), bytesOfText(to));
    else if (stats?.isFile() === true) await this.file(from, to);
    else if (stats?.isDirectory() === true) {
      await mkdir(bytesOfText(to), { mode: 0o700 });
      using folder = holdFolder(from, "");
      for (const name of await namesInFolder(folder)) await this.#copy(folder.entry(name), `${to}/${name}`);
      await chmod(bytesOfText(to), stats.mode & 0o777);
    }
  }

  /** The copies keep the names that they were linked to. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const copy of this.#made) await unlink(bytesOfText(copy)).catch(() => undefined);
  }
}

/** False if the file has as many names as its file system allows. */
async function isLinked(file: string, to: string): Promise<boolean> {
  try {
    await link(bytesOfText(file), bytesOfText(to));
    return true;
  } catch (thrown) {
    if (errorCode(thrown) === "EMLINK") return false;
    throw thrown;
  }
}

/** Renaming a folder needs the right to write to it: a folder made with mode 0 is unlocked first. */
export async function renameOrOpenUp(from: string, to: string): Promise<void> {
  try {
    await rename(bytesOfText(from), bytesOfText(to));
  } catch (thrown) {
    if (!["EACCES", "EPERM"].includes(errorCode(thrown) ?? "")) throw thrown;
    if (!unlockFolder(bytesOfText(from).toString("latin1"))) throw thrown;
    await rename(bytesOfText(from), bytesOfText(to));
  }
}

/** False if it is no regular file. */
async function copyRegular(from: string, to: string): Promise<boolean> {
  await using opened = await openRegular(bytesOfText(from), "refuse").catch((thrown: unknown) => {
    if (thrown instanceof NotRegularError) return undefined;
    throw thrown;
  });
  if (opened === undefined) return false;
  const { handle: source, stats } = opened;
  await using target = await open(bytesOfText(to), "wx", stats.mode & 0o777);
  if (stats.blocks > 0) await copyBytes(source, target);
  await target.truncate(stats.size);
  await target.chmod(stats.mode & 0o777);
  await target.utimes(stats.atime, stats.mtime);
  return true;
}

const PIECE_BYTES = 2 ** 20;

/** Holes stay holes: a file that takes no space in the workspace must not fill the other disk. */
async function copyBytes(source: FileHandle, target: FileHandle): Promise<void> {
  const [piece, zeros] = [Buffer.alloc(PIECE_BYTES), Buffer.alloc(PIECE_BYTES)];
  for (let at = 0; ;) {
    const { bytesRead } = await source.read(piece, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    const read = piece.subarray(0, bytesRead);
    if (!read.equals(zeros.subarray(0, bytesRead))) await writeWhole(target, read, at);
    at += bytesRead;
  }
}

async function writeWhole(target: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await target.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
}

const namesInFolder = async (folder: HeldFolder): Promise<readonly string[]> =>
  (await readdir(folder.entry("."), { encoding: "buffer" })).map(textOfBytes);

/** Removes an entry and all below it without following links. */
export async function remove(file: string): Promise<void> {
  const stats = await lstatIfThere(file);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(bytesOfText(file));
  {
    using folder = holdFolder(file, "");
    for (const name of await namesInFolder(folder)) await remove(folder.entry(name));
  }
  await rmdir(bytesOfText(file));
}
