import { Buffer } from "node:buffer";
import type { Stats } from "node:fs";
import { errorCode } from "../../core/errors.ts";
import { below, type Held, hold, lookIn, namesIn } from "./held.ts";

/** One entry of a tree, its folder before it. `at` leads to it only until the next one is asked for. */
export interface Seen {
  /** Below the root, as bytes. */
  readonly path: Buffer;
  /** Of the path: the same bytes for all that lies in one folder. */
  readonly folder: Buffer;
  readonly name: Buffer;
  readonly at: Buffer;
  readonly stats: Stats;
  /** Why what is in this folder is not shown. */
  readonly closed?: string;
}

export const DEEPEST = 512;

/** Everything below a folder. No link is followed, and nothing of another file system is entered. */
export function* treeOf(root: Held, path: Buffer = Buffer.alloc(0), depth = 0): Generator<Seen, void> {
  for (const name of namesIn(root, Number.POSITIVE_INFINITY)) {
    const stats = lookIn(root, name);
    if (stats === undefined) continue;
    const [at, here] = [root.at(name), below(path, name)];
    const seen = { path: here, folder: path, name, at, stats };
    if (stats.isDirectory()) yield* folderIn(root, seen, depth);
    else yield seen;
  }
}

function* folderIn(parent: Held, seen: Seen, depth: number): Generator<Seen, void> {
  const folder = opened(parent, seen, depth);
  if (typeof folder === "string") {
    yield { ...seen, closed: folder };
    return;
  }
  using held = folder;
  yield seen;
  yield* treeOf(held, seen.path, depth + 1);
}

/** The folder, or why it is not entered. */
function opened(parent: Held, { stats, at }: Seen, depth: number): Held | string {
  if (stats.dev !== parent.stats.dev) return "is another file system";
  if (depth >= DEEPEST) return "is too deep";
  try {
    return hold(at);
  } catch (thrown) {
    return `cannot be read: ${errorCode(thrown) ?? "unknown"}`;
  }
}
