import { readlinkSync, realpathSync } from "node:fs";
import path from "node:path";

/** As many as Linux follows in one path. */
const MOST_LINKS = 40;

/**
 * Where an absolute path really leads on this machine: links followed as the kernel does, `..` taken after them. What
 * is not there yet is appended as written, behind a link to nothing too. Null when links go in a circle.
 */
export function linkFacts(given: string): string | null {
  try {
    return realpathSync.native(given);
  } catch {
    return byName(given);
  }
}

function byName(given: string): string | null {
  let at = "/";
  let links = 0;
  const waiting = given.split("/").toReversed();
  while (waiting.length > 0) {
    const name = waiting.pop() ?? "";
    const next = path.posix.join(at, name);
    const target = name === "" || name === "." || name === ".." ? undefined : targetOf(next);
    if (target === undefined) at = next;
    else {
      links += 1;
      if (links > MOST_LINKS) return null;
      if (target.startsWith("/")) at = "/";
      waiting.push(...target.split("/").toReversed());
    }
  }
  return at;
}

function targetOf(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch {
    return undefined;
  }
}
