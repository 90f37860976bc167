import { closeSync, existsSync, lstatSync, openSync, type Stats, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { DatabaseLock } from "../db-lock.ts";
import { type Entry, hostPath, isReallyAt, isSkippedName, keyOf, tooLong, type Tree } from "./entry.ts";
import { type EntryCursor, type EntryList, EntryWriter, type SeenEntry } from "./entry-list.ts";
import { ContentReader } from "./file-content.ts";
import { type SavedTree, TreeFiles } from "./file-tree.ts";
import { type Names, NO_NAMES, sortedNames } from "./folder-names.ts";
import { Packs } from "./packs.ts";
import {
  entryAt,
  type EntryReader,
  isSameUnderOtherCase,
  isUnchanged,
  readSight,
  seenEntry,
  statsAt,
  unreadEntry,
  writeSight,
} from "./sight.ts";
import { QUOTA_BYTES, storeFolder, type StorePlace } from "./store-place.ts";
import { makeFolder } from "../../platform/folders.ts";

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
    this.#lastSeen ??= readSight(this.#sightFile());
    try {
      const request = {
        root: workspace,
        reader: this.#reader,
        packs: this.packs,
        before: this.#lastSeen,
        except: stateDir,
        signal,
      };
      const sight = await new Scan(request).whole();
      this.packs.flush();
      this.#lastSeen = sight;
      return sight;
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
    if (this.#lastSeen !== undefined) writeSight(this.#sightFile(), this.#lastSeen);
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

  #sightFile(): string {
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
}

/**
 * Scans a whole workspace in key order, in step with the previous state; reads only files that have changed. Follows no
 * link.
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
    const { root, signal } = this.#request;
    let slice = performance.now();
    for (let folder = this.#folders.at(-1); folder !== undefined; folder = this.#folders.at(-1)) {
      const name = folder.names.next();
      if (name === undefined) {
        this.#folders.pop();
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
    const names = stats.isDirectory() && `${root}/${path}` !== except ? this.#namesOf(path, stats) : NO_NAMES;
    if (typeof names === "string") this.#addUnread(key, known, found, names);
    else {
      this.#found.add(key, found.entry, found);
      if (names !== NO_NAMES) this.#folders.push({ path, names });
    }
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
