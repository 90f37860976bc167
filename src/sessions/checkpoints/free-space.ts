import { statfsSync } from "node:fs";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { counted, formatSize } from "../../core/wording.ts";
import { type Entry, type FileEntry, sameContent } from "./entry.ts";
import type { EntryMove } from "./undo-plan.ts";

/** Whether the moves of an undo or an apply have room, asked before the first of them. */

interface Free {
  readonly bytes: number;
  readonly files: number;
  readonly block: number;
}

/** Undefined for file systems that count no blocks. */
function freeIn(folder: string): Free | undefined {
  const { bsize, blocks, bfree, bavail, files, ffree } = statfsSync(folder);
  if (blocks === 0) return undefined;
  const free = process.geteuid?.() === 0 ? bfree : bavail;
  return { bytes: free * bsize, files: files === 0 ? Number.POSITIVE_INFINITY : ffree, block: bsize };
}

/**
 * The most that the moves take up at any time, beyond what the workspace takes up now. What they certainly need, not
 * more: whoever compresses or shares content still has the journal when the disk is full after all.
 */
export function spaceFor(
  ops: readonly EntryMove[],
  block: number,
): { readonly bytes: number; readonly files: number } {
  const sizeOf = (entry: Entry | null): number =>
    entry?.kind === "file" ? Math.ceil(writtenBytes(entry) / block) * block : 0;
  const gone = ops.filter(({ to }) => to === null);
  let bytes = -gone.reduce((sum, { from }) => sum + sizeOf(from), 0);
  let most = 0;
  for (const { from, to } of ops) {
    if (to?.kind !== "file" || (from?.kind === "file" && sameContent(from, to))) continue;
    bytes += sizeOf(to);
    most = Math.max(most, bytes);
    bytes -= sizeOf(from);
  }
  const made = ops.filter(({ from, to }) => from === null && to !== null);
  return { bytes: most, files: made.length - gone.length };
}

/** Pieces that repeat are holes, as a rule. */
function writtenBytes({ size, pieces }: FileEntry): number {
  const repeated = pieces.length - new Set(pieces).size;
  return Math.max(0, size - repeated * Math.ceil(size / Math.max(1, pieces.length)));
}

/** Refuses moves that would meet a full disk midway; nothing has been changed then. */
export function refuseWithoutRoom(root: string, ops: readonly EntryMove[], next: string): void {
  const free = freeIn(root);
  if (free === undefined) return;
  const { bytes, files } = spaceFor(ops, free.block);
  if (bytes <= free.bytes && files <= free.files) return;
  const short =
    bytes > free.bytes
      ? `the changes need ${formatSize(bytes)}, and ${formatSize(free.bytes)} are free`
      : `the changes need ${counted(files, "file")} more, and the file system has room for ${free.files}`;
  throw new HarnessError(EXIT.failed, `there is no room in ${root}: ${short}; nothing was changed`, next);
}
