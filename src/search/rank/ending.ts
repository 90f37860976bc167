import type { Chunk } from "../words.ts";
import type { Placed } from "./region.ts";

/**
 * By a path's ending: its share of the scores of all source files that were found. Scripts, headers and style sheets have
 * a query's words too; the answer is more often in the language in which most of what was found is.
 */
export function shareByEnding(found: readonly Placed[]): (chunk: Chunk) => number {
  const best = new Map<string, Placed>();
  for (const one of found) {
    const known = best.get(one.chunk.path);
    if (one.chunk.role === "source" && (known === undefined || known.score < one.score))
      best.set(one.chunk.path, one);
  }
  const sums = new Map<string, number>();
  let all = 0;
  for (const [path, { score }] of best) {
    const ending = endingOf(path);
    sums.set(ending, (sums.get(ending) ?? 0) + score);
    all += score;
  }
  return ({ path, role }) => (role === "source" && all > 0 ? (sums.get(endingOf(path)) ?? 0) / all : 0);
}

/** Programs without an ending are mostly the shell's, whose files have several: `bin/deploy` is one with `lib/log.bash`. */
const SHELL = new Set(["", "sh", "bash", "zsh", "bats"]);

function endingOf(path: string): string {
  const ending = /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return SHELL.has(ending) ? "sh" : ending;
}
