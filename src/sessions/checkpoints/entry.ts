import { closeSync, fstatSync, readlinkSync, readSync, realpathSync, type Stats } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { errorCode } from "../../core/errors.ts";
import { openRegularSync } from "../../platform/safe-files.ts";
import type { Packs } from "./packs.ts";

/**
 * What exists at one path of a workspace. Paths are byte texts (`core/raw-data.ts`) relative to the workspace; "" is
 * the workspace itself.
 */
export type Entry = FileEntry | LinkEntry | FolderEntry | OddEntry | UnkeptEntry;

/** The lower twelve bits: includes setuid, setgid and sticky. */
interface WithMode {
  readonly mode: number;
}

/** `uid:gid`, if it differs from that of the workspace's own folder. */
interface WithOwner {
  readonly owner?: string;
}

export interface FileEntry extends WithMode, WithOwner {
  readonly kind: "file";
  readonly size: number;
  /** The hashes of its content's pieces, which the packs hold. */
  readonly pieces: readonly string[];
}

interface LinkEntry extends WithOwner {
  readonly kind: "link";
  readonly target: string;
}

export interface FolderEntry extends WithMode, WithOwner {
  readonly kind: "folder";
}

/** A FIFO, a socket or a device: never opened, never recreated. */
interface OddEntry extends WithMode, WithOwner {
  readonly kind: "odd";
  readonly what: "fifo" | "socket" | "device";
}

export const notRecreated = ({ what }: OddEntry): string =>
  `a ${what === "fifo" ? "FIFO" : what} is not recreated`;

/** A file whose content is not kept, or a folder that could not be read. */
export interface UnkeptEntry extends WithMode, WithOwner {
  readonly kind: "unkept";
  readonly why: "large" | "unreadable" | "deep";
  readonly folder: boolean;
  readonly size: number;
  /** Identity and times: the same stamp means the same content. */
  readonly stamp: string;
}

export interface Tree extends Iterable<readonly [path: string, entry: Entry]> {
  readonly size: number;
  get(path: string): Entry | undefined;
  has(path: string): boolean;
  keys(): Iterable<string>;
}

/** Ignores owners: a box cannot change them. */
export function sameEntry(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a === b || isSameKindAndContent(a, b);
}

function isSameKindAndContent(a: Entry, b: Entry): boolean {
  switch (a.kind) {
    case "file":
      return b.kind === "file" && a.mode === b.mode && sameContent(a, b);
    case "link":
      return b.kind === "link" && a.target === b.target;
    case "folder":
      return b.kind === "folder" && a.mode === b.mode;
    case "odd":
      return b.kind === "odd" && a.what === b.what && a.mode === b.mode;
    case "unkept":
      return b.kind === "unkept" && a.stamp === b.stamp;
  }
}

/** What its owner needs to read a folder and to reach what it contains. */
const READ_AND_ENTER = 0o500;

/** Its owner has to open it first. */
export const isClosed = (entry: Entry): entry is FolderEntry =>
  entry.kind === "folder" && (entry.mode & READ_AND_ENTER) !== READ_AND_ENTER;

export const sameContent = (a: FileEntry, b: FileEntry): boolean =>
  a.size === b.size &&
  a.pieces.length === b.pieces.length &&
  a.pieces.every((piece, at) => piece === b.pieces[at]);

/** The folder of a path in the workspace; "" for the top level. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

export const isBelow = (path: string, folder: string): boolean =>
  folder === "" ? path !== "" : path.startsWith(`${folder}/`);

export const depthOf = (path: string): number => (path === "" ? 0 : path.split("/").length);

/** Never kept or restored: git's own folder, which boxes write only through the commit door, and harness's settings. */
const SKIPPED_NAMES: ReadonlySet<string> = new Set([".git", ".harness"]);

export const isSkippedName = (name: string): boolean => SKIPPED_NAMES.has(name.toLowerCase());

/** The path's bytes with 0 in place of each slash: in byte order a folder precedes its content, which is contiguous. */
export function keyOf(path: string): Buffer {
  const key = bytesOfText(path);
  for (let at = key.indexOf(0x2f); at !== -1; at = key.indexOf(0x2f, at + 1)) key[at] = 0;
  return key;
}

export function pathOf(key: Buffer): string {
  const bytes = Buffer.from(key);
  for (let at = bytes.indexOf(0); at !== -1; at = bytes.indexOf(0, at + 1)) bytes[at] = 0x2f;
  return textOfBytes(bytes);
}

const SLASH = Buffer.from("/");

/** A path in the form that the system accepts. Bytes only if a name is not valid text: text is much faster. */
export function hostPath(root: string, path: string): string | Buffer {
  const whole = path === "" ? root : `${root}/${path}`;
  return whole.isWellFormed() ? whole : bytesOfText(whole);
}

/** The system accepts no longer paths. */
const MAX_LENGTH = 4000;

export const tooLong = (root: string, path: string): boolean =>
  (root.length + path.length) * 3 > MAX_LENGTH &&
  bytesOfText(root).length + bytesOfText(path).length > MAX_LENGTH;

/**
 * Whether the opened file really lies at the given path, without links on the way: a folder may have been replaced
 * between two looks.
 */
export function isReallyAt(descriptor: number, whole: string | Buffer): boolean {
  const wanted = typeof whole === "string" ? Buffer.from(whole) : whole;
  return realPathOf(descriptor, wanted).equals(wanted);
}

function realPathOf(descriptor: number, wanted: Buffer): Buffer {
  if (process.platform === "linux")
    return readlinkSync(`/proc/self/fd/${descriptor}`, { encoding: "buffer" });
  const slash = wanted.lastIndexOf(SLASH);
  const parent = realpathSync(wanted.subarray(0, Math.max(slash, 1)), { encoding: "buffer" });
  return Buffer.concat([parent, wanted.subarray(slash)]);
}

/** Files are stored in pieces of this size, so that a large growing file is not stored again as a whole. */
const PIECE_BYTES = 4 * 2 ** 20;
const MAX_TRIES = 3;
/** Contents of larger files are not kept. */
export const MAX_BYTES = 2 ** 30;
/** The most bytes that one look at a workspace reads of holes: a command makes any number of them for nothing. */
const MAX_HOLES = 4 * 2 ** 30;
/** In smaller files, holes cost no more than the files themselves. */
const SMALL_BYTES = 2 ** 16;
const DISK_BLOCK = 512;
/** The most files with several names whose content is remembered during a look. */
const MAX_SHARED = 100_000;
const ZEROS = Buffer.allocUnsafeSlow(PIECE_BYTES).fill(0);

/** Whether a full piece is part of a hole, or looks like one. */
export const isHole = (piece: Buffer): boolean => piece.length === PIECE_BYTES && piece.equals(ZEROS);

interface Read {
  readonly stats: Stats;
  readonly pieces: readonly string[];
  /** The file was not written to while it was read. */
  readonly stable: boolean;
}

export class ContentReader {
  readonly #packs: Packs;
  readonly #buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  readonly #shared = new Map<string, Read>();
  readonly #maxHoles: number;
  #holes = 0;
  /** The hash of a piece of zeros, once one was read: hashing takes much longer than comparing. */
  #hole: string | undefined;

  constructor(packs: Packs, maxHoles = MAX_HOLES) {
    this.#packs = packs;
    this.#maxHoles = maxHoles;
  }

  /** Begins another look at a workspace. */
  begin(): void {
    this.#shared.clear();
    this.#holes = 0;
  }

  /** Whether the content of this file is kept. */
  keeps(stats: Stats): boolean {
    if (this.#known(stats) !== undefined) return true;
    const { size, blocks } = stats;
    const holes = size - blocks * DISK_BLOCK;
    if (size > MAX_BYTES || (holes > SMALL_BYTES && this.#holes + holes > this.#maxHoles)) return false;
    if (holes > SMALL_BYTES) this.#holes += holes;
    return true;
  }

  /** undefined if there is no readable file any more. Throws only if the packs cannot store the content. */
  read(whole: string | Buffer): Read | undefined {
    const descriptor = openDescriptor(whole);
    if (descriptor === undefined) return undefined;
    try {
      if (!isReallyAt(descriptor, whole)) return undefined;
      const stats = fstatSync(descriptor);
      const known = this.#known(stats);
      if (known !== undefined) return known;
      const read = this.#readOpened(descriptor);
      if (read !== undefined && stats.nlink > 1) this.#share(read);
      return read;
    } finally {
      closeSync(descriptor);
    }
  }

  /** What was read under another name of the same file. */
  #known(stats: Stats): Read | undefined {
    if (stats.nlink < 2) return undefined;
    const known = this.#shared.get(inodeOf(stats));
    return known !== undefined && sameTimes(known.stats, stats) ? known : undefined;
  }

  #share(read: Read): void {
    if (this.#shared.size >= MAX_SHARED) this.#shared.clear();
    this.#shared.set(inodeOf(read.stats), read);
  }

  #readOpened(descriptor: number): Read | undefined {
    for (let tried = 1; ; tried += 1) {
      const before = fstatSync(descriptor);
      if (!before.isFile()) return undefined;
      const pieces = this.#pieces(descriptor);
      if (pieces === undefined) return undefined;
      const stats = fstatSync(descriptor);
      const stable = sameTimes(before, stats);
      if (stable || tried === MAX_TRIES) return { stats, pieces, stable };
    }
  }

  #pieces(descriptor: number): readonly string[] | undefined {
    const pieces: string[] = [];
    for (let at = 0; ;) {
      const length = this.#fill(descriptor, at);
      if (length === undefined) return undefined;
      if (length > 0) pieces.push(this.#put(this.#buffer.subarray(0, length)));
      at += length;
      if (length < PIECE_BYTES) return pieces;
      // A file that grows while it is read might never end.
      if (at > MAX_BYTES) return undefined;
    }
  }

  #put(piece: Buffer): string {
    if (!isHole(piece)) return this.#packs.put(piece);
    if (this.#hole === undefined || !this.#packs.has(this.#hole)) this.#hole = this.#packs.put(piece);
    return this.#hole;
  }

  /** undefined if the disk cannot read its own data: that is not a failure here. */
  #fill(descriptor: number, at: number): number | undefined {
    let filled = 0;
    try {
      while (filled < PIECE_BYTES) {
        const read = readSync(descriptor, this.#buffer, filled, PIECE_BYTES - filled, at + filled);
        if (read === 0) break;
        filled += read;
      }
      return filled;
    } catch {
      return undefined;
    }
  }
}

const inodeOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`;

function openDescriptor(whole: string | Buffer): number | undefined {
  try {
    return openRegularSync(whole, "refuse").descriptor;
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "EMFILE" || code === "ENFILE" || code === "ENOMEM") throw thrown;
    return undefined;
  }
}

type Times = Pick<Stats, "dev" | "ino" | "size" | "mtimeMs" | "ctimeMs">;

export const sameTimes = (a: Times, b: Times): boolean =>
  a.size === b.size &&
  a.mtimeMs === b.mtimeMs &&
  a.ctimeMs === b.ctimeMs &&
  a.ino === b.ino &&
  a.dev === b.dev;

/** Larger texts are neither merged nor shown line by line. */
export const MAX_TEXT = 4 * 2 ** 20;

/** undefined if a piece is missing or damaged. */
export function contentOf(packs: Packs, { pieces }: FileEntry): Buffer | undefined {
  const all: Buffer[] = [];
  for (const piece of pieces) {
    const content = packs.get(piece);
    if (content === undefined) return undefined;
    all.push(content);
  }
  return Buffer.concat(all);
}

/** The content as a byte text; undefined if it is not text, too large, or missing. */
export function textOf(packs: Packs, entry: FileEntry): string | undefined {
  if (entry.size > MAX_TEXT) return undefined;
  const content = contentOf(packs, entry);
  return content === undefined || content.includes(0) ? undefined : textOfBytes(content);
}

/** Durable after the next flush. */
export function putText(packs: Packs, text: string): Pick<FileEntry, "size" | "pieces"> {
  const content = bytesOfText(text);
  return { size: content.length, pieces: content.length === 0 ? [] : [packs.put(content)] };
}
