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
 * A folder that is held open: names are looked up only in it, whatever is moved or linked meanwhile. Without /proc the
 * path is used, which is safe only for a tree that nobody writes to.
 */
export interface HeldFolder extends Disposable {
  readonly stats: Stats;
  readonly at: (name: Buffer) => Buffer;
}

/** Also fails for a folder whose names can be read but not looked up. */
export function hold(folder: string | Buffer): HeldFolder {
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

/** The names as bytes, sorted, at most `limit`: one hostile folder must not fill the memory. */
export function namesIn(folder: HeldFolder, limit: number): readonly Buffer[] {
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
export function lookIn(folder: HeldFolder, name: Buffer): Stats | undefined {
  try {
    return lstatSync(folder.at(name));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

/** The path of an entry below the root; the path of the root itself is empty. */
export const below = (folder: Buffer, name: Buffer): Buffer =>
  folder.length === 0 ? name : Buffer.concat([folder, SLASH, name]);
