import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { bytesOfText } from "../../core/text/bytes.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { lastName } from "../../core/text/file-paths.ts";
import { writeWhole } from "../../platform/safe-files.ts";
import { depthOf, type Entry, type FileEntry, hostPath, isReallyAt, parentOf, sameContent } from "./entry.ts";
import type { Packs } from "./packs.ts";
import type { Op } from "./undo-plan.ts";

interface Site {
  readonly root: string;
  readonly packs: Packs;
  /** The name of files until they are complete. No other process uses it. */
  readonly aside: string;
}

/**
 * Brings every path to its target state. Each file is replaced at once; if killed midway, repeating the call finishes
 * the work. Throws if the system refuses.
 */
export function restore(ops: readonly Op[], site: Site): void {
  const depths = new Map(ops.map((op) => [op, depthOf(op.path)]));
  const deepestFirst = ops.toSorted((a, b) => (depths.get(b) ?? 0) - (depths.get(a) ?? 0));
  const topFirst = deepestFirst.toReversed();
  for (const { path } of topFirst.filter(({ from }) => isFolder(from))) makeAccessible(path, site);
  for (const op of deepestFirst.filter(mustGoFirst)) removeEntry(op, site);
  for (const op of topFirst) if (isFolder(op.to)) makeFolder(op, site);
  for (const op of topFirst) if (op.to !== null && !isFolder(op.to)) putEntry(op, site);
  for (const { path, to } of deepestFirst) if (to?.kind === "folder") setMode(path, to.mode, site);
}

const isFolder = (entry: Entry | null): boolean => entry?.kind === "folder";

/** The present entry has to be removed before the new one can be created. */
export const mustGoFirst = ({ from, to }: Op): boolean =>
  from !== null && (to === null || isFolder(from) !== isFolder(to));

const OWNER_RIGHTS = 0o700;

/** Makes the folder's content changeable; the final mode is set at the end. */
function makeAccessible(path: string, site: Site): void {
  const there = statsAt(path, site);
  if (there?.isDirectory() === true && (there.mode & OWNER_RIGHTS) !== OWNER_RIGHTS)
    setMode(path, (there.mode & 0o7777) | OWNER_RIGHTS, site);
}

function statsAt(path: string, { root }: Site): Stats | undefined {
  if (path === "") return lstatSync(root);
  try {
    return inHeldFolder(root, path, (at) => lstatSync(at, { throwIfNoEntry: false }));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}

/** A folder stays if it still contains something that is not ours to remove. */
function removeEntry({ path, from, to }: Op, site: Site): void {
  const there = statsAt(path, site);
  if (there === undefined || there.isDirectory() !== isFolder(from)) return;
  try {
    inHeldFolder(site.root, path, (at) => (isFolder(from) ? rmdirSync(at) : unlinkSync(at)));
  } catch (thrown) {
    const filled = errorCode(thrown) === "ENOTEMPTY" || errorCode(thrown) === "EEXIST";
    if (filled && to === null) return;
    throw thrown;
  }
}

/** A folder that exists now but did not before was made by a killed restore, perhaps before its owner was set. */
function makeFolder({ path, from, to }: Op, site: Site): void {
  if (path === "") return;
  const there = statsAt(path, site)?.isDirectory() === true;
  if (there && isFolder(from)) return;
  inHeldFolder(site.root, path, (at) => {
    if (!there) mkdirSync(at, { mode: OWNER_RIGHTS });
    setOwner(to?.owner, (uid, gid) => lchownSync(at, uid, gid), site);
  });
}

function setMode(path: string, mode: number, { root }: Site): void {
  if (path === "") return chmodSync(root, mode);
  inHeldFolder(root, path, (at) => {
    const there = lstatSync(at, { throwIfNoEntry: false });
    if (there === undefined || there.isSymbolicLink() || (there.mode & 0o7777) === mode) return;
    chmodSync(at, mode);
  });
}

function putEntry({ path, from, to }: Op, site: Site): void {
  if (to?.kind === "file" && from?.kind === "file" && sameContent(from, to)) {
    setMode(path, to.mode, site);
    return;
  }
  using folder = new HeldFolder(site.root, parentOf(path));
  const aside = folder.at(site.aside);
  try {
    unlinkSync(aside);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
  if (to?.kind === "link") {
    symlinkSync(bytesOfText(to.target), aside);
    setOwner(to.owner, (uid, gid) => lchownSync(aside, uid, gid), site);
  } else if (to?.kind === "file") writeFile(aside, to, site);
  renameSync(aside, folder.at(lastName(path)));
}

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function writeFile(aside: string | Buffer, entry: FileEntry, site: Site): void {
  const descriptor = openSync(aside, NEW, 0o600);
  try {
    for (const piece of entry.pieces) writeWhole(descriptor, contentOf(piece, site));
    setOwner(entry.owner, (uid, gid) => fchownSync(descriptor, uid, gid), site);
    fchmodSync(descriptor, entry.mode);
  } catch (thrown) {
    unlinkSync(aside);
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

function contentOf(piece: string, { packs }: Site): Buffer {
  const content = packs.get(piece);
  if (content !== undefined) return content;
  throw new HarnessError(
    EXIT.failed,
    "the stored content of a file is missing or damaged",
    "harness undo --dry-run",
  );
}

/** Only root can change owners; a file without a recorded owner gets the workspace's. */
function setOwner(
  owner: string | undefined,
  chown: (uid: number, gid: number) => void,
  { root }: Site,
): void {
  if (process.geteuid?.() !== 0) return;
  const top = lstatSync(root);
  const [uid = top.uid, gid = top.gid] = owner?.split(":").map(Number) ?? [];
  chown(uid, gid);
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** The folder of a path, held open: all work happens in this folder, even if something else takes its place. */
export class HeldFolder implements Disposable {
  readonly #descriptor: number;
  readonly #at: string | Buffer;

  constructor(root: string, folder: string) {
    const whole = hostPath(root, folder);
    this.#descriptor = openSync(whole, FOLDER);
    if (!isReallyAt(this.#descriptor, whole)) {
      closeSync(this.#descriptor);
      throw new HarnessError(EXIT.failed, `${folder}: its path now leads through a link`, "harness undo");
    }
    // Without /proc, an open folder has no path; nobody else works in it meanwhile.
    this.#at = process.platform === "linux" ? `/proc/self/fd/${this.#descriptor}` : whole;
  }

  at(name: string): string | Buffer {
    if (typeof this.#at === "string") return hostPath(this.#at, name);
    return Buffer.concat([this.#at, Buffer.from("/"), bytesOfText(name)]);
  }

  get mode(): number {
    return fstatSync(this.#descriptor).mode & 0o7777;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Acts on a path without following a link, whether on the way or at its end. */
function inHeldFolder<T>(root: string, path: string, work: (at: string | Buffer) => T): T {
  using folder = new HeldFolder(root, parentOf(path));
  return work(folder.at(lastName(path)));
}
