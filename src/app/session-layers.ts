import type { Session } from "../core/session.ts";
import { isEngine } from "../docker/engine.ts";
import { clearGivenUp, holdExisting } from "../docker/isolation/layer-quota.ts";
import { giveUpLayer } from "../docker/isolation/layer-record.ts";
import { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import { forgetBase } from "../sessions/layer-base.ts";
import { dropFrozen } from "./frozen-box.ts";
import { lookForEngine, uid } from "./open-box.ts";

/** What a session has changed and nobody applied goes with it, and the box that waits for it; what cannot go now, the next box takes away. */
export async function removeLayer(stateDir: string, session: Session): Promise<void> {
  await dropFrozen(session.id);
  {
    await using held = await holdExisting(stateDir, session.id);
    if (held === undefined) return;
    await giveUpLayer(stateDir, session.id);
    using store = new CheckpointStore({ stateDir, workspace: held.layer.workspace });
    forgetBase(store, session.id);
  }
  await sweep(stateDir);
}

/** Removes what layers that were given up hold. */
export async function sweep(stateDir: string): Promise<void> {
  const engine = await lookForEngine();
  if (isEngine(engine)) await clearGivenUp(engine, { uid: uid(), stateDir });
}
