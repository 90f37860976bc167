import { Buffer } from "node:buffer";
import type { Stats } from "node:fs";
import { errorCode } from "../../core/errors.ts";
import { below, type Held, hold, lookIn, namesIn } from "./held.ts";

/** One entry of a tree, its folder before it. `at` leads to it only until the next one is asked for. */
export interface Seen {
  /** Below the root, as bytes. */
  readonly path: Buffer;
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
    if (stats.isDirectory()) yield* folderIn(root, { path: here, at, stats }, depth);
    else yield { path: here, at, stats };
  }
}

function* folderIn(parent: Held, seen: Seen, depth: number): Generator<Seen, void> {
  if (seen.stats.dev !== parent.stats.dev) return yield { ...seen, closed: "is another file system" };
  if (depth >= DEEPEST) return yield { ...seen, closed: "is too deep" };
  let folder: Held;
  try {
    folder = hold(seen.at);
  } catch (thrown) {
    return yield { ...seen, closed: `cannot be read: ${errorCode(thrown) ?? "unknown"}` };
  }
  using held = folder;
  yield seen;
  yield* treeOf(held, seen.path, depth + 1);
}
