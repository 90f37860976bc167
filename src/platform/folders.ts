import { mkdirSync, statSync } from "node:fs";
import path from "node:path";

const PRIVATE = 0o700;

/**
 * Makes a folder with its parents, for its owner alone unless another mode is given. No other place makes several
 * levels of folders: Node's own way (`recursive`) never ends where the file system allows none (`/proc`), and blocks
 * the whole process. The error has the system's code, and names both the wanted folder and the one that could not be
 * made.
 */
export function makeFolder(folder: string, mode = PRIVATE): void {
  const missing: string[] = [];
  let at = path.resolve(folder);
  for (; !isFolder(at) && at !== path.dirname(at); at = path.dirname(at)) missing.push(at);
  for (const each of missing.toReversed())
    try {
      mkdirSync(each, { mode });
    } catch (thrown) {
      // Another process made it in the meantime.
      if (isFolder(each)) continue;
      throw notMade(path.resolve(folder), each, thrown as NodeJS.ErrnoException);
    }
}

/**
 * Runs `work` while no other process does so in this folder, which is made if it is missing. Waiting for the lock
 * blocks the whole process, so `work` awaits nothing.
 */
export async function whileLocked<T>(folder: string, patienceMs: number, work: () => T): Promise<T> {
  makeFolder(folder);
  const { FileLock, privateFile } = await import("./sqlite.ts");
  using lock = new FileLock(privateFile(path.join(folder, "lock")), patienceMs);
  lock.take("reserved");
  return work();
}

const isFolder = (at: string): boolean => {
  try {
    return statSync(at, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
};

/** The existing entry is not a folder, or is a link to nothing. */
const TAKEN = "something that is not a folder has that name";

function notMade(folder: string, at: string, thrown: NodeJS.ErrnoException): Error {
  const why = thrown.code === "EEXIST" ? TAKEN : thrown.message.replace(/, mkdir '.*'$/s, "");
  const where = at === folder ? "" : ` below ${path.dirname(at)}`;
  const failure = new Error(`the folder ${folder} cannot be made${where}: ${why}`, { cause: thrown });
  const code = thrown.code === "EEXIST" ? "ENOTDIR" : thrown.code;
  return Object.assign(failure, { code, syscall: "mkdir", path: at });
}
