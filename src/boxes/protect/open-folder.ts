import { Buffer } from "node:buffer";
import { chmodSync, closeSync, constants, fstatSync, openSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { bytesOfText } from "../../core/raw-data.ts";

export const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder that stays the same one while it is used, whatever a process in the box renames meanwhile: it is opened part
 * by part without following links, and its entries are then named through the open descriptor.
 * Limit: only Linux can name entries through a descriptor; elsewhere the path itself is used, and a race can be lost.
 */
export interface HeldFolder extends AsyncDisposable {
  /** The path of an entry of this very folder. */
  readonly entry: (name: string) => string;
}

/** Throws ELOOP or ENOTDIR if a part of `relative` is no longer a folder. */
export async function hold(root: string, relative: string): Promise<HeldFolder> {
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
export function openUp(place: string): boolean {
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
