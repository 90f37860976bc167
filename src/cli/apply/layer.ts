import { placesFrom } from "../../config/places.ts";
import type { LayerChanges } from "../../core/layer.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { changesOfLayer } from "../../docker/layers/changes.ts";
import { holdExisting } from "../../docker/layers/hold.ts";
import { giveUpLayer, layerOf } from "../../docker/layers/record.ts";
import type { CheckpointStore } from "../../sessions/checkpoints/store.ts";
import { forgetBase } from "../../sessions/layers/base.ts";
import { sweep } from "../layers.ts";
import { endBoxes } from "../undo/dead-boxes.ts";
import { aloneIn, finishEarlierUndo } from "../undo/workspace.ts";
import { requireEngine, uid } from "../wire.ts";

export interface OpenLayer {
  readonly layer: LayerChanges;
  readonly store: CheckpointStore;
  /** Nothing of it is wanted any more. */
  readonly giveUp: () => Promise<void>;
}

/** Whether what a session changes is kept elsewhere than in the folder itself. */
export const hasLayer = async (session: Session): Promise<boolean> =>
  (await layerOf(placesFrom(process.env).state, session.id)) !== undefined;

/** What a session has changed in a layer, while nobody else works on that or on the folder. */
export async function withLayer<T>(
  sessions: SessionStore,
  session: Session,
  say: (text: string) => void,
  work: (open: OpenLayer) => Promise<T>,
): Promise<T> {
  const { state } = placesFrom(process.env);
  const found = await layerOf(state, session.id);
  if (found === undefined) throw noLayer(session);
  await finishEarlierUndo(sessions, found.workspace, say);
  const done = await aloneIn(found.workspace, async (store) => {
    await using held = (await holdExisting(state, session.id)) ?? refuse(session);
    await endBoxes();
    const layer = await changesOfLayer(held.layer, { engine: requireEngine, uid: uid() });
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
