import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  type Stats,
} from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { errorCode } from "../../core/errors.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import { replaceFileSync } from "../../platform/safe-files.ts";
import {
  type ContentReader,
  type Entry,
  hostPath,
  isClosed,
  isReallyAt,
  isSkippedName,
  keyOf,
  parentOf,
  sameTimes,
  type Tree,
  type UnkeptEntry,
} from "./entry.ts";
import { EntryList, EntryWriter, type SeenEntry } from "./entry-list.ts";
import { overlaid, readList, writeList } from "./file-tree.ts";

/** The kernel's clock for file times is coarse; file systems with whole seconds are coarser. */
const COARSE_MS = 100;
const COARSER_MS = 2100;

export function seenEntry(entry: Entry, stats: Stats, now: number): SeenEntry {
  const { dev, ino, size, mtimeMs, ctimeMs } = stats;
  const coarse = ctimeMs % 1000 === 0 ? COARSER_MS : COARSE_MS;
  const unsure = entry.kind === "unkept" && entry.why === "unreadable";
  return { entry, stats: { dev, ino, size, mtimeMs, ctimeMs }, settled: !unsure && ctimeMs < now - coarse };
}

/**
 * Compares times to the microsecond: later changes differ by more than that. A look changes the last change time of
 * folders that it has to open.
 */
function hasSameStats(known: SeenEntry, stats: Stats): boolean {
  const ctimeMs = isClosed(known.entry) ? stats.ctimeMs : known.stats.ctimeMs;
  return sameTimes({ ...known.stats, ctimeMs }, stats) && kindMatches(known.entry, stats);
}

function kindMatches(entry: Entry, stats: Stats): boolean {
  if (entry.kind === "link") return stats.isSymbolicLink();
  if ((stats.mode & 0o7777) !== entry.mode) return false;
  return stats.isDirectory() === (entry.kind === "folder" || (entry.kind === "unkept" && entry.folder));
}

/**
 * Whether a path is as it was last seen; if nothing was seen there, whether it is still absent. Nothing changes in a
 * folder that is closed again since the look.
 */
export function isUnchanged(root: string, path: string, known: SeenEntry | undefined): boolean {
  const stats = linkStats(root, path);
  if (stats === "closed") return true;
  if (stats === undefined || known === undefined) return stats === undefined && known === undefined;
  return hasSameStats(known, stats);
}

/**
 * Whether the present entry is one of these under another spelling: on a file system that ignores letter case, a name
 * that is to be created already exists as the one to be removed.
 */
export function isSameUnderOtherCase(
  root: string,
  path: string,
  others: ReadonlyMap<string, SeenEntry>,
): boolean {
  const stats = statsAt(root, path);
  if (stats === undefined) return false;
  const folded = path.toLowerCase();
  return [...others].some(
    ([other, { stats: known }]) =>
      other.toLowerCase() === folded && known.dev === stats.dev && known.ino === stats.ino,
  );
}

export function statsAt(root: string, path: string): Stats | undefined {
  const stats = linkStats(root, path);
  return stats === "closed" ? undefined : stats;
}

function linkStats(root: string, path: string): Stats | "closed" | undefined {
  try {
    return lstatSync(hostPath(root, path), { throwIfNoEntry: false });
  } catch (thrown) {
    return errorCode(thrown) === "EACCES" ? "closed" : undefined;
  }
}

export interface EntryReader {
  readonly root: string;
  readonly reader: ContentReader;
  /** `uid:gid` of the workspace folder. */
  readonly owner: string;
}

export function entryAt(path: string, stats: Stats, { root, reader, owner }: EntryReader): Entry {
  const whole = hostPath(root, path);
  const common = { mode: stats.mode & 0o7777, ...ownerOf(stats, owner) };
  if (stats.isDirectory()) return { kind: "folder", ...common };
  if (stats.isSymbolicLink()) return { kind: "link", target: linkAt(whole), ...ownerOf(stats, owner) };
  if (!stats.isFile()) return { kind: "odd", what: oddOf(stats), ...common };
  const keeps = reader.keeps(stats);
  const read = keeps ? reader.read(whole) : undefined;
  if (read === undefined) {
    const why: UnkeptEntry["why"] = keeps ? "unreadable" : "large";
    const stamp = [stats.dev, stats.ino, stats.size, stats.mtimeMs].join(" ");
    return { kind: "unkept", why, folder: false, size: stats.size, stamp, ...common };
  }
  const { mode, size } = read.stats;
  return { kind: "file", ...common, mode: mode & 0o7777, size, pieces: read.pieces };
}

const ownerOf = ({ uid, gid }: Stats, usual: string): { readonly owner?: string } =>
  `${uid}:${gid}` === usual ? {} : { owner: `${uid}:${gid}` };

/** Linux only: a descriptor that needs no right to read the folder. */
const O_PATH = 0o10000000;

const HANDLE = O_PATH | constants.O_NOFOLLOW;

/** False if this is not possible, or no longer the folder at this path. */
export const setFolderMode = (root: string, path: string, mode: number): boolean =>
  setModeOf(root, path, { mode, flags: HANDLE | constants.O_DIRECTORY });

/** False if this is not possible, or no longer the file at this path. */
const setFileMode = (root: string, path: string, mode: number): boolean =>
  setModeOf(root, path, { mode, flags: HANDLE });

function setModeOf(
  root: string,
  path: string,
  { mode, flags }: { readonly mode: number; readonly flags: number },
): boolean {
  if (process.platform !== "linux") return false;
  const whole = hostPath(root, path);
  try {
    const descriptor = openSync(whole, flags);
    try {
      // The target of a link has another mode.
      if (fstatSync(descriptor).isSymbolicLink()) return false;
      if (!isReallyAt(descriptor, whole)) return false;
      chmodSync(`/proc/self/fd/${descriptor}`, mode);
      return true;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false;
  }
}

/** Marks a folder that could not be read; earlier knowledge of its content does not apply either. */
export function unreadEntry({ entry, stats }: SeenEntry, why: UnkeptEntry["why"]): SeenEntry {
  if (entry.kind !== "folder") return { entry, stats, settled: false };
  const stamp = [stats.dev, stats.ino].join(" ");
  return { entry: { ...entry, kind: "unkept", why, folder: true, size: 0, stamp }, stats, settled: false };
}

function linkAt(whole: string | Buffer): string {
  try {
    return textOfBytes(readlinkSync(whole, { encoding: "buffer" }));
  } catch {
    return "";
  }
}

const oddOf = (stats: Stats): "fifo" | "socket" | "device" =>
  stats.isFIFO() ? "fifo" : stats.isSocket() ? "socket" : "device";

const MARK = "harness seen 2\n";

/**
 * What was last seen of a workspace, so that the next run reads only what has changed. This may be lost at any time;
 * then everything is read again. Earlier versions wrote compressed JSON.
 */
export function readSeen(file: string): EntryList {
  try {
    const bytes = readFileSync(file);
    if (bytes.subarray(0, MARK.length).equals(Buffer.from(MARK))) return readList(bytes).list;
    const pairs = JSON.parse(zstdDecompressSync(bytes).toString()) as readonly [string, SeenEntry][];
    const writer = new EntryWriter();
    const keyed = pairs.map(([path, seen]) => ({ key: keyOf(path), seen }));
    for (const { key, seen } of keyed.toSorted((a, b) => Buffer.compare(a.key, b.key)))
      writer.add(key, seen.entry, seen);
    return writer.finish();
  } catch {
    return new EntryList([]);
  }
}

export function writeSeen(file: string, seen: EntryList): void {
  const aside = `${file}.${process.pid}`;
  try {
    replaceFileSync(file, (descriptor) => writeList(descriptor, MARK, seen), { aside, lasts: "never" });
  } catch {
    // The file may be lost at any time.
  }
}

/**
 * The entry at one path, with its content stored; owners do not matter. `changed`: time of its last change in
 * milliseconds.
 */
export function presentEntry(
  reader: ContentReader,
  root: string,
  path: string,
): { readonly entry: Entry; readonly changed: number } | undefined {
  const stats = statsAt(root, path);
  if (stats === undefined) return undefined;
  const owner = `${stats.uid}:${stats.gid}`;
  const changed = Math.max(stats.ctimeMs, stats.mtimeMs);
  return { entry: entryAt(path, stats, { root, reader, owner }), changed };
}

/**
 * The same for a layer that nobody works on: a file that a command closed to its owner is opened while it is read.
 * `mode` is what the entry gets.
 */
export function layerEntry(
  reader: ContentReader,
  root: string,
  { path, mode }: { readonly path: string; readonly mode: number },
): Entry | undefined {
  const present = presentEntry(reader, root, path)?.entry;
  if (present === undefined || present.kind === "link") return present;
  if (present.kind !== "unkept" || present.why !== "unreadable") return { ...present, mode };
  const closed = present.mode;
  if (!setFileMode(root, path, closed | 0o400)) return { ...present, mode };
  try {
    const opened = presentEntry(reader, root, path)?.entry;
    return opened === undefined || opened.kind === "link" ? opened : { ...opened, mode };
  } finally {
    setFileMode(root, path, closed);
  }
}

/** Paths that a look at a workspace skips: git's own, and harness's settings. */
export const isSkipped = (path: string): boolean => path.split("/").some(isSkippedName);

/** The tree together with these skipped paths and their skipped parent folders. */
export function withSkipped(
  tree: Tree,
  paths: readonly string[],
  { reader, root }: { readonly reader: ContentReader; readonly root: string },
): Tree {
  const wanted = new Set<string>();
  for (const path of paths)
    for (let each = path; each !== "" && isSkipped(each); each = parentOf(each)) wanted.add(each);
  if (wanted.size === 0) return tree;
  const found = new Map<string, Entry>();
  for (const path of wanted) {
    const standing = presentEntry(reader, root, path);
    if (standing !== undefined) found.set(path, standing.entry);
  }
  return overlaid(tree, found);
}
