import { readlinkSync, realpathSync } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";

/**
 * What exists at one path of a workspace. Paths are byte texts (`core/byte-text.ts`) relative to the workspace; "" is
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
