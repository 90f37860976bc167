import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { textOfBytes } from "../../core/byte-text.ts";
import { errorCode } from "../../core/errors.ts";
import { type ContentReader, LARGEST } from "./content.ts";
import { type Entry, parentOf, type Tree } from "./entry.ts";
import { isLeftOut } from "./folder-names.ts";
import { hostPath } from "./host-path.ts";

/** What stands at one path, its content put by; owners do not count. `changed`: when it last was, in milliseconds. */
export function entryAt(
  reader: ContentReader,
  root: string,
  path: string,
): { readonly entry: Entry; readonly changed: number } | undefined {
  const whole = hostPath(root, path);
  const stats = statsAt(whole);
  return stats === undefined
    ? undefined
    : { entry: entryOf(reader, whole, stats), changed: Math.max(stats.ctimeMs, stats.mtimeMs) };
}

function statsAt(whole: string | Buffer): Stats | undefined {
  try {
    return lstatSync(whole, { throwIfNoEntry: false });
  } catch (thrown) {
    if (errorCode(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}

function entryOf(reader: ContentReader, whole: string | Buffer, stats: Stats): Entry {
  const mode = stats.mode & 0o7777;
  if (stats.isDirectory()) return { kind: "folder", mode };
  if (stats.isSymbolicLink())
    return { kind: "link", target: textOfBytes(readlinkSync(whole, { encoding: "buffer" })) };
  if (!stats.isFile()) {
    const what = stats.isFIFO() ? "fifo" : stats.isSocket() ? "socket" : "device";
    return { kind: "odd", what, mode };
  }
  const unkept = (why: "large" | "unreadable"): Entry => {
    const stamp = [stats.dev, stats.ino, stats.size, stats.mtimeMs].join(" ");
    return { kind: "unkept", why, folder: false, mode, size: stats.size, stamp };
  };
  if (stats.size > LARGEST) return unkept("large");
  const read = reader.read(whole);
  if (read === undefined) return unkept("unreadable");
  return { kind: "file", mode, size: read.stats.size, pieces: read.pieces };
}

/** What a look at a workspace passes over: git's own. */
export const isPassedOver = (path: string): boolean => path.split("/").some(isLeftOut);

/** The tree with these paths of what a look passes over, and the folders above them. */
export function withPassedOver(
  tree: Tree,
  paths: readonly string[],
  { reader, root }: { readonly reader: ContentReader; readonly root: string },
): Tree {
  const wanted = new Set<string>();
  for (const path of paths)
    for (let each = path; each !== "" && isPassedOver(each); each = parentOf(each)) wanted.add(each);
  if (wanted.size === 0) return tree;
  const all = new Map(tree);
  for (const path of wanted) {
    const found = entryAt(reader, root, path);
    if (found !== undefined) all.set(path, found.entry);
  }
  return all;
}
