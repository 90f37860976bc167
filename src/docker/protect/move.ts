import {
  chmod,
  constants,
  copyFile,
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
import { bytesOfPath, textOfPath } from "../runner/path-text.ts";
import { type Held, hold } from "./held.ts";
import { look } from "./solid.ts";

/** Moves one entry, whatever it is, without following it. Another file system: copied, then removed. */
export async function move(from: string, to: string): Promise<void> {
  try {
    await renameOrOpenUp(from, to);
  } catch (thrown) {
    if (errorCode(thrown) !== "EXDEV") throw thrown;
    await copy(from, to);
    await remove(from);
  }
}

/** Linux only: a descriptor that needs no right to read the folder. */
const O_PATH = 0o10000000;

/** To rename a folder its owner must be allowed to write it: one made with mode 0 is opened up first. */
async function renameOrOpenUp(from: string, to: string): Promise<void> {
  try {
    await rename(bytesOfPath(from), bytesOfPath(to));
  } catch (thrown) {
    if (process.platform !== "linux" || !["EACCES", "EPERM"].includes(errorCode(thrown) ?? "")) throw thrown;
    const handle = await open(bytesOfPath(from), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      await chmod(`/proc/self/fd/${handle.fd}`, 0o700);
    } finally {
      await handle.close();
    }
    await rename(bytesOfPath(from), bytesOfPath(to));
  }
}

/** Links stay links; FIFOs, sockets and devices are left out, since nothing is lost with them. */
async function copy(from: string, to: string): Promise<void> {
  const stats = await look(from);
  if (stats?.isSymbolicLink() === true)
    await symlink(await readlink(bytesOfPath(from), { encoding: "buffer" }), bytesOfPath(to));
  else if (stats?.isFile() === true) await copyRegular(from, to);
  else if (stats?.isDirectory() === true) {
    await mkdir(bytesOfPath(to), { mode: 0o700 });
    await using folder = await hold(from, "");
    for (const name of await namesIn(folder)) await copy(folder.entry(name), `${to}/${name}`);
  }
}

async function copyRegular(from: string, to: string): Promise<void> {
  const handle = await open(
    bytesOfPath(from),
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  try {
    if (!(await handle.stat()).isFile()) return;
    if (process.platform === "linux")
      await copyFile(`/proc/self/fd/${handle.fd}`, bytesOfPath(to), constants.COPYFILE_EXCL);
    else await copyFile(bytesOfPath(from), bytesOfPath(to), constants.COPYFILE_EXCL);
  } finally {
    await handle.close();
  }
}

const namesIn = async (folder: Held): Promise<readonly string[]> =>
  (await readdir(folder.entry("."), { encoding: "buffer" })).map(textOfPath);

/** Removes an entry and all below it, without following a link. */
export async function remove(file: string): Promise<void> {
  const stats = await look(file);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(bytesOfPath(file));
  {
    await using folder = await hold(file, "");
    for (const name of await namesIn(folder)) await remove(folder.entry(name));
  }
  await rmdir(bytesOfPath(file));
}
