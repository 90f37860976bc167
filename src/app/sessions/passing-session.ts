import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { giveUpLayer } from "../../boxes/layers/layer-record.ts";
import { isAlive, thisProcess } from "../../boxes/life/owner.ts";
import type { Owner } from "../../boxes/box-labels.ts";
import { errorCode } from "../../core/errors.ts";
import type { Session, SessionAbout, SessionStore } from "../../core/session.ts";
import { forgetBase } from "../../sessions/layer-base.ts";
import { openStore } from "../../sessions/session-store.ts";
import type { Host } from "../host.ts";
import { passingIn } from "./session-access.ts";
import { checkpointStores } from "./checkpoint-access.ts";
import { removeSession } from "./session-changes.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * A session of which nothing is to stay: its records lie in `<state>/passing/<session>.<owner>/`, which no other command
 * reads, so that it is nobody's last session, not even while it is under way. The name says all that it takes to clear what
 * a kill leaves: whoever owns it, and the session whose layer and first tree lie beside those of the others.
 */
export interface PassingSession extends AsyncDisposable {
  readonly session: Session;
  /** For files that go with it. */
  readonly folder: string;
}

export async function passingSession(
  host: Host,
  store: SessionStore,
  about: SessionAbout,
): Promise<PassingSession> {
  const id = store.reserve();
  const { pid, start, boot } = await thisProcess();
  const folder = path.join(passingIn(host.places.state), `${id}.${pid}-${start}-${boot}`);
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

interface Left {
  readonly folder: string;
  readonly session: string;
  readonly owner: Owner;
}

/**
 * Clears what a killed process left of such sessions; what an engine keeps of a layer goes with the next box. What cannot be
 * cleared now is left to the next command.
 */
export async function clearPassed({ places }: Host): Promise<void> {
  const root = passingIn(places.state);
  const names = await readdir(root).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  for (const name of names) {
    const left = leftBy(root, name);
    if (left === undefined || (await isAlive(left.owner))) continue;
    await cleared(places.state, left).catch(() => undefined);
  }
}

function leftBy(root: string, name: string): Left | undefined {
  const [, session, pid, start = "", boot = ""] = /^(\w+)\.(\d+)-(\d+)-([\w-]+)$/.exec(name) ?? [];
  if (session === undefined) return undefined;
  return { folder: path.join(root, name), session, owner: { pid: Number(pid), start, boot } };
}

/** The folder goes last: a clearing that is killed is begun anew. */
async function cleared(stateDir: string, { folder, session }: Left): Promise<void> {
  const workspace = workspaceOf(folder, session);
  await giveUpLayer(stateDir, session);
  if (workspace !== undefined) {
    const { forgetSession } = await import("../../sessions/checkpoints/checkpoint-quota.ts");
    {
      using store = (await checkpointStores())({ stateDir, workspace });
      forgetBase(store, session);
    }
    forgetSession({ stateDir, workspace }, session);
  }
  await rm(folder, { recursive: true, force: true });
}

/** Undefined where it was killed before it began. */
function workspaceOf(folder: string, session: string): string | undefined {
  try {
    using store = openStore(folder);
    return store.open(session).info().workspace;
  } catch {
    return undefined;
  }
}
