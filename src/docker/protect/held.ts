import { type FileHandle, constants, open } from "node:fs/promises";
import path from "node:path";
import { bytesOfText } from "../../core/byte-text.ts";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder that stays the same one while it is used, whatever a process in the box renames meanwhile: it is opened
 * part by part without following a link, and its entries are then named through the open descriptor.
 * Limit: only Linux names descriptors as folders; elsewhere the path itself is used and a race can be lost.
 */
export interface Held extends AsyncDisposable {
  /** The path of an entry of this very folder. */
  readonly entry: (name: string) => string;
}

/** Throws ELOOP or ENOTDIR when a part of `relative` is no folder any more. */
export async function hold(root: string, relative: string): Promise<Held> {
  let handle = await open(bytesOfText(root), DIRECTORY);
  let at = root;
  for (const part of relative.split(path.sep).filter((name) => name !== "" && name !== ".")) {
    at = path.join(at, part);
    await using above = handle;
    handle = await open(bytesOfText(through(above, part, at)), DIRECTORY);
  }
  const [kept, place] = [handle, at];
  return {
    entry: (name) => through(kept, name, path.join(place, name)),
    [Symbol.asyncDispose]: () => kept.close(),
  };
}

const through = (folder: FileHandle, name: string, plain: string): string =>
  process.platform === "linux" ? `/proc/self/fd/${folder.fd}/${name}` : plain;
