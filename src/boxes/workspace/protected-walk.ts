import { Buffer } from "node:buffer";
import { type Dir, type Dirent, lstatSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode } from "../../core/errors.ts";
import { foldName, isDependencies, lastName, protectedName } from "../../core/file-names.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { Anchor, openable, unlockFolder } from "./safe-paths.ts";

/** Absolute paths, as `textOfBytes` gives them. */
export interface WalkResult {
  /** Protected names, and folders that git takes for a bare repository. None lies inside another. */
  readonly found: readonly string[];
  /** Whether git would take the folder itself for a repository if it has no .git of its own. */
  readonly bare: boolean;
  /** Sockets and FIFOs: a program of the host may be at the other end. */
  readonly reached: readonly string[];
  /** Files with another name outside of the places that the walk counts as writable. */
  readonly linked: readonly string[];
  /** What could not be searched, and why; empty if all of the tree was searched. */
  readonly unseen: readonly string[];
}

interface Bounds {
  readonly entries: number;
  readonly ms: number;
}

export interface WalkOptions {
  readonly bounds?: Bounds;
  readonly signal?: AbortSignal | undefined;
  /** The user that commands run as: folders of other users that let nobody in are closed to commands too. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** What else to look for: sockets and FIFOs, also in protected folders; hard links. */
  readonly reached?: boolean;
  readonly linked?: boolean;
  /** No name is protected: only sockets and FIFOs count. */
  readonly nameless?: boolean;
  /** Unlocks folders of the user that lock the user out. */
  readonly opens?: boolean;
}

/** Repositories of a million files pass; callers refuse a tree beyond these limits. */
const BOUNDS: Bounds = { entries: 4_000_000, ms: 120_000 };

/** Limits of what is kept in memory: folders to be searched, files with other names, characters of found paths. */
const MAX_COUNT = { waiting: 1_000_000, linked: 400_000, found: 2 ** 26, unseen: 20 } as const;

/** Parallel reads; Node's file system calls run on four threads. */
const PARALLEL_READS = 4;

/**
 * Looks for what is protected by its name or its markers: one opendir for each folder, no link followed, no stat except
 * for hard links. Paths are handled as bytes (one character a byte), because a name need not be UTF-8. A tree may be
 * deeper than a path can be long. Everything that is not searched, for whatever reason, is reported as unseen, except
 * folders that went away.
 */
export async function walk(root: string, options: WalkOptions = {}): Promise<WalkResult> {
  const search = new Search(root, options);
  const { ms } = options.bounds ?? BOUNDS;
  const ended = Promise.withResolvers<void>();
  const late = setTimeout(() => {
    search.stop(`${root} as a whole: not finished after ${Math.ceil(ms / 1000)} seconds`);
    ended.resolve();
  }, ms);
  const abort = (): void => ended.reject(options.signal?.reason as Error);
  options.signal?.addEventListener("abort", abort, { once: true });
  try {
    options.signal?.throwIfAborted();
    // A file system that does not answer delays neither the time limit nor the signal.
    await Promise.race([search.run(), ended.promise]);
    return search.result();
  } finally {
    search.stop("stopped");
    clearTimeout(late);
    options.signal?.removeEventListener("abort", abort);
  }
}

type Zone = "open" | "dependencies" | "guarded";

interface Folder {
  readonly anchor: Anchor;
  /** The path from the anchor; empty or with a leading slash. */
  readonly rest: string;
  readonly zone: Zone;
  readonly atTop: boolean;
}

interface LowerAnchor extends Disposable {
  readonly anchor: Anchor;
  readonly rest: (file: string) => string;
}

interface Linked {
  readonly names: number;
  readonly paths: string[];
}

class Search {
  readonly #found: string[] = [];
  readonly #reached: string[] = [];
  readonly #linked = new Map<string, Linked>();
  readonly #unseen: string[] = [];
  readonly #options: WalkOptions;
  readonly #bounds: Bounds;
  readonly #waiting: Folder[] = [];
  #bare = false;
  #entries = 0;
  #weight = 0;
  #moreUnseen = 0;
  #stopped = false;

  constructor(root: string, options: WalkOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? BOUNDS;
    const place = bytesOfText(root).toString("latin1");
    const zone = options.nameless === true ? "guarded" : "open";
    this.#waiting.push({ anchor: new Anchor(place, place), rest: "", zone, atTop: true });
  }

  stop(why: string): void {
    if (this.#stopped) return;
    this.#stopped = true;
    if (why !== "stopped") this.#addUnseen(why);
    for (const { anchor } of this.#waiting.splice(0)) anchor.release();
  }

  result(): WalkResult {
    const linked = [...this.#linked.values()].flatMap(({ paths }) => paths.map(textOf));
    const unseen = this.#moreUnseen > 0 ? [...this.#unseen, `and ${this.#moreUnseen} more`] : this.#unseen;
    return {
      found: this.#found.map(textOf),
      bare: this.#bare,
      reached: this.#reached.map(textOf),
      linked,
      unseen,
    };
  }

  async run(): Promise<void> {
    // Depth first, so that few folders wait.
    while (this.#waiting.length > 0 && !this.#stopped)
      await Promise.all(this.#waiting.splice(-PARALLEL_READS).map((folder) => this.#search(folder)));
  }

  #addUnseen(line: string): void {
    if (this.#unseen.length < MAX_COUNT.unseen) this.#unseen.push(line);
    else this.#moreUnseen += 1;
  }

  async #search(folder: Folder): Promise<void> {
    try {
      const opened = await this.#opened(folder);
      if (opened === undefined) return;
      try {
        await this.#read(folder, opened);
      } finally {
        opened.closeSync();
      }
    } catch (thrown) {
      this.#addUnseen(`${folderText(folder)}: ${errorCode(thrown) ?? "unreadable"}`);
    } finally {
      folder.anchor.release();
    }
  }

  /** Undefined for a folder that went away, and for one that is closed to commands as well. */
  async #opened(folder: Folder): Promise<Dir | undefined> {
    const place = placeOf(folder);
    // Names have one character for each byte.
    const options = { encoding: "latin1", bufferSize: 1024 } as const;
    try {
      return await opendir(openable(place), options);
    } catch (thrown) {
      const code = errorCode(thrown) ?? "";
      if (GONE.has(code)) return undefined;
      if (code !== "EACCES" && code !== "EPERM") throw thrown;
      if (this.#options.opens === true && unlockFolder(place)) return opendir(openable(place), options);
      if (this.#isClosed(place)) return undefined;
      throw thrown;
    }
  }

  /**
   * Whether commands can neither enter the folder, as owner, group or others, nor unlock it. In a read-only workspace
   * they cannot unlock their own folders either.
   */
  #isClosed(place: string): boolean {
    const { user, nameless } = this.#options;
    const stats = lstatSync(openable(place), { throwIfNoEntry: false });
    if (stats === undefined) return true;
    if (user === undefined) return false;
    if (stats.uid === user.uid) return nameless === true && (stats.mode & 0o500) === 0;
    return (stats.mode & 0o005) === 0 && (stats.gid !== user.gid || (stats.mode & 0o050) === 0);
  }

  async #read(folder: Folder, opened: Dir): Promise<void> {
    const contents = new FolderEntries();
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) {
      this.#entries += 1;
      if (this.#entries > this.#bounds.entries)
        this.stop(`${folderText(folder)} and others: more than ${this.#bounds.entries} entries`);
      if (this.#entries % ENTRIES_PER_BREATH === 0) await breath();
      if (this.#stopped) return;
      this.#note(folder, contents, entry);
    }
    if (isGitLayout(contents.marks)) {
      if (folder.atTop) this.#bare = true;
      else if (folder.zone !== "guarded")
        return this.#keep({ ...folder, zone: "guarded" }, contents.asGuarded(folder));
    }
    this.#keep(folder, contents);
  }

  #note({ anchor, rest, zone, atTop }: Folder, contents: FolderEntries, entry: Dirent): void {
    const { name } = entry;
    const file = `${rest}/${name}`;
    const kind = kindOf(entry, anchor.place + file);
    contents.mark(name, kind);
    if ((kind === "socket" || kind === "FIFO") && this.#options.reached === true) contents.reached.push(file);
    if (zone !== "guarded" && isProtected(name, { zone, atTop, folder: atTop ? "" : anchor.full + rest })) {
      contents.found.push(file);
      if (kind === "folder") contents.guarded.push(file);
    } else if (kind === "folder") {
      if (zone === "open" && isDependencies(name)) contents.dependencies.push(file);
      else contents.below.push(file);
    } else if (kind === "file" && zone !== "guarded" && this.#options.linked === true)
      contents.link(file, anchor.place + file);
  }

  #keep(folder: Folder, contents: FolderEntries): void {
    const { full } = folder.anchor;
    for (const file of contents.found) {
      this.#found.push(full + file);
      this.#weight += weightOf(full.length + file.length);
    }
    for (const file of contents.reached) this.#reached.push(full + file);
    for (const { file, key, names } of contents.linked) this.#keepLinked(full + file, key, names);
    this.#enter(folder, folder.zone, contents.below);
    this.#enter(folder, "dependencies", contents.dependencies);
    if (this.#options.reached === true) this.#enter(folder, "guarded", contents.guarded);
    const most = this.#exceededLimit();
    if (most !== undefined) this.stop(`${folderText(folder)} and others: ${most}`);
  }

  #exceededLimit(): string | undefined {
    if (this.#weight > MAX_COUNT.found || this.#reached.length > MAX_COUNT.linked)
      return "too many paths to protect";
    if (this.#linked.size > MAX_COUNT.linked) return `more than ${MAX_COUNT.linked} files with several names`;
    return this.#waiting.length > MAX_COUNT.waiting
      ? `more than ${MAX_COUNT.waiting} folders side by side`
      : undefined;
  }

  #keepLinked(file: string, key: string, names: number): void {
    const one = this.#linked.get(key) ?? { names, paths: [] };
    one.paths.push(file);
    if (one.paths.length >= names) this.#linked.delete(key);
    else this.#linked.set(key, one);
  }

  #enter(folder: Folder, zone: Zone, names: readonly string[]): void {
    if (names.length === 0 || this.#stopped) return;
    using lower = this.#anchorFor(folder);
    if (lower === undefined) return;
    for (const name of names)
      this.#waiting.push({ anchor: lower.anchor.hold(), rest: lower.rest(name), zone, atTop: false });
  }

  /** Makes the folder itself an anchor if paths from the last anchor get too long. */
  #anchorFor(folder: Folder): LowerAnchor | undefined {
    const { anchor, rest } = folder;
    if (rest.length < MAX_LENGTH) return { anchor, rest: (file) => file, [Symbol.dispose]: () => undefined };
    const own = process.platform === "linux" && anchor.depth < MAX_DEPTH ? anchor.below(rest) : undefined;
    if (own === undefined) {
      this.#addUnseen(`${folderText(folder)}: its path is too long`);
      return undefined;
    }
    return { anchor: own, rest: (file) => file.slice(rest.length), [Symbol.dispose]: () => own.release() };
  }
}

const ENTRIES_PER_BREATH = 2048;

/** Characters of a path from its anchor, well below what one call accepts with a name of 255 bytes. */
const MAX_LENGTH = 3000;

/** Levels of nested anchors: 48,000 characters, tens of thousands of folders. */
const MAX_DEPTH = 16;

/** A path longer than any call accepts costs more than its characters: code that handles it looks at each part. */
const weightOf = (length: number): number => length * Math.max(1, length / 4096);

const GONE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR"]);

const placeOf = ({ anchor, rest }: Folder): string => anchor.place + rest;

/** The entries of one folder, by their paths from its anchor. */
class FolderEntries {
  marks = 0;
  readonly found: string[] = [];
  readonly reached: string[] = [];
  readonly guarded: string[] = [];
  readonly dependencies: string[] = [];
  readonly below: string[] = [];
  readonly linked: { readonly file: string; readonly key: string; readonly names: number }[] = [];

  mark(name: string, kind: Kind): void {
    const mark = MARKS.get(name.length > 9 ? "" : name.toLowerCase());
    if (mark !== undefined && (kind === "link" || mark.folder === (kind === "folder")))
      this.marks |= mark.bit;
  }

  link(file: string, place: string): void {
    const stats = lstatSync(openable(place), { throwIfNoEntry: false });
    if (stats === undefined || stats.nlink < 2 || !stats.isFile()) return;
    const key = Number.isSafeInteger(stats.ino) ? `${stats.dev}:${stats.ino}` : exactKey(place);
    if (key !== undefined) this.linked.push({ file, key, names: stats.nlink });
  }

  /** For a folder that is protected as a whole. */
  asGuarded({ rest }: Folder): FolderEntries {
    const own = new FolderEntries();
    own.found.push(rest);
    own.reached.push(...this.reached);
    for (const file of [...this.guarded, ...this.dependencies, ...this.below]) own.guarded.push(file);
    return own;
  }
}

/** Inode numbers can be too large for a plain number. */
function exactKey(place: string): string | undefined {
  const stats = lstatSync(openable(place), { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

type Kind = "folder" | "file" | "link" | "socket" | "FIFO" | "device" | "gone";

/** Some file systems do not tell the kind of an entry in a listing. */
function kindOf(entry: Dirent, place: string): Kind {
  const listed = kindBy(entry);
  if (listed !== undefined) return listed;
  const stats = lstatSync(openable(place), { throwIfNoEntry: false });
  return stats === undefined ? "gone" : (kindBy(stats) ?? "device");
}

function kindBy(entry: Omit<Dirent, "name" | "parentPath">): Kind | undefined {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  if (entry.isSymbolicLink()) return "link";
  if (entry.isSocket()) return "socket";
  if (entry.isFIFO()) return "FIFO";
  return entry.isBlockDevice() || entry.isCharacterDevice() ? "device" : undefined;
}

interface NameContext {
  readonly zone: Zone;
  readonly atTop: boolean;
  /** The folder that the name lies in; empty at the top. */
  readonly folder: string;
}

function isProtected(name: string, { zone, atTop, folder }: NameContext): boolean {
  const text = utf8Of(name);
  return zone === "dependencies"
    ? foldName(text) === ".git"
    : protectedName(text, atTop, utf8Of(lastName(folder))) !== undefined;
}

const utf8Of = (name: string): string =>
  ASCII.test(name) ? name : Buffer.from(name, "latin1").toString("utf8");

const textOf = (file: string): string => textOfBytes(Buffer.from(file, "latin1"));

const ASCII = /^[\u0000-\u007f]*$/;

/**
 * Layouts that git accepts as a repository without the name .git: HEAD beside objects and refs, or beside a commondir
 * file. A config file beside a hooks folder counts too: a box could add the rest.
 */
const isGitLayout = (marks: number): boolean => LAYOUTS.some((layout) => (marks & layout) === layout);

const MARKS: ReadonlyMap<string, { readonly bit: number; readonly folder: boolean }> = new Map([
  ["head", { bit: 1, folder: false }],
  ["objects", { bit: 2, folder: true }],
  ["refs", { bit: 4, folder: true }],
  ["commondir", { bit: 8, folder: false }],
  ["config", { bit: 16, folder: false }],
  ["hooks", { bit: 32, folder: true }],
]);

const LAYOUTS = [1 | 2 | 4, 1 | 8, 16 | 32];

const folderText = ({ anchor, rest }: Folder): string => {
  const full = anchor.full + rest;
  const text = JSON.stringify(Buffer.from(full, "latin1").toString("utf8")).slice(1, -1);
  return text.length > 300 ? `${text.slice(0, 300)}… (${full.length} bytes)` : text;
};
