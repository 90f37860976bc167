import { constants, copyFileSync, existsSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { CATALOG, lockFileIn, tryWriter, waitForWriter } from "../embedded/catalog-file.ts";
import type { IndexPlace } from "../embedded/catalog-workspace.ts";
import { indexFailure } from "../index-failure.ts";
import { storeFolder } from "./opened-store.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * An index for one run alone, of files that differ from the workspace's. It begins as a copy of the workspace's index,
 * so that only the differences have to be read, and is never merged back.
 */
export function claimLayer(base: IndexPlace, session: string): Layer {
  const folder = path.join(layersOf(base), session);
  try {
    return claimUnderLock(base, folder);
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

function claimUnderLock(base: IndexPlace, folder: string): Layer {
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
export interface Layer extends Disposable {
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

export const layersOf = ({ folder }: Pick<IndexPlace, "folder">): string => path.join(folder, "layers");

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
