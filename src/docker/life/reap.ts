import path from "node:path";
import type { ContainerInfo, VolumeInspectInfo } from "dockerode";
import type { Engine } from "../engine.ts";
import { engineFailure } from "../failure.ts";
import { emptyWork } from "../isolation/layers.ts";
import { boxFilter, type BoxRecord, boxOf, type Owner, ownerLabels, ownFilter } from "../labels.ts";
import { copiesToRemove, layersToRemove } from "../layers/clear.ts";
import { layersIn } from "../layers/record.ts";
import { forget, holds, standings } from "../parked/files.ts";
import { standingOf } from "../parked/standing.ts";
import { type BoxFolder, boxFolders, removeBoxFolder } from "./folders.ts";
import { removeUnthawed } from "./frozen-container.ts";
import { locksIn } from "./lock-files.ts";
import { Removal, type Thing } from "./removal.ts";
import { liveness } from "./owner.ts";
import { staleLocks } from "./stale-locks.ts";

interface Leftover {
  readonly kind: "container" | "volume" | "folder" | "lock";
  readonly id: string;
  readonly reason: string;
}

export interface Reaped {
  readonly containers: readonly string[];
  readonly volumes: readonly string[];
  readonly folders: readonly string[];
  readonly locks: readonly string[];
  /** Of dead runs, left on purpose: changes that were not applied. */
  readonly kept: readonly Leftover[];
  /** Could not be removed; the next start tries again. */
  readonly failed: readonly Leftover[];
}

export interface ReapRequest {
  readonly uid: number;
  readonly stateDir: string;
}

/** What says nothing of its owner (one command's container) is a leftover once it is older than any such thing gets. */
const UNOWNED_MS = 3_600_000;

interface Found {
  readonly id: string;
  readonly record: BoxRecord;
  readonly created: number;
  /** Of a container. */
  readonly frozen?: boolean;
}

/** Removes what dead runs of this user left behind. Throws only when the engine does not answer at all. */
export async function reap(engine: Engine, { uid, stateDir }: ReapRequest): Promise<Reaped> {
  const removal = new Removal<Leftover["kind"]>();
  const { failed, going } = removal;
  const [boxes, volumes, allVolumes] = await list(engine, uid);
  const isDead = judge();
  const doomed = await notWaiting(await where(boxes, isDead));
  const containers = await removal.each(
    "container",
    doomed.map(({ id }) => ({
      id,
      remove: () => removeUnthawed(engine.api.getContainer(id)),
    })),
  );
  const stuck = new Set([...going, ...failed.map(({ id }) => id)]);
  const living = namesOf(boxes.filter((box) => !doomed.includes(box) || stuck.has(box.id)));
  const boxless = volumes.filter(({ record }) => !living.has(record.session ?? ""));
  const orphans = await where(boxless, isDead);
  const left = (
    await where(
      (await removal.orNone("folder", path.join(stateDir, "boxes"), boxFolders(stateDir))).map(asFound),
      isDead,
    )
  ).filter(({ folder }) => !living.has(folder.id));
  return {
    containers,
    volumes: await removal.each("volume", [
      ...orphans.map(({ id }) => ({ id, remove: () => engine.api.getVolume(id).remove() })),
      ...(await removal.orNone("volume", layersIn(stateDir), copiesToRemove(engine, allVolumes, stateDir))),
    ]),
    folders: await removal.each("folder", [
      ...left.flatMap(({ id, folder }) =>
        folder.kept === undefined ? [{ id, remove: () => removeLayers(engine, uid, folder) }] : [],
      ),
      ...(await removal.orNone("folder", layersIn(stateDir), layersToRemove(engine, { uid, stateDir }))),
    ]),
    locks: await removal.each("lock", [
      ...(await removal.orNone("lock", locksIn(stateDir), staleLocks(stateDir))),
      ...(await removal.orNone("lock", stateDir, overParkings(stateDir))),
    ]),
    kept: left.flatMap(({ id, folder: { kept } }) =>
      kept === undefined ? [] : [{ kind: "folder", id, reason: kept }],
    ),
    failed,
  };
}

/** Without the boxes that wait frozen for a person, and those that another process than their maker has taken up. */
async function notWaiting(dead: readonly Found[]): Promise<readonly Found[]> {
  const held = await Promise.all(dead.map(({ record, frozen }) => standingOf(record, frozen === true)));
  return dead.filter((_, index) => held[index] === undefined);
}

/** What tells of boxes that nobody may take up any more. */
async function overParkings(stateDir: string): Promise<readonly Thing[]> {
  const now = Date.now();
  const over = (await standings(stateDir)).map(async (each) =>
    (await holds(each, now)) ? [] : [{ id: path.basename(each.file), remove: () => forget(each) }],
  );
  return (await Promise.all(over)).flat();
}

async function removeLayers(engine: Engine, uid: number, folder: BoxFolder): Promise<void> {
  await emptyWork(engine, folder.path, ownerLabels(uid));
  await removeBoxFolder(folder);
}

async function list(
  engine: Engine,
  uid: number,
): Promise<readonly [readonly Found[], readonly Found[], readonly VolumeInspectInfo[]]> {
  const [boxes, volumes] = await Promise.all([
    engine.api.listContainers({ all: true, filters: boxFilter(uid) }),
    engine.api.listVolumes({ filters: ownFilter(uid) }),
  ]).catch((thrown: unknown) => {
    throw engineFailure("looking for what earlier runs left", thrown);
  });
  const own = ({ record }: Found): boolean => record.uid === uid;
  // The engine answers null for an empty list.
  const all = volumes.Volumes ?? [];
  return [boxes.flatMap(foundBox).filter(own), all.flatMap(foundVolume).filter(own), all];
}

function foundBox({ Id, Labels, Created, State }: ContainerInfo): readonly Found[] {
  const record = boxOf(Labels);
  if (record === undefined) return [];
  return [{ id: Id, record, created: Created * 1000, frozen: State === "paused" }];
}

function foundVolume(volume: VolumeInspectInfo & { readonly CreatedAt?: string }): readonly Found[] {
  const record = boxOf(volume.Labels);
  return record === undefined
    ? []
    : [{ id: volume.Name, record, created: Date.parse(volume.CreatedAt ?? "") }];
}

const asFound = (
  folder: BoxFolder,
): { id: string; record: Pick<BoxRecord, "owner">; created: number; folder: BoxFolder } => ({
  id: path.basename(folder.path),
  record: { owner: folder.owner },
  created: folder.changed,
  folder,
});

type Judge = (owner: Owner | undefined, created: number) => Promise<boolean>;

function judge(): Judge {
  const alive = liveness();
  return async (owner, created) =>
    owner === undefined ? Date.now() - created > UNOWNED_MS : !(await alive(owner));
}

async function where<T extends { readonly record: Pick<BoxRecord, "owner">; readonly created: number }>(
  things: readonly T[],
  isDead: Judge,
): Promise<readonly T[]> {
  const dead = await Promise.all(things.map(({ record, created }) => isDead(record.owner, created)));
  return things.filter((_, index) => dead[index]);
}

/** The names by which folders and volumes belong to these boxes. */
const namesOf = (boxes: readonly Found[]): ReadonlySet<string> =>
  new Set(boxes.flatMap(({ id, record }) => [id, id.slice(0, 12), record.session ?? id]));
