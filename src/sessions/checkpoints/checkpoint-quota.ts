import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { CheckpointStore } from "./checkpoint-store.ts";
import { checkpointsIn, QUOTA_BYTES, storeFolder, type StorePlace } from "./store-place.ts";
import { hasJournal } from "./undo-changes.ts";

/** The part of the quota that remains after a removal, so that not every further run has to remove something. */
const REMAINING_SHARE = 0.9;

interface Kept {
  readonly folder: string;
  readonly session: string;
  readonly newest: number;
}

/** Removes checkpoints until the rest fits, starting with the session whose last checkpoint is oldest. */
export function keepWithin(
  own: CheckpointStore,
  session: string,
  stateDir: string,
  quota = QUOTA_BYTES,
): void {
  const all = checkpointsIn(stateDir);
  let bytes = sizeOf(all);
  if (bytes <= quota) return;
  const others = sessionsIn(all).filter((kept) => kept.folder !== own.folder || kept.session !== session);
  for (const kept of others.toSorted((a, b) => a.newest - b.newest)) {
    if (bytes <= quota * REMAINING_SHARE) return;
    if (kept.folder === own.folder) dropFrom(own, kept.session);
    else forgetSession({ stateDir, workspace: workspaceOf(kept.folder) }, kept.session);
    bytes = sizeOf(all);
  }
}

/** Removes the checkpoints of a removed session. If they are in use, they stay until the quota removes them. */
export function forgetSession(place: StorePlace, session: string): void {
  const folder = storeFolder(place);
  if (!existsSync(folder)) return;
  using store = new CheckpointStore(place);
  dropFrom(store, session);
  if (store.trees.ids().length > 0 || hasJournal(folder)) return;
  // The lock file stays: another process may be about to take the lock.
  store.alone(() => {
    for (const name of ["seen", "workspace"]) rmSync(path.join(folder, name), { force: true });
  });
}

/** Does nothing while another process has the store open: the trees of a current run need each other. */
function dropFrom(store: CheckpointStore, session: string): void {
  store.alone(() => {
    store.trees.forget(session);
    store.packs.keepOnly(store.trees.live());
  });
}

const workspaceOf = (folder: string): string =>
  readFileSync(path.join(folder, "workspace"), "utf8").replace(/\n$/, "");

function sessionsIn(all: string): readonly Kept[] {
  const newest = new Map<string, Kept>();
  for (const name of listing(all)) {
    const folder = path.join(all, name);
    for (const tree of listing(path.join(folder, "trees"))) {
      const session = tree.split(".", 1)[0] ?? "";
      const { mtimeMs } = statSync(path.join(folder, "trees", tree));
      const known = newest.get(`${name} ${session}`);
      newest.set(`${name} ${session}`, { folder, session, newest: Math.max(mtimeMs, known?.newest ?? 0) });
    }
  }
  return [...newest.values()];
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const name of listing(folder)) {
    const stats = statSync(path.join(folder, name), { throwIfNoEntry: false });
    if (stats !== undefined) bytes += stats.isDirectory() ? sizeOf(path.join(folder, name)) : stats.size;
  }
  return bytes;
}

function listing(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
