import { placesFrom } from "../config/places.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { LayerChanges } from "../core/layer-port.ts";
import type { Session, SessionStore } from "../core/session.ts";
import { changesOfLayer } from "../docker/isolation/layer-changes.ts";
import { holdExisting } from "../docker/isolation/layer-quota.ts";
import { giveUpLayer, layerOf } from "../docker/isolation/layer-record.ts";
import { frozenVolume } from "../docker/isolation/parked-record.ts";
import type { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import { forgetBase } from "../sessions/layer-base.ts";
import { aloneIn, endBoxes, finishEarlierUndo } from "./checkpoint-workspace.ts";
import { hasFrozen } from "./frozen-box.ts";
import { requireEngine, uid } from "./open-box.ts";
import { sweep } from "./session-layers.ts";

export interface OpenLayer {
  readonly layer: LayerChanges;
  readonly store: CheckpointStore;
  /** Nothing of it is wanted any more. */
  readonly giveUp: () => Promise<void>;
}

/** Whether what a session changes is kept elsewhere than in the folder itself. */
export const hasLayer = async (session: Session): Promise<boolean> =>
  (await layerOf(placesFrom(process.env).state, session.id)) !== undefined;

export interface LayerUse {
  readonly say: (text: string) => void;
  /** Something of it goes into the folder, or all of it is given up. */
  readonly moves: boolean;
}

/** A box that waits frozen goes on with its layer: it can be looked at, and not be taken from under the box. */
async function inFrozen(stateDir: string, session: Session, moves: boolean): Promise<string | undefined> {
  if (!(await hasFrozen(session.id))) return undefined;
  if (moves)
    throw new HarnessError(
      EXIT.usage,
      `a box waits frozen over what ${session.id} has changed: it goes on once its question is answered`,
      `harness approve ${session.id}   (or give the box up: harness sandbox ls, harness sandbox rm)`,
    );
  return frozenVolume(await requireEngine(), { uid: uid(), stateDir, session: session.id });
}

/** What a session has changed in a layer, while nobody else works on that or on the folder. */
export async function withLayer<T>(
  sessions: SessionStore,
  session: Session,
  { say, moves }: LayerUse,
  work: (open: OpenLayer) => Promise<T>,
): Promise<T> {
  const { state } = placesFrom(process.env);
  const found = await layerOf(state, session.id);
  if (found === undefined) throw noLayer(session);
  await finishEarlierUndo(sessions, found.workspace, say);
  const done = await aloneIn(found.workspace, async (store) => {
    await using held = (await holdExisting(state, session.id)) ?? refuse(session);
    await endBoxes();
    const mounted = await inFrozen(state, session, moves);
    const layer = await changesOfLayer(held.layer, { engine: requireEngine, uid: uid(), mounted });
    const giveUp = async (): Promise<void> => {
      await giveUpLayer(state, session.id);
      forgetBase(store, session.id);
    };
    return await work({ layer, store, giveUp });
  });
  // What was given up is only cleared when nobody holds it any more.
  if ((await layerOf(state, session.id)) === undefined) await sweep(state);
  return done;
}

function refuse(session: Session): never {
  throw noLayer(session);
}

const noLayer = ({ id }: Session): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `nothing of the session ${id} waits to be applied: its changes are already there`,
    `harness diff ${id}`,
  );
