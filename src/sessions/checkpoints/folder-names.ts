import { readdirSync } from "node:fs";
import { textOfBytes } from "../../core/byte-text.ts";

/** Not ours to keep or to bring back: git's own, which no box writes but through its door, and our settings. */
const LEFT_OUT: ReadonlySet<string> = new Set([".git", ".harness"]);

export const isLeftOut = (name: string): boolean => LEFT_OUT.has(name.toLowerCase());

/** As byte texts. Rejects as the system does. */
export function namesIn(folder: string | Buffer): readonly string[] {
  const names = readdirSync(folder);
  // What stands there may have been a byte that is no text.
  if (!names.some((name) => name.includes("\uFFFD"))) return names;
  return readdirSync(folder, { encoding: "buffer" }).map(textOfBytes);
}
