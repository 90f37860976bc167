import { realpath } from "node:fs/promises";
import path from "node:path";
import { reasonOf } from "../core/errors.ts";
import { layersIn } from "../docker/isolation/layer-record.ts";
import { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import { noteBase } from "../sessions/layer-base.ts";

export interface LayerStart {
  readonly stateDir: string;
  readonly workspace: string;
  readonly session: string;
  readonly isolation: "overlay" | "copy";
  readonly warn: (text: string) => void;
}

/** What the workspace is like when a box begins to work on a layer over it, or on a copy of it. */
export async function noteLayerBase({
  stateDir,
  workspace,
  session,
  isolation,
  warn,
}: LayerStart): Promise<void> {
  try {
    using store = new CheckpointStore({ stateDir, workspace: await realpath(workspace) });
    const upper = path.join(layersIn(stateDir), session, "upper");
    await noteBase(store, session, isolation === "overlay" ? upper : undefined);
  } catch (thrown) {
    warn(`files that you change from now on will not be merged with this run's: ${reasonOf(thrown)}`);
  }
}
