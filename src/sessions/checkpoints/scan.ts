import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { setImmediate as breath } from "node:timers/promises";
import { textOfBytes } from "../../core/byte-text.ts";
import { errorCode } from "../../core/errors.ts";
import { type ContentReader, LARGEST, sameTimes } from "./content.ts";
import { isBelow, type Entry, type UnkeptEntry } from "./entry.ts";
import { isLeftOut, namesIn } from "./folder-names.ts";
import { hostPath, tooLong } from "./host-path.ts";

/** What was found at a path, and by what it is known again without being read. */
export interface Seen {
  readonly entry: Entry;
  readonly stats: Pick<Stats, "dev" | "ino" | "size" | "mtimeMs" | "ctimeMs">;
  /** Nothing could have changed it since without other times. */
  readonly settled: boolean;
}

export type Sight = ReadonlyMap<string, Seen>;

export interface ScanRequest {
  readonly root: string;
  readonly reader: ContentReader;
  readonly before: Sight;
  /** An absolute path that is not looked into: where all this is kept. */
  readonly except: string;
}

/** For so long nobody else is let work. */
const SLICE_MS = 8;
/** The kernel's clock for files is coarse; a file system that counts whole seconds is coarser. */
const COARSE_MS = 100;
const COARSER_MS = 2100;

/** Looks at a whole workspace; reads only files that are not as they were `before`. Follows no link. */
export async function scan({ root, reader, before, except }: ScanRequest): Promise<Sight> {
  const now = Date.now();
  const found = new Map<string, Seen>();
  const top = lstatSync(root);
  const owner = `${top.uid}:${top.gid}`;
  const folders: string[] = [""];
  found.set("", seen(folderOf(top, owner), top, now));
  let slice = performance.now();
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of listed(folder)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const stats = isLeftOut(name) ? undefined : statsOf(path);
      if (stats === undefined) continue;
      const known = before.get(path);
      if (known?.settled === true && sameStats(known, stats)) found.set(path, known);
      else found.set(path, seen(entryOf(path, stats), stats, now));
      if (stats.isDirectory() && `${root}/${path}` !== except) folders.push(path);
      if (performance.now() - slice < SLICE_MS) continue;
      await breath();
      slice = performance.now();
    }
  }
  return found;

  /** What is below a folder that cannot be looked into counts as unchanged. */
  function listed(folder: string): readonly string[] {
    try {
      if (!tooLong(root, folder)) return namesIn(hostPath(root, folder));
      notLooked(folder, "deep");
    } catch (thrown) {
      if (folder === "") throw thrown;
      if (errorCode(thrown) !== "ENOENT") notLooked(folder, "unreadable");
    }
    return [];
  }

  function notLooked(folder: string, why: UnkeptEntry["why"]): void {
    const there = found.get(folder);
    if (there?.entry.kind !== "folder") return;
    for (const [path, earlier] of before) if (isBelow(path, folder)) found.set(path, earlier);
    if (why === "deep" || !before.has(folder)) found.set(folder, unlooked(there, why));
  }

  function statsOf(path: string): Stats | undefined {
    try {
      return lstatSync(hostPath(root, path), { throwIfNoEntry: false });
    } catch {
      return undefined;
    }
  }

  function entryOf(path: string, stats: Stats): Entry {
    if (stats.isDirectory()) return folderOf(stats, owner);
    const whole = hostPath(root, path);
    if (stats.isSymbolicLink()) return { kind: "link", target: linkOf(whole), ...ownerOf(stats, owner) };
    const mode = stats.mode & 0o7777;
    if (!stats.isFile()) return { kind: "odd", what: oddOf(stats), mode, ...ownerOf(stats, owner) };
    if (stats.size > LARGEST) return unkept(stats, "large", owner);
    const read = reader.read(whole);
    if (read === undefined) return unkept(stats, "unreadable", owner);
    return {
      kind: "file",
      mode: read.stats.mode & 0o7777,
      size: read.stats.size,
      pieces: read.pieces,
      ...ownerOf(stats, owner),
    };
  }
}

/** To the microsecond: a later change is further off than that. */
const sameStats = (known: Seen, stats: Stats): boolean =>
  sameTimes(known.stats, stats) && kindMatches(known.entry, stats);

export function isUnchanged(root: string, path: string, known: Seen | undefined): boolean {
  try {
    const stats = lstatSync(hostPath(root, path), { throwIfNoEntry: false });
    return stats === undefined || known === undefined
      ? stats === undefined && known === undefined
      : sameStats(known, stats);
  } catch {
    return known === undefined;
  }
}

function kindMatches(entry: Entry, stats: Stats): boolean {
  if (entry.kind === "link") return stats.isSymbolicLink();
  if ((stats.mode & 0o7777) !== entry.mode) return false;
  return stats.isDirectory() === (entry.kind === "folder" || (entry.kind === "unkept" && entry.folder));
}

function seen(entry: Entry, stats: Stats, now: number): Seen {
  const { dev, ino, size, mtimeMs, ctimeMs } = stats;
  const coarse = ctimeMs % 1000 === 0 ? COARSER_MS : COARSE_MS;
  const unsure = entry.kind === "unkept" && entry.why === "unreadable";
  return { entry, stats: { dev, ino, size, mtimeMs, ctimeMs }, settled: !unsure && ctimeMs < now - coarse };
}

const ownerOf = ({ uid, gid }: Stats, usual: string): { readonly owner?: string } =>
  `${uid}:${gid}` === usual ? {} : { owner: `${uid}:${gid}` };

const folderOf = (stats: Stats, owner: string): Entry => ({
  kind: "folder",
  mode: stats.mode & 0o7777,
  ...ownerOf(stats, owner),
});

const unkept = (stats: Stats, why: UnkeptEntry["why"], owner: string): Entry => ({
  kind: "unkept",
  why,
  folder: stats.isDirectory(),
  mode: stats.mode & 0o7777,
  size: stats.size,
  stamp: [stats.dev, stats.ino, stats.size, stats.mtimeMs].join(" "),
  ...ownerOf(stats, owner),
});

function unlooked({ entry, stats }: Seen, why: UnkeptEntry["why"]): Seen {
  if (entry.kind !== "folder") return { entry, stats, settled: false };
  const stamp = [stats.dev, stats.ino].join(" ");
  return { entry: { ...entry, kind: "unkept", why, folder: true, size: 0, stamp }, stats, settled: false };
}

function linkOf(whole: string | Buffer): string {
  try {
    return textOfBytes(readlinkSync(whole, { encoding: "buffer" }));
  } catch {
    return "";
  }
}

const oddOf = (stats: Stats): "fifo" | "socket" | "device" =>
  stats.isFIFO() ? "fifo" : stats.isSocket() ? "socket" : "device";
