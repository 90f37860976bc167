import {
  chmod,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from "node:fs/promises";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { errorCode } from "../../core/errors.ts";
import { NotRegularError, openRegular } from "../../platform/safe-files.ts";
import { type HeldFolder, hold, openUp } from "./open-folder.ts";
import { look } from "./solid.ts";

/** Moves one entry of any kind without following it. To another file system the entry is copied, then removed. */
export async function move(from: string, to: string): Promise<void> {
  try {
    await renameOrOpenUp(from, to);
  } catch (thrown) {
    if (errorCode(thrown) !== "EXDEV") throw thrown;
    await copyWhole(from, to);
    await remove(from);
  }
}

/** Removes an incomplete copy, which would take the room of what is moved next. */
export async function copyWhole(from: string, to: string): Promise<void> {
  try {
    await copy(from, to);
  } catch (thrown) {
    await remove(to).catch(() => undefined);
    throw thrown;
  }
}

/** Renaming a folder needs the right to write to it: a folder made with mode 0 is unlocked first. */
export async function renameOrOpenUp(from: string, to: string): Promise<void> {
  try {
    await rename(bytesOfText(from), bytesOfText(to));
  } catch (thrown) {
    if (!["EACCES", "EPERM"].includes(errorCode(thrown) ?? "")) throw thrown;
    if (!openUp(bytesOfText(from).toString("latin1"))) throw thrown;
    await rename(bytesOfText(from), bytesOfText(to));
  }
}

/** Links stay links; FIFOs, sockets and devices are left out, as they hold no data. Goes no deeper than paths can. */
async function copy(from: string, to: string): Promise<void> {
  const stats = await look(from);
  if (stats?.isSymbolicLink() === true)
    await symlink(await readlink(bytesOfText(from), { encoding: "buffer" }), bytesOfText(to));
  else if (stats?.isFile() === true) await copyRegular(from, to);
  else if (stats?.isDirectory() === true) {
    await mkdir(bytesOfText(to), { mode: 0o700 });
    await using folder = await hold(from, "");
    for (const name of await namesIn(folder)) await copy(folder.entry(name), `${to}/${name}`);
    await chmod(bytesOfText(to), stats.mode & 0o777);
  }
}

export async function copyRegular(from: string, to: string): Promise<void> {
  await using opened = await openRegular(bytesOfText(from), "refuse").catch((thrown: unknown) => {
    if (thrown instanceof NotRegularError) return undefined;
    throw thrown;
  });
  if (opened === undefined) return;
  const { handle: source, stats } = opened;
  await using target = await open(bytesOfText(to), "wx", stats.mode & 0o777);
  if (stats.blocks > 0) await copyBytes(source, target);
  await target.truncate(stats.size);
  await target.chmod(stats.mode & 0o777);
  await target.utimes(stats.atime, stats.mtime);
}

const PIECE = 2 ** 20;

/** Holes stay holes: a file that takes no space in the workspace must not fill the other disk. */
async function copyBytes(source: FileHandle, target: FileHandle): Promise<void> {
  const [piece, zeros] = [Buffer.alloc(PIECE), Buffer.alloc(PIECE)];
  for (let at = 0; ;) {
    const { bytesRead } = await source.read(piece, 0, PIECE, at);
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

const namesIn = async (folder: HeldFolder): Promise<readonly string[]> =>
  (await readdir(folder.entry("."), { encoding: "buffer" })).map(textOfBytes);

/** Removes an entry and all below it without following links. */
export async function remove(file: string): Promise<void> {
  const stats = await look(file);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(bytesOfText(file));
  {
    await using folder = await hold(file, "");
    for (const name of await namesIn(folder)) await remove(folder.entry(name));
  }
  await rmdir(bytesOfText(file));
}
