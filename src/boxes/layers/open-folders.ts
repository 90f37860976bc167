import { Buffer } from "node:buffer";
import {
  closeSync,
  constants,
  type Dir,
  type Dirent,
  lstatSync,
  opendirSync,
  openSync,
  type Stats,
} from "node:fs";
import { errorCode } from "../../core/errors.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/**
 * A folder that is held open: names are looked up in it and nowhere else, whatever is moved or linked meanwhile.
 * Where there is no /proc the path is used, which only a tree that nobody writes to bears.
 */
export interface Held extends Disposable {
  readonly stats: Stats;
  readonly at: (name: Buffer) => Buffer;
}

/** Fails for a folder whose names can be read and not looked up, too. */
export function hold(folder: string | Buffer): Held {
  const fd = openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
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

/** Names as bytes, in their order, at most `limit`: one hostile folder must not fill the memory. */
export function namesIn(folder: Held, limit: number): readonly Buffer[] {
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

/** Undefined when there is nothing of that name. */
export function lookIn(folder: Held, name: Buffer): Stats | undefined {
  try {
    return lstatSync(folder.at(name));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

/** A path below the root; the root's own is empty. */
export const below = (folder: Buffer, name: Buffer): Buffer =>
  folder.length === 0 ? name : Buffer.concat([folder, SLASH, name]);
