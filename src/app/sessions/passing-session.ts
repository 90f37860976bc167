import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { giveUpLayer } from "../../boxes/workspace/layer-record.ts";
import { isAlive, type Owner, thisProcess } from "../../boxes/box-record.ts";
import { errorCode } from "../../core/errors.ts";
import type { Session, SessionAbout, SessionStore } from "../../core/session.ts";
import { forgetBase } from "../../sessions/apply-layer.ts";
import { openStore } from "../../sessions/session-store.ts";
import type { Host } from "../host.ts";
import { passingFolder } from "./session-access.ts";
import { checkpointStores } from "./checkpoint-access.ts";
import { removeSession } from "./session-changes.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * A session that leaves nothing behind. Its records lie in `<state>/passing/<session>.<owner>/`, which no other command
 * reads, so it is never anybody's last session, not even while it runs. The folder's name is enough to clear up after a
 * kill: it names the owner, and the session whose layer and first tree lie beside those of others.
 */
export interface PassingSession extends AsyncDisposable {
  readonly session: Session;
  /** For files that are removed with the session. */
  readonly folder: string;
}

export async function passingSession(
  host: Host,
  store: SessionStore,
  about: SessionAbout,
): Promise<PassingSession> {
  const id = store.reserve();
  const { pid, start, boot } = await thisProcess();
  const folder = path.join(passingFolder(host.places.state), `${id}.${pid}-${start}-${boot}`);
  makeFolder(folder);
  const own = openStore(folder);
  return {
    session: own.create(about, id),
    folder,
    [Symbol.asyncDispose]: async () => {
      try {
        await removeSession(host, own, id);
      } finally {
        own[Symbol.dispose]();
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

interface Leftover {
  readonly folder: string;
  readonly session: string;
  readonly owner: Owner;
}

/**
 * Clears what killed processes left of such sessions; the engine's part of a layer is removed with the next box. What
 * cannot be cleared now is left to the next command.
 */
export async function clearPassed({ places }: Host): Promise<void> {
  const root = passingFolder(places.state);
  const names = await readdir(root).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  for (const name of names) {
    const left = leftoverOf(root, name);
    if (left === undefined || (await isAlive(left.owner))) continue;
    await clearLeftover(places.state, left).catch(() => undefined);
  }
}

function leftoverOf(root: string, name: string): Leftover | undefined {
  const [, session, pid, start = "", boot = ""] = /^(\w+)\.(\d+)-(\d+)-([\w-]+)$/.exec(name) ?? [];
  if (session === undefined) return undefined;
  return { folder: path.join(root, name), session, owner: { pid: Number(pid), start, boot } };
}

/** The folder is removed last, so that a clearing that is killed can start again. */
async function clearLeftover(stateDir: string, { folder, session }: Leftover): Promise<void> {
  const workspace = workspaceOf(folder, session);
  await giveUpLayer(stateDir, session);
  if (workspace !== undefined) {
    const { forgetSession } = await import("../../sessions/checkpoints/recorder.ts");
    {
      using store = (await checkpointStores())({ stateDir, workspace });
      forgetBase(store, session);
    }
    forgetSession({ stateDir, workspace }, session);
  }
  await rm(folder, { recursive: true, force: true });
}

/** Undefined if the session was killed before it began. */
function workspaceOf(folder: string, session: string): string | undefined {
  try {
    using store = openStore(folder);
    return store.open(session).info().workspace;
  } catch {
    return undefined;
  }
}
