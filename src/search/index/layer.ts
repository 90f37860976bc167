import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { CATALOG } from "../catalog/file.ts";
import { tryWriter } from "../catalog/lock.ts";
import type { IndexPlace } from "../catalog/workspace.ts";
import { storeFolder } from "./opened-store.ts";

/**
 * An index of one run alone, for files that are not those of the workspace. It begins as a copy of the workspace's, so
 * that only what differs has to be read, and it never goes back into it.
 */
export function claimLayer(base: IndexPlace, session: string): Layer {
  const folder = path.join(layersOf(base), session);
  const place = { ...base, folder };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const held = heldBy(folder);
  if (!existsSync(path.join(folder, CATALOG))) {
    // Nobody writes it while it is copied; where somebody does, the run reads everything itself.
    using lock = tryWriter(base.folder);
    if (lock !== undefined) seed(base, place);
  }
  return {
    place,
    [Symbol.dispose]: () => {
      rmSync(folder, { recursive: true, force: true });
      held?.[Symbol.dispose]();
    },
  };
}

/** Gone with its run. */
export interface Layer extends Disposable {
  readonly place: IndexPlace;
}

/** Held as long as its run goes on; undefined where somebody has it. */
export function heldBy(layer: string): Disposable | undefined {
  const folder = path.join(layer, "held");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return tryWriter(folder);
}

export const layersOf = ({ folder }: Pick<IndexPlace, "folder">): string => path.join(folder, "layers");

function seed(base: IndexPlace, place: IndexPlace): void {
  const store = storeFolder(base);
  if (!existsSync(store) || !existsSync(path.join(base.folder, CATALOG))) return;
  const inStore = storeFolder(place);
  mkdirSync(inStore, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(store)) copied(path.join(store, name), path.join(inStore, name));
  for (const name of readdirSync(base.folder))
    if (name.startsWith(CATALOG)) copied(path.join(base.folder, name), path.join(place.folder, name));
}

/** SQLite's shared memory belongs to who has the database open. */
function copied(from: string, to: string): void {
  if (!from.endsWith("-shm")) copyFileSync(from, to, constants.COPYFILE_FICLONE);
}
