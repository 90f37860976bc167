import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import path from "node:path";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";
import { bytesOfText } from "../../core/raw-data.ts";
import { openRegular } from "../../platform/safe-files.ts";

/** The entry itself, never the target of a link; undefined if nothing is there. */
export async function look(file: string): Promise<Stats | undefined> {
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
export async function solid(
  { root, uid, folders }: { readonly root: string; readonly uid: number; readonly folders: Set<string> },
  file: string,
): Promise<Stats | undefined> {
  let at = root;
  let stats: Stats | undefined;
  for (const part of path.relative(root, file).split(path.sep)) {
    at = path.join(at, part);
    if (at !== file && folders.has(at)) continue;
    stats = await look(at).catch((thrown: unknown) => {
      throw refuse(file, `cannot be inspected: ${reasonOf(thrown)}`);
    });
    if (stats === undefined) return undefined;
    if (!stats.isDirectory() && (at !== file || !stats.isFile()))
      throw refuse(
        file,
        at === file ? `is a ${kindOf(stats)}` : `is reached through a ${kindOf(stats)}, ${at}`,
      );
    if (at !== file) folders.add(at);
  }
  if (stats !== undefined) refuseOwner(file, stats, uid);
  return stats;
}

export function refuseOwner(file: string, stats: Stats, uid: number): void {
  if (stats.uid !== uid) throw refuse(file, `belongs to uid ${stats.uid}, the workspace to uid ${uid}`);
  if (stats.isFile() && stats.nlink > 1)
    throw refuse(file, `has ${stats.nlink} names (hard links); writing another one would change it`);
}

export const refuse = (file: string, why: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${printed(file)} is a protected path and ${printed(why)}`,
    "make it a plain file or folder of your own, or remove it; --mode read-only accepts it as it is",
  );

/** Escapes characters that act on a terminal. */
export const printed = (text: string): string => JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');

const MAX_BYTES = 2 ** 20;

/** The text of a small regular file, opened without following a link or waiting for a FIFO; otherwise undefined. */
export async function readSmall(file: string): Promise<string | undefined> {
  await using opened = await openRegular(file, "refuse").catch(() => undefined);
  if (opened === undefined || opened.stats.size > MAX_BYTES) return undefined;
  return await opened.handle.readFile("utf8");
}
