import path from "node:path";
import type { VolumeInspectInfo } from "dockerode";
import { ownerLabels, ownerOfKept } from "../../boxes/box-labels.ts";
import { allLayers, type FoundLayer } from "../../boxes/layers/layer-record.ts";
import { liveness } from "../../boxes/life/owner.ts";
import { removeTree } from "../../boxes/life/workspace-folders.ts";
import { isBeingRemoved, isMissing } from "../engine-failure.ts";
import type { Engine } from "../engine.ts";
import { emptyWork } from "./layer-volumes.ts";

interface Place {
  readonly uid: number;
  readonly stateDir: string;
}

interface Leftover {
  readonly id: string;
  readonly remove: () => Promise<unknown>;
}

/** Longer than making any layer takes. */
const BEGUN_MS = 3_600_000;

/** Layers that were given up, or never finished being made. */
export async function layersToRemove(engine: Engine, { uid, stateDir }: Place): Promise<readonly Leftover[]> {
  const found = await allLayers(stateDir);
  const here = ({ at }: FoundLayer): boolean => at === undefined || at === engine.endpoint.host;
  // A copy on another engine is removed when that engine is asked next: no other engine knows of it.
  return found
    .filter((each) => isDone(each) && here(each))
    .map((each) => ({
      id: path.basename(each.folder),
      remove: () => removeLayer(engine, uid, each),
    }));
}

/** What cannot be removed now is left to the next box. */
export async function clearGivenUp(engine: Engine, place: Place): Promise<void> {
  const all = await layersToRemove(engine, place).catch(() => []);
  await Promise.all(all.map(({ remove }) => remove().catch(() => undefined)));
}

const isDone = ({ state, changed }: FoundLayer): boolean =>
  state === "given-up" || (state === "begun" && Date.now() - changed > BEGUN_MS);

/** The folder goes last: only it knows of the volume. */
async function removeLayer(
  engine: Engine,
  uid: number,
  { folder, volume, engine: kind }: FoundLayer,
): Promise<void> {
  if (kind !== undefined) return removeTree(folder);
  if (volume !== null) await engine.api.getVolume(volume).remove().catch(unlessGone);
  else await emptyWork(engine, folder, ownerLabels(uid)).catch(unlessGone);
  await removeTree(folder);
}

function unlessGone(thrown: unknown): void {
  if (!isMissing(thrown) && !isBeingRemoved(thrown)) throw thrown;
}

/** Copies of dead runs that no layer of this state folder knows: the runs were killed before the copy was complete. */
export async function copiesToRemove(
  engine: Engine,
  volumes: readonly VolumeInspectInfo[],
  stateDir: string,
): Promise<readonly Leftover[]> {
  const known = new Set((await allLayers(stateDir)).map(({ volume }) => volume));
  const alive = liveness();
  const left: Leftover[] = [];
  for (const { Name, Labels } of volumes) {
    const owner = ownerOfKept(Labels, stateDir);
    if (known.has(Name) || owner === undefined || (await alive(owner))) continue;
    left.push({ id: Name, remove: () => engine.api.getVolume(Name).remove() });
  }
  return left;
}
