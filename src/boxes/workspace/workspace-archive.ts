import { Buffer } from "node:buffer";
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { setImmediate } from "node:timers/promises";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import {
  TAR_BLOCK,
  type TarEntry,
  tarEnd,
  tarPadding,
  untar,
  withChecksum,
  writeTarNumber,
} from "../../core/tar-archive.ts";
import { NotRegularError, openRegularSync } from "../../platform/safe-files.ts";
import type { LeftOut } from "./layer-record.ts";
import { holdFolderSync } from "./safe-paths.ts";
import { type WalkedEntry, treeWithout } from "./workspace-changes.ts";

/** Of a copy, and of an archive that nobody has checked yet. */
export interface ArchiveLimits {
  readonly bytes: number;
  readonly entries: number;
}

const COPY_LIMITS: ArchiveLimits = { bytes: 2 * 2 ** 30, entries: 500_000 };

/** Counts before the first byte is sent. */
export async function refuseTooLarge(
  root: string,
  most: ArchiveLimits = COPY_LIMITS,
  apart: readonly string[] = [],
): Promise<void> {
  let [entries, bytes] = [0, 0];
  using folder = holdFolderSync(root);
  for (const { stats } of treeWithout(folder, apart)) {
    entries += 1;
    if (stats.isFile()) bytes += stats.size;
    if (entries > most.entries) throw tooLarge(root, `more than ${most.entries} files`);
    if (bytes > most.bytes) throw tooLarge(root, `more than ${most.bytes / 2 ** 30} GiB`);
    if (entries % 1000 === 0) await setImmediate();
  }
}

const tooLarge = (root: string, what: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${root} is too large to be copied into a box: ${what}`,
    "name a smaller folder: --cwd DIR; or where the engine is on this machine: --isolation overlay",
  );

export interface Skipped {
  readonly path: string;
  readonly why: string;
}

const PIECE_BYTES = 1 << 18;

/**
 * The tree as a tar stream below one name: owners, modes and times are kept, links stay links. Entries other than
 * files, folders and links, and entries that cannot be read, are left out and reported; the paths in `apart` are left
 * out.
 */
export async function* archiveOf(
  root: string,
  under: string,
  skip: (skipped: Skipped) => void,
  apart: readonly string[] = [],
): AsyncGenerator<Buffer, void> {
  const name = Buffer.from(under);
  using folder = holdFolderSync(root);
  const waiting: Buffer[] = [headerOf(folder, name)];
  let size = 0;
  for (const entry of treeWithout(folder, apart)) {
    const path = Buffer.concat([name, Buffer.from("/"), entry.path]);
    const tell = (why: string): void => skip({ path: textOfBytes(entry.path), why });
    if (entry.closed !== undefined) tell(`its contents are left out: it ${entry.closed}`);
    for (const part of partsOf(entry, path, tell)) {
      waiting.push(part);
      size += part.length;
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(waiting.splice(0));
      size = 0;
    }
  }
  yield Buffer.concat([...waiting, tarEnd()]);
}

function* partsOf(entry: WalkedEntry, path: Buffer, tell: (why: string) => void): Generator<Buffer, void> {
  const { stats } = entry;
  if (stats.isDirectory()) yield headerOf(entry, path);
  else if (stats.isSymbolicLink()) yield* linkParts(entry, path, tell);
  else if (stats.isFile()) yield* fileParts(entry, path, tell);
  else tell("it is not a file, folder or link");
}

const headerOf = ({ stats }: Pick<WalkedEntry, "stats">, path: Buffer): Buffer =>
  tarHeader({ ...ownership(stats), path, type: "folder", size: 0 });

const ownership = ({ mode, uid, gid, mtimeMs }: WalkedEntry["stats"]) => ({
  mode,
  uid,
  gid,
  modified: mtimeMs / 1000,
});

function* linkParts(
  { at, stats }: WalkedEntry,
  path: Buffer,
  tell: (why: string) => void,
): Generator<Buffer, void> {
  try {
    const target = readlinkSync(at, { encoding: "buffer" });
    yield tarHeader({ ...ownership(stats), path, type: "link", size: 0, target });
  } catch (thrown) {
    tell(`it cannot be read: ${errorCode(thrown) ?? "unknown"}`);
  }
}

/** Sends as many bytes as the header says, even if the file changes meanwhile. */
function* fileParts({ at }: WalkedEntry, path: Buffer, tell: (why: string) => void): Generator<Buffer, void> {
  const fd = openFile(at);
  if (typeof fd === "string") {
    tell(fd);
    return;
  }
  try {
    const stats = fstatSync(fd);
    const { size } = stats;
    yield tarHeader({ ...ownership(stats), path, type: "file", size });
    for (let done = 0; done < size;) {
      const piece = Buffer.alloc(Math.min(PIECE_BYTES, size - done));
      const read = readSync(fd, piece, 0, piece.length, done);
      if (read === 0) tell("it shrank while it was copied");
      done += read === 0 ? piece.length : read;
      yield read === 0 ? piece : piece.subarray(0, read);
    }
    yield tarPadding(size);
  } finally {
    closeSync(fd);
  }
}

/** A descriptor of a regular file, or why there is none. */
function openFile(at: Buffer): number | string {
  try {
    return openRegularSync(at, "refuse").descriptor;
  } catch (thrown) {
    if (thrown instanceof NotRegularError) return "it is not a file, folder or link";
    return `it cannot be read: ${errorCode(thrown) ?? "unknown"}`;
  }
}

/** A complete archive of files that belong to root and that everybody may read; their folders are assumed to exist. */
export function tarOf(files: Readonly<Record<string, string>>): Buffer {
  const parts = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text);
    const entry = {
      path: Buffer.from(name),
      type: "file",
      mode: 0o644,
      uid: 0,
      gid: 0,
      modified: 0,
    } as const;
    return [tarHeader({ ...entry, size: content.length }), content, tarPadding(content.length)];
  });
  return Buffer.concat([...parts, tarEnd()]);
}

/** Headers in GNU format: names are bytes of any kind and length, numbers have any size. */
interface ArchivedEntry {
  readonly path: Buffer;
  readonly type: "file" | "folder" | "link";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  /** Seconds since 1970. */
  readonly modified: number;
  readonly target?: Buffer;
}

const NAME_BYTES = 100;
const TYPES = { file: "0", link: "2", folder: "5" } as const;

function tarHeader(entry: ArchivedEntry): Buffer {
  const { path, type, target = Buffer.alloc(0) } = entry;
  const name = type === "folder" ? Buffer.concat([path, Buffer.from("/")]) : path;
  return Buffer.concat([
    ...(name.length > NAME_BYTES ? longName("L", name) : []),
    ...(target.length > NAME_BYTES ? longName("K", target) : []),
    headerBlock(entry, { name, type: TYPES[type], target }),
  ]);
}

/** A name that does not fit is stored as content before its entry. */
function longName(type: string, name: Buffer): readonly Buffer[] {
  const content = Buffer.concat([name, Buffer.alloc(1)]);
  const fields = { mode: 0, uid: 0, gid: 0, size: content.length, modified: 0 };
  const header = headerBlock(fields, { name: Buffer.from("././@LongLink"), type, target: Buffer.alloc(0) });
  return [header, content, tarPadding(content.length)];
}

function headerBlock(
  { mode, uid, gid, size, modified }: Omit<ArchivedEntry, "path" | "type">,
  { name, type, target }: { readonly name: Buffer; readonly type: string; readonly target: Buffer },
): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  name.copy(header, 0, 0, NAME_BYTES);
  writeTarNumber(header, 100, 8, mode & 0o7777);
  writeTarNumber(header, 108, 8, uid);
  writeTarNumber(header, 116, 8, gid);
  writeTarNumber(header, 124, 12, size);
  writeTarNumber(header, 136, 12, Math.max(0, Math.floor(modified)));
  header.write(type, 156, "latin1");
  target.copy(header, 157, 0, NAME_BYTES);
  header.write("ustar  \0", 257, "latin1");
  return withChecksum(header);
}

/**
 * Extracts everything below the archive's one top folder into an empty folder. Nothing is created through a link or
 * above the folder. Modes and times are kept, owners are not; entries other than files, folders and links are left out,
 * and their paths are returned.
 */
export async function unpack(
  archive: AsyncIterable<Buffer>,
  folder: string,
  most: ArchiveLimits = { bytes: Number.POSITIVE_INFINITY, entries: Number.POSITIVE_INFINITY },
): Promise<readonly LeftOut[]> {
  using target = new UnpackTarget(folder, most);
  for await (const each of untar(archive)) {
    if (Buffer.isBuffer(each)) target.write(each);
    else target.begin(each);
  }
  target.settle();
  return target.leftOut;
}

class UnpackTarget implements Disposable {
  readonly #folder: Buffer;
  readonly #left: { bytes: number; entries: number };
  readonly #made = new Set([""]);
  readonly #rights: (readonly [at: Buffer, entry: TarEntry])[] = [];
  readonly #leftOut: LeftOut[] = [];
  #open: number | undefined;

  constructor(folder: string, most: ArchiveLimits) {
    this.#folder = Buffer.from(folder);
    this.#left = { ...most };
  }

  #take(what: keyof ArchiveLimits, count: number): void {
    this.#left[what] -= count;
    if (this.#left[what] < 0) throw new Error(`the tree has more ${what} than this machine accepts`);
  }

  begin(entry: TarEntry): void {
    this[Symbol.dispose]();
    this.#take("entries", 1);
    const path = belowTop(entry.name);
    if (path.length === 0) return;
    const at = this.#at(path);
    if (entry.type === "file") this.#open = openSync(at, NEW_FILE_FLAGS, 0o600);
    else if (entry.type === "folder") {
      mkdirSync(at, { mode: 0o700 });
      this.#made.add(path.toString("latin1"));
    } else if (entry.type === "link") symlinkSync(entry.target, at);
    else if (entry.type === "same") this.#linkTo(belowTop(entry.target), at, entry);
    else this.#leaveOut(path, entry.mode);
    if (entry.type === "file" || entry.type === "folder") this.#rights.push([at, entry]);
  }

  /** Another name of an earlier entry, which may have been left out. */
  #linkTo(earlier: Buffer, at: Buffer, { name }: TarEntry): void {
    const known = this.#leftOut.find(({ path }) => path === textOfBytes(earlier));
    if (known === undefined) linkSync(this.#at(earlier), at);
    else this.#leaveOut(belowTop(name), known.mode);
  }

  #leaveOut(path: Buffer, mode: number): void {
    this.#leftOut.push({ path: textOfBytes(path), mode });
  }

  get leftOut(): readonly LeftOut[] {
    return this.#leftOut;
  }

  write(content: Buffer): void {
    const descriptor = this.#open;
    if (descriptor === undefined) return;
    this.#take("bytes", content.length);
    let at = 0;
    while (at < content.length) at += writeSync(descriptor, content, at);
  }

  /** Sets modes last, because a mode may lock a folder. */
  settle(): void {
    this[Symbol.dispose]();
    for (const [at, { mode, modified }] of this.#rights.toReversed()) {
      utimesSync(at, modified, modified);
      chmodSync(at, mode);
    }
  }

  [Symbol.dispose](): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  #at(path: Buffer): Buffer {
    if (!this.#made.has(parentOf(path)))
      throw new Error(`the archive has no folder for ${path.toString("latin1")}`);
    return Buffer.concat([this.#folder, SLASH, path]);
  }
}

/** The path without the archive's top folder. A path that leads out of the folder is refused. */
function belowTop(name: Buffer): Buffer {
  const names = name.toString("latin1").split("/").slice(1);
  const path = names.filter((each) => each !== "" && each !== ".");
  if (path.includes("..")) throw new Error("a path in the archive leads out of its folder");
  return Buffer.from(path.join("/"), "latin1");
}

function parentOf(path: Buffer): string {
  const slash = path.lastIndexOf(SLASH);
  return slash === -1 ? "" : path.toString("latin1", 0, slash);
}

const NEW_FILE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const SLASH = Buffer.from("/");
