import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { FileLock } from "../db/lock.ts";
import { ContentReader } from "./content.ts";
import type { Entry, Tree } from "./entry.ts";
import { Packs } from "./packs.ts";
import { scan } from "./scan.ts";
import { isAsSeen, isSpeltAs, type Seen, type Sight } from "./seen.ts";
import { QUOTA_BYTES, type StorePlace, storeFolder } from "./store-place.ts";
import { readSight, writeSight } from "./sight-file.ts";
import { type SavedTree, TreeFiles } from "./tree-files.ts";

/**
 * The states of one workspace. Open, it is shared: any number of processes may read, and each writes files of its own;
 * only what removes contents needs it alone.
 */
export class CheckpointStore implements Disposable {
  readonly folder: string;
  readonly packs: Packs;
  readonly trees: TreeFiles;
  readonly #place: StorePlace;
  readonly #lock: FileLock;
  readonly #reader: ContentReader;
  #sight: Sight | undefined;
  #last: { readonly session: string; readonly saved: SavedTree } | undefined;

  constructor(place: StorePlace, limit = QUOTA_BYTES) {
    this.#place = place;
    this.folder = storeFolder(place);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const named = path.join(this.folder, "workspace");
    if (!existsSync(named)) writeFileSync(named, `${place.workspace}\n`, { mode: 0o600 });
    this.#lock = new FileLock(path.join(this.folder, "lock"), LOCK_PATIENCE_MS);
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
