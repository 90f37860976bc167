import path from "node:path";
import type { LayerChanges } from "../../core/layer.ts";
import type { Engine } from "../engine.ts";
import { changesOfUpper } from "../isolation/upper.ts";
import { ownerLabels } from "../labels.ts";
import { thisProcess } from "../life/owner.ts";
import type { Layer } from "./record.ts";
import { changesOfCopy } from "./copied.ts";
import { anyImage, shownBy } from "./shown.ts";

export interface Reading {
  /** Asked for only where a layer does not tell by itself. */
  readonly engine: () => Promise<Engine>;
  readonly uid: number;
  /** That mounts the layers of an overlay already. */
  readonly mounted?: string | undefined;
}

/** What a layer that nobody works on has other than the workspace has now. */
export async function changesOfLayer(layer: Layer, { engine, uid, mounted }: Reading): Promise<LayerChanges> {
  if (layer.isolation === "copy") return copied(layer, { engine, uid });
  const { folder, workspace, made } = layer;
  const upper = path.join(folder, "upper");
  await using stack = new AsyncDisposableStack();
  const held: { shown?: Promise<ReturnType<typeof shownBy>> } = {};
  const open = async () => {
    const labels = ownerLabels(uid, await thisProcess());
    return stack.use(shownBy(await engine(), { folder, labels, mounted }));
  };
  const shows = async (file: string): Promise<boolean | undefined> =>
    (await (held.shown ??= open())).shows(file);
  const { changes, incomplete } = await changesOfUpper({ lower: workspace, upper, shows });
  return { changes: [...changes], incomplete, content: upper, since: made };
}

async function copied(layer: Layer, { engine: find, uid }: Reading): Promise<LayerChanges> {
  const engine = await find();
  const labels = ownerLabels(uid, await thisProcess());
  return changesOfCopy(layer, { engine, labels, image: await anyImage(engine, undefined) });
}
