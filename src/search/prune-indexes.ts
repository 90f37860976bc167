import { constants, copyFileSync, existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteConnection } from "../platform/sqlite.ts";
import { makeFolder } from "../platform/folders.ts";
import {
  CATALOG,
  indexesIn,
  indexFailure,
  type IndexPlace,
  isOrphan,
  lockFileIn,
  namesIn,
  PATIENCE_MS,
  tryWriter,
  waitForWriter,
} from "./index-folders.ts";
import { Catalog, type CatalogFacts } from "./catalog.ts";
import { type IndexOptions, OpenedIndex, storeFolder } from "./open-index.ts";

/** Cleaning up among indexes, and the indexes of single runs, which lie in layers beside that of the workspace. */

export interface Pruned {
  /** Indexes of workspaces that no longer exist. */
  readonly removed: readonly { readonly workspace: string; readonly index: string }[];
  /** Indexes of runs that ended without removing them. */
  readonly layers: number;
  /** Damaged files that were set aside. */
  readonly damaged: number;
  /** Indexes that are being written or could not be read. */
  readonly left: readonly { readonly workspace: string; readonly reason: string }[];
  readonly freedBytes: number;
}

/** Removes what no workspace and no run needs, and frees unused space in the rest. */
export async function prune(root: string, means: IndexOptions, signal: AbortSignal): Promise<Pruned> {
  const before = bytesIn(root);
  const removed: { workspace: string; index: string }[] = [];
  const left: { workspace: string; reason: string }[] = [];
  let [layers, damaged] = [0, 0];
  for (const record of indexesIn(root)) {
    signal.throwIfAborted();
    const { id, workspace } = record;
    const place = { id, workspace, folder: path.join(root, id), movedFrom: null };
    try {
      layers += removeLayers(place);
      damaged += removeDamaged(place);
      if (isOrphan(record)) {
        await removeIndex(means, place, signal);
        removed.push({ workspace, index: id });
      } else {
        await tidy(means, place, signal);
        if (!compact(place)) left.push({ workspace, reason: "another process is writing it" });
      }
    } catch (thrown) {
      signal.throwIfAborted();
      left.push({ workspace, reason: thrown instanceof Error ? thrown.message : String(thrown) });
    }
  }
  return { removed, layers, damaged, left, freedBytes: Math.max(0, before - bytesIn(root)) };
}

/** Also removes what a server holds of the index. */
async function removeIndex(means: IndexOptions, place: IndexPlace, signal: AbortSignal): Promise<void> {
  await using index = await OpenedIndex.write(means, place, { patienceMs: 0, only: true, signal });
  await index.store.clear(signal);
  // Under the lock, so that no other process opens what is about to be removed.
  rmSync(place.folder, { recursive: true, force: true });
}

/** Removes what a server holds for another model; everything, if the index now lies in a file. */
async function tidy(means: IndexOptions, place: IndexPlace, signal: AbortSignal): Promise<void> {
  const facts = factsOf(place);
  if (facts?.store === "qdrant") {
    await using index = await OpenedIndex.write(means, place, { patienceMs: 0, only: true, signal });
    await index.store.tidy(signal);
  } else if (facts?.store === "embedded") {
    using lock = tryWriter(place.folder);
    if (lock === undefined) return;
    await using server = await means.openServer({ index: place.id, vectors: null }, signal);
    await server?.clear(signal);
  }
}

function factsOf({ folder }: IndexPlace): CatalogFacts | undefined {
  using catalog = Catalog.read(folder);
  return catalog?.facts();
}

function compact(place: IndexPlace): boolean {
  using lock = tryWriter(place.folder);
  if (lock === undefined) return false;
  if (!existsSync(path.join(place.folder, CATALOG))) return true;
  using catalog = Catalog.open(place.folder, () => undefined);
  catalog.compact();
  if (existsSync(path.join(storeFolder(place), "index.db"))) compactEmbeddedStore(storeFolder(place));
  return true;
}

function removeLayers(place: IndexPlace): number {
  let count = 0;
  for (const name of namesIn(layersOf(place))) {
    const folder = path.join(layersOf(place), name);
    using lock = tryHoldLayer(folder);
    if (lock === undefined) continue;
    rmSync(folder, { recursive: true, force: true });
    count += 1;
  }
  return count;
}

function removeDamaged({ folder }: IndexPlace): number {
  const found = namesIn(folder).filter((name) => name.endsWith(".damaged"));
  for (const name of found) rmSync(path.join(folder, name), { recursive: true, force: true });
  return found.length;
}

function bytesIn(folder: string): number {
  let bytes = 0;
  for (const name of namesIn(folder)) {
    const stats = lstatSync(path.join(folder, name), { throwIfNoEntry: false });
    bytes += stats?.isDirectory() === true ? bytesIn(path.join(folder, name)) : (stats?.size ?? 0);
  }
  return bytes;
}

/** Frees the disk space of removed rows. No other process may have the store open for writing. */
function compactEmbeddedStore(folder: string): void {
  try {
    using connection = new SqliteConnection(
      new DatabaseSync(path.join(folder, "index.db"), { timeout: PATIENCE_MS }),
    );
    connection.compact();
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

/**
 * An index for one run alone, of files that differ from the workspace's. It begins as a copy of the workspace's index,
 * so that only the differences have to be read, and is never merged back.
 */
export function claimLayer(base: IndexPlace, session: string): IndexLayer {
  const folder = path.join(layersOf(base), session);
  try {
    return claimUnderLock(base, folder);
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

function claimUnderLock(base: IndexPlace, folder: string): IndexLayer {
  using stack = new DisposableStack();
  stack.use(lockOf(folder));
  // Under the lock, so that no other process opens what is about to be removed.
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const place = { ...base, folder };
  if (!existsSync(path.join(folder, CATALOG))) {
    // Copied only when no other process writes it; otherwise the run reads all files itself.
    using lock = tryWriter(base.folder);
    if (lock !== undefined) seed(base, place);
  }
  const resources = stack.move();
  return { place, [Symbol.dispose]: () => resources.dispose() };
}

/** Retries, since a prune may have taken the layer for abandoned and removed it together with its lock. */
function lockOf(folder: string): Disposable {
  for (;;) {
    const lock = waitForWriter(() => holdFolderOf(folder));
    if (existsSync(lockFileIn(path.join(folder, HOLD_FOLDER)))) return lock;
    lock[Symbol.dispose]();
  }
}

/** Removed when its run ends. */
export interface IndexLayer extends Disposable {
  readonly place: IndexPlace;
}

/** The lock that a run holds on its layer; undefined if another process has it. */
export const tryHoldLayer = (layer: string): Disposable | undefined => tryWriter(holdFolderOf(layer));

const HOLD_FOLDER = "held";

function holdFolderOf(layer: string): string {
  const folder = path.join(layer, HOLD_FOLDER);
  makeFolder(folder);
  return folder;
}

const layersOf = ({ folder }: Pick<IndexPlace, "folder">): string => path.join(folder, "layers");

function seed(base: IndexPlace, place: IndexPlace): void {
  const store = storeFolder(base);
  if (!existsSync(store) || !existsSync(path.join(base.folder, CATALOG))) return;
  const inStore = storeFolder(place);
  makeFolder(inStore);
  for (const name of readdirSync(store)) copyUnlessShared(path.join(store, name), path.join(inStore, name));
  for (const name of readdirSync(base.folder))
    if (name.startsWith(CATALOG))
      copyUnlessShared(path.join(base.folder, name), path.join(place.folder, name));
}

/** SQLite's shared memory belongs to the process that has the database open. */
function copyUnlessShared(from: string, to: string): void {
  if (!from.endsWith("-shm")) copyFileSync(from, to, constants.COPYFILE_FICLONE);
}
