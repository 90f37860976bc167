import { closeSync, existsSync, lstatSync, mkdirSync, openSync, type Stats, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { DatabaseLock } from "../db-lock.ts";
import {
  type Entry,
  hostPath,
  isBelow,
  isLeftOut,
  liesAt,
  namesIn,
  tooLong,
  type Tree,
  type UnkeptEntry,
} from "./entry.ts";
import { ContentReader } from "./file-content.ts";
import { type SavedTree, TreeFiles } from "./file-tree.ts";
import { Packs } from "./packs.ts";
import {
  entryAt,
  type EntryReader,
  isAsSeen,
  isSpeltAs,
  readSight,
  sameStats,
  type Seen,
  seen,
  type Sight,
  statsAt,
  unlooked,
  writeSight,
} from "./sight.ts";
import { QUOTA_BYTES, storeFolder, type StorePlace } from "./store-place.ts";

/**
 * The states of one workspace. Open, it is shared: any number of processes may read, and each writes files of its own;
 * only what removes contents needs it alone.
 */
export class CheckpointStore implements Disposable {
  readonly folder: string;
  readonly packs: Packs;
  readonly trees: TreeFiles;
  readonly #place: StorePlace;
  readonly #lock: DatabaseLock;
  readonly #reader: ContentReader;
  #sight: Sight | undefined;
  #last: { readonly session: string; readonly saved: SavedTree } | undefined;

  constructor(place: StorePlace, limit = QUOTA_BYTES) {
    this.#place = place;
    this.folder = storeFolder(place);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
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

  /** How the workspace is now, with all its contents put by; what had not changed is not read. */
  async look(signal?: AbortSignal): Promise<Tree> {
    const { workspace, stateDir } = this.#place;
    const has = (piece: string): boolean => this.packs.has(piece);
    this.#sight ??= readSight(this.#sightFile(), has);
    try {
      const request = {
        root: workspace,
        reader: this.#reader,
        before: this.#sight,
        except: stateDir,
        signal,
      };
      const sight = await scan(request);
      this.packs.flush();
      this.#sight = sight;
      return treeOf(sight);
    } catch (thrown) {
      this.packs.discard();
      throw thrown;
    }
  }

  /** Whether these paths are still as the last look found them; `going` are gone before others of them come. */
  isAsSeen(paths: readonly string[], going: readonly string[] = []): boolean {
    const { workspace } = this.#place;
    const known = (at: string): Seen | undefined => this.#sight?.get(at);
    const leaving = new Map(going.map((at) => [at, known(at)] as const).filter(isSeen));
    return paths.every(
      (at) =>
        isAsSeen(workspace, at, known(at)) || (known(at) === undefined && isSpeltAs(workspace, at, leaving)),
    );
  }

  get workspace(): string {
    return this.#place.workspace;
  }

  /** The name of the tree of how it is now; the last one's when it is the same. */
  async take(session: string): Promise<string> {
    return this.save(session, await this.look());
  }

  save(session: string, tree: Tree): string {
    const last = this.#last?.session === session ? this.#last.saved : undefined;
    const saved = this.trees.save(session, tree, last);
    this.#last = { session, saved };
    return saved.id;
  }

  /** So that the next run need not read everything again. */
  remember(): void {
    if (this.#sight !== undefined) writeSight(this.#sightFile(), this.#sight);
  }

  /** Whether it could be had alone. */
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

/** A collection of another process takes no longer. */
const LOCK_PATIENCE_MS = 3000;

function treeOf(sight: Sight): Tree {
  const tree = new Map<string, Entry>();
  for (const [at, { entry }] of sight) tree.set(at, entry);
  return tree;
}

const isSeen = (pair: readonly [string, Seen | undefined]): pair is readonly [string, Seen] =>
  pair[1] !== undefined;

interface ScanRequest {
  readonly root: string;
  readonly reader: ContentReader;
  readonly before: Sight;
  /** An absolute path that is not looked into: where all this is kept. */
  readonly except: string;
  readonly signal?: AbortSignal | undefined;
}

/** For so long nobody else is let work. */
const SLICE_MS = 8;

/** Looks at a whole workspace; reads only files that are not as they were `before`. Follows no link. */
async function scan(request: ScanRequest): Promise<Sight> {
  const { root, reader, before, except } = request;
  refuseOtherName(root);
  const now = Date.now();
  const found = new Map<string, Seen>();
  const top = lstatSync(root);
  const how: EntryReader = { root, reader, owner: `${top.uid}:${top.gid}` };
  const folders: string[] = [""];
  found.set("", seen(entryAt("", top, how), top, now));
  let slice = performance.now();
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of listed(folder, request, found)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const stats = isLeftOut(name) ? undefined : statsAt(root, path);
      if (stats === undefined) continue;
      const known = before.get(path);
      const same = known !== undefined && isSame(known, stats);
      found.set(path, same ? known : seen(entryAt(path, stats, how), stats, now));
      if (stats.isDirectory() && `${root}/${path}` !== except) folders.push(path);
      if (performance.now() - slice < SLICE_MS) continue;
      await breath();
      request.signal?.throwIfAborted();
      slice = performance.now();
    }
  }
  return found;
}

const isSame = (known: Seen, stats: Stats): boolean => known.settled && sameStats(known, stats);

/** Files are known to lie where they are looked for by their real path, so that has to be the one that is used. */
function refuseOtherName(root: string): void {
  const descriptor = openSync(root, "r");
  try {
    if (liesAt(descriptor, hostPath(root, ""))) return;
  } finally {
    closeSync(descriptor);
  }
  const why = `${root} is not the real path of the folder: a link leads there, or its name is written differently`;
  throw new HarnessError(EXIT.usage, why, `realpath ${root}`);
}

function listed(folder: string, { root, before }: ScanRequest, found: Map<string, Seen>): readonly string[] {
  try {
    if (!tooLong(root, folder)) return namesIn(hostPath(root, folder));
    notLooked(folder, "deep", before, found);
  } catch (thrown) {
    if (folder === "") throw thrown;
    if (errorCode(thrown) !== "ENOENT") notLooked(folder, "unreadable", before, found);
  }
  return [];
}

/** What is below a folder that cannot be looked into counts as unchanged. */
function notLooked(folder: string, why: UnkeptEntry["why"], before: Sight, found: Map<string, Seen>): void {
  const there = found.get(folder);
  if (there?.entry.kind !== "folder") return;
  for (const [path, earlier] of before) if (isBelow(path, folder)) found.set(path, earlier);
  if (why === "deep" || !before.has(folder)) found.set(folder, unlooked(there, why));
}
