import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { makeFolder } from "../../platform/folders.ts";
import { DatabaseLock } from "../sessions-db.ts";
import {
  ContentReader,
  type Entry,
  hostPath,
  isClosed,
  isReallyAt,
  isSkippedName,
  keyOf,
  tooLong,
  type Tree,
} from "./entry.ts";
import { type EntryCursor, type EntryList, EntryWriter, type SeenEntry } from "./entry-list.ts";
import { type SavedTree, TreeFiles } from "./file-tree.ts";
import { Packs } from "./packs.ts";
import {
  entryAt,
  type EntryReader,
  isSameUnderOtherCase,
  isUnchanged,
  readSeen,
  seenEntry,
  setFolderMode,
  statsAt,
  unreadEntry,
  writeSeen,
} from "./seen-entries.ts";
import { QUOTA_BYTES, storeFolder, type StorePlace } from "./store-place.ts";

/**
 * The states of one workspace. While open, the store is shared: any number of processes may read, and each writes its
 * own files. Only the removal of contents needs exclusive use.
 */
export class CheckpointStore implements Disposable {
  readonly folder: string;
  readonly packs: Packs;
  readonly trees: TreeFiles;
  readonly #place: StorePlace;
  readonly #lock: DatabaseLock;
  readonly #reader: ContentReader;
  #lastSeen: EntryList | undefined;
  #last: { readonly session: string; readonly saved: SavedTree } | undefined;

  constructor(place: StorePlace, limit = QUOTA_BYTES) {
    this.#place = place;
    this.folder = storeFolder(place);
    makeFolder(this.folder);
    const named = path.join(this.folder, "workspace");
    if (!existsSync(named)) writeFileSync(named, `${place.workspace}\n`, { mode: 0o600 });
    this.#lock = new DatabaseLock(path.join(this.folder, "lock"), LOCK_PATIENCE_MS);
    try {
      this.#lock.take("shared");
      this.packs = new Packs(path.join(this.folder, "packs"), limit);
      this.trees = new TreeFiles(path.join(this.folder, "trees"));
    } catch (thrown) {
      this.#lock[Symbol.dispose]();
      throw thrown;
    }
    this.#reader = new ContentReader(this.packs);
  }

  /** The present state of the workspace, with all contents stored; unchanged files are not read. */
  async look(signal?: AbortSignal): Promise<Tree> {
    const { workspace, stateDir } = this.#place;
    this.#lastSeen ??= readSeen(this.#seenFile());
    this.#reader.begin();
    try {
      const request = {
        root: workspace,
        reader: this.#reader,
        packs: this.packs,
        before: this.#lastSeen,
        except: stateDir,
        signal,
      };
      const seen = await new Scan(request).whole();
      this.packs.flush();
      this.#lastSeen = seen;
      return seen;
    } catch (thrown) {
      this.packs.discard();
      throw thrown;
    }
  }

  /**
   * Whether these paths are still as the last look found them; `removedFirst` are removed before others are created.
   */
  areUnchanged(paths: readonly string[], removedFirst: readonly string[] = []): boolean {
    const { workspace } = this.#place;
    const known = (at: string): SeenEntry | undefined => this.#lastSeen?.seen(at);
    const leaving = new Map(removedFirst.map((at) => [at, known(at)] as const).filter(isSeen));
    return paths.every(
      (at) =>
        isUnchanged(workspace, at, known(at)) ||
        (known(at) === undefined && isSameUnderOtherCase(workspace, at, leaving)),
    );
  }

  /** What the last look found at the path; undefined if the path has changed since. */
  entryIfUnchanged(at: string): Entry | undefined {
    const known = this.#lastSeen?.seen(at);
    return isUnchanged(this.workspace, at, known) ? known?.entry : undefined;
  }

  get workspace(): string {
    return this.#place.workspace;
  }

  /** The name of a tree of the present state; the previous tree's name if nothing changed. */
  async take(session: string, signal?: AbortSignal): Promise<string> {
    return this.save(session, await this.look(signal));
  }

  save(session: string, tree: Tree): string {
    const last = this.#last?.session === session ? this.#last.saved : undefined;
    const saved = this.trees.save(session, tree, last);
    this.#last = { session, saved };
    return saved.id;
  }

  /** Stores what was seen, so that the next run need not read everything again. */
  remember(): void {
    if (this.#lastSeen !== undefined) writeSeen(this.#seenFile(), this.#lastSeen);
  }

  /** Runs `work` with exclusive use of the store; false if the store is in use. */
  alone(work: () => void): boolean {
    try {
      this.#lock.take("exclusive");
    } catch {
      this.#lock.take("shared");
      return false;
    }
    try {
      work();
      return true;
    } finally {
      this.packs.reload();
      this.#lock.take("shared");
    }
  }

  [Symbol.dispose](): void {
    this.packs[Symbol.dispose]();
    this.#lock[Symbol.dispose]();
  }

  #seenFile(): string {
    return path.join(this.folder, "seen");
  }
}

/** A collection by another process does not take longer. */
const LOCK_PATIENCE_MS = 3000;

const isSeen = (pair: readonly [string, SeenEntry | undefined]): pair is readonly [string, SeenEntry] =>
  pair[1] !== undefined;

interface ScanRequest {
  readonly root: string;
  readonly reader: ContentReader;
  readonly packs: Packs;
  readonly before: EntryList;
  /** An absolute path whose content is skipped: the state folder. */
  readonly except: string;
  readonly signal?: AbortSignal | undefined;
}

/** After this time the scan lets other work run. */
const SLICE_MS = 8;

/** A folder's names that remain to be looked at. */
interface OpenFolder {
  readonly path: string;
  readonly names: Names;
  /** Its mode, if it was opened for this look. */
  readonly closed: number | undefined;
}

/**
 * Scans a whole workspace in key order, in step with the previous state; reads only files that have changed. Follows no
 * link. A folder that its owner may not read, as commands can leave one, is opened meanwhile.
 */
class Scan {
  readonly #request: ScanRequest;
  readonly #found = new EntryWriter();
  readonly #before: EntryCursor;
  readonly #folders: OpenFolder[] = [];
  readonly #now = Date.now();
  readonly #how: EntryReader;

  constructor(request: ScanRequest) {
    const { root, reader, before } = request;
    refuseIndirectPath(root);
    this.#request = request;
    this.#before = before.cursor();
    const top = lstatSync(root);
    this.#how = { root, reader, owner: `${top.uid}:${top.gid}` };
    this.#before.next();
    this.#look("", top);
  }

  async whole(): Promise<EntryList> {
    try {
      return await this.#scan();
    } finally {
      for (const folder of this.#folders.toReversed()) this.#close(folder);
    }
  }

  async #scan(): Promise<EntryList> {
    const { root, signal } = this.#request;
    let slice = performance.now();
    for (let folder = this.#folders.at(-1); folder !== undefined; folder = this.#folders.at(-1)) {
      const name = folder.names.next();
      if (name === undefined) {
        this.#folders.pop();
        this.#close(folder);
        continue;
      }
      const path = folder.path === "" ? name : `${folder.path}/${name}`;
      const stats = isSkippedName(name) ? undefined : statsAt(root, path);
      if (stats === undefined) continue;
      this.#look(path, stats);
      if (performance.now() - slice < SLICE_MS) continue;
      await breath();
      signal?.throwIfAborted();
      slice = performance.now();
    }
    return this.#found.finish();
  }

  #look(path: string, stats: Stats): void {
    const { root, except } = this.#request;
    const key = keyOf(path);
    const before = this.#before;
    while (before.compareTo(key) < 0) before.next();
    const known = before.compareTo(key) === 0;
    if (known && path !== "" && !stats.isDirectory() && this.#isSame(stats)) {
      this.#found.copy(before);
      return;
    }
    const found = seenEntry(entryAt(path, stats, this.#how), stats, this.#now);
    const isRead = stats.isDirectory() && `${root}/${path}` !== except;
    const access = isRead ? this.#openUp(path, found.entry) : undefined;
    const names = access === "none" ? "unreadable" : isRead ? this.#namesOf(path, stats) : NO_NAMES;
    const folder = {
      path,
      names: typeof names === "string" ? NO_NAMES : names,
      closed: access === "opened" ? stats.mode & 0o7777 : undefined,
    };
    if (typeof names === "string") this.#addUnread(key, known, found, names);
    else this.#found.add(key, found.entry, found);
    if (folder.names === NO_NAMES) this.#close(folder);
    else this.#folders.push(folder);
  }

  #openUp(path: string, entry: Entry): "usual" | "opened" | "none" {
    const { root } = this.#request;
    if (!isClosed(entry) || tooLong(root, path) || isUsable(root, path)) return "usual";
    return setFolderMode(root, path, entry.mode | OWNER_RIGHTS) ? "opened" : "none";
  }

  #close({ path, closed }: OpenFolder): void {
    if (closed !== undefined) setFolderMode(this.#request.root, path, closed);
  }

  /** The entry is unchanged, and its content is still stored. */
  #isSame(stats: Stats): boolean {
    const before = this.#before;
    if (!before.isSettledAs(stats)) return false;
    if (before.kind === "link") return stats.isSymbolicLink();
    if (before.mode !== (stats.mode & 0o7777)) return false;
    return before.kind !== "file" || before.pieces.every((piece) => this.#request.packs.holds(piece));
  }

  #namesOf(folder: string, { size }: Stats): Names | "deep" | "unreadable" {
    const { root } = this.#request;
    try {
      return tooLong(root, folder) ? "deep" : sortedNames(hostPath(root, folder), size);
    } catch (thrown) {
      if (folder === "") throw thrown;
      return errorCode(thrown) === "ENOENT" ? NO_NAMES : "unreadable";
    }
  }

  /** Everything below a folder that cannot be read counts as unchanged. */
  #addUnread(key: Buffer, known: boolean, found: SeenEntry, why: "deep" | "unreadable"): void {
    const before = this.#before;
    const earlier = known ? before.entry : undefined;
    const there = why === "deep" || earlier?.kind !== "folder" ? unreadEntry(found, why) : found;
    this.#found.add(key, there.entry, there);
    if (known) before.next();
    for (; before.isBelow(key); before.next()) this.#found.copy(before);
  }
}

const OWNER_RIGHTS = 0o700;

/** The names in the folder can be read and looked up. */
function isUsable(root: string, folder: string): boolean {
  try {
    lstatSync(hostPath(root, `${folder}/.`));
    closeSync(openSync(hostPath(root, folder), READABLE_FOLDER));
    return true;
  } catch {
    return false;
  }
}

const READABLE_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Opened files are checked by their real path, so the workspace has to be given by its real path. */
function refuseIndirectPath(root: string): void {
  const descriptor = openSync(root, "r");
  try {
    if (isReallyAt(descriptor, hostPath(root, ""))) return;
  } finally {
    closeSync(descriptor);
  }
  const why = `${root} is not the real path of the folder: it leads through a link, or is spelled differently`;
  throw new HarnessError(EXIT.usage, why, `realpath ${root}`);
}

/** The names in a folder as byte texts, in byte order. */
interface Names {
  readonly next: () => string | undefined;
}

const NO_NAMES: Names = { next: () => undefined };

/** The reported size of a folder is only a hint: a wrong one costs memory or time, nothing else. */
const LARGE_FOLDER_BYTES = 256 * 1024;

/** Throws the system's errors. */
const sortedNames = (folder: string | Buffer, size: number): Names =>
  size < LARGE_FOLDER_BYTES ? fromTexts(namesIn(folder)) : fromBytes(folder);

function namesIn(folder: string | Buffer): readonly string[] {
  const names = readdirSync(folder);
  // U+FFFD may stand for a byte that is not valid text.
  if (!names.some((name) => name.includes("\uFFFD"))) return names;
  return readdirSync(folder, { encoding: "buffer" }).map(textOfBytes);
}

function fromTexts(names: readonly string[]): Names {
  if (names.length === 0) return NO_NAMES;
  // Only these code units make the order of UTF-16 units differ from that of bytes.
  const sorted = names.some((name) => /[\uD800-\uFFFF]/.test(name))
    ? names.toSorted((a, b) => Buffer.compare(bytesOfText(a), bytesOfText(b)))
    : names.toSorted();
  let at = 0;
  return { next: () => sorted[at++] };
}

const CHUNK_BYTES = 2 ** 20;
const MAX_NAME = 1024;

/**
 * Holds all names of a large folder in a few buffers: as strings they would take several times the memory, for longer.
 */
function fromBytes(folder: string | Buffer): Names {
  const chunks: Buffer[] = [];
  const starts: number[] = [];
  let end = 0;
  using open = opendirSync(folder, { encoding: "latin1", bufferSize: 256 });
  for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
    if (end + MAX_NAME > chunks.length * CHUNK_BYTES)
      end = (chunks.push(Buffer.allocUnsafeSlow(CHUNK_BYTES)) - 1) * CHUNK_BYTES;
    starts.push(end);
    const chunk = chunks[chunks.length - 1] as Buffer;
    chunk.write(entry.name, (end % CHUNK_BYTES) + 2, "latin1");
    chunk.writeUInt16LE(entry.name.length, end % CHUNK_BYTES);
    end += 2 + entry.name.length;
  }
  const nameAt = (start: number): Buffer => {
    const chunk = chunks[Math.floor(start / CHUNK_BYTES)] as Buffer;
    const from = start % CHUNK_BYTES;
    return chunk.subarray(from + 2, from + 2 + chunk.readUInt16LE(from));
  };
  const sorted = Float64Array.from(starts).toSorted((a, b) => Buffer.compare(nameAt(a), nameAt(b)));
  let at = 0;
  return {
    next: () => {
      const start = sorted[at++];
      return start === undefined ? undefined : textOfBytes(nameAt(start));
    },
  };
}
