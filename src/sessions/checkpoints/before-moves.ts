import { accessSync, constants, statfsSync } from "node:fs";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { plural, formatSize } from "../../core/wording.ts";
import { type Entry, type FileEntry, hostPath, parentOf, sameContent } from "./entry.ts";
import { statsAt } from "./seen-entries.ts";
import { type ChangePlan, type EntryMove, foldersAbove } from "./undo-plan.ts";

/** Whether the moves of an undo or an apply can be made, asked before the first of them; and what stayed after the last. */

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
      : `the changes need ${plural(files, "file")} more, and the file system has room for ${free.files}`;
  throw new HarnessError(EXIT.failed, `there is no room in ${root}: ${short}; nothing was changed`, next);
}

/** Whose files may be changed. */
export interface Mover {
  /** Null for root, who may change everything. */
  readonly uid: number | null;
  readonly mayWrite: (folder: string | Buffer) => boolean;
}

const thisUser = (): Mover => ({ uid: process.geteuid?.() || null, mayWrite });

function mayWrite(folder: string | Buffer): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The plan without moves that the system would refuse, because something belongs to another user. */
export function withoutForeign<T extends ChangePlan>(plan: T, root: string, mover = thisUser()): T {
  const { uid } = mover;
  if (uid === null) return plan;
  const folders = new Map<string, boolean>();
  const isClosed = (folder: string): boolean => {
    const known = folders.get(folder);
    if (known !== undefined) return known;
    const stats = statsAt(root, folder);
    const closed =
      stats?.isDirectory() === true && stats.uid !== uid && !mover.mayWrite(hostPath(root, folder));
    folders.set(folder, closed);
    return closed;
  };
  const reasonFor = ({ path, from, to }: EntryMove): string | undefined => {
    if (from === to) return undefined;
    if (from !== null && to !== null && keepsContent(from, to))
      return statsAt(root, path)?.uid === uid ? undefined : "it belongs to another user";
    const folder = parentOf(path);
    return path !== "" && isClosed(folder)
      ? `you may not write to the folder ${folder === "" ? "itself" : folder}, which belongs to another user`
      : undefined;
  };
  return withRefusals(
    plan,
    plan.ops.flatMap((op) => {
      const reason = reasonFor(op);
      return reason === undefined ? [] : [{ path: op.path, reason }];
    }),
  );
}

const keepsContent = (from: Entry, to: Entry): boolean =>
  from.kind === "folder"
    ? to.kind === "folder"
    : from.kind === "file" && to.kind === "file" && sameContent(from, to);

/** The plan without these paths, without what needs them, and without the removal of folders that they stay in. */
export function withRefusals<T extends ChangePlan>(plan: T, refusals: ChangePlan["refused"]): T {
  if (refusals.length === 0) return plan;
  const refused = new Set(refusals.map(({ path }) => path));
  const above = new Set([...refused].flatMap(foldersAbove));
  const fresh = new Set(
    plan.ops.flatMap(({ path, from }) => (from === null && refused.has(path) ? [path] : [])),
  );
  const ops = plan.ops.filter(
    ({ path, from, to }) =>
      !refused.has(path) &&
      !(from?.kind === "folder" && to?.kind !== "folder" && above.has(path)) &&
      !foldersAbove(path).some((folder) => fresh.has(folder)),
  );
  return { ...plan, ops, refused: [...plan.refused, ...refusals] };
}

/** Folders that were to be removed but hold something, such as paths that are too long to be seen. */
export const whatStayed = (root: string, ops: readonly EntryMove[]): ReadonlySet<string> =>
  new Set(
    ops
      .filter(({ path, from, to }) => to === null && isAnyFolder(from) && statsAt(root, path) !== undefined)
      .map(({ path }) => path),
  );

const isAnyFolder = (entry: Entry | null): boolean =>
  entry?.kind === "folder" || (entry?.kind === "unkept" && entry.folder);
