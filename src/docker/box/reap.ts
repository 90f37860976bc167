import { unlink } from "node:fs/promises";
import path from "node:path";
import type Docker from "dockerode";
import type { ContainerInfo, VolumeInspectInfo } from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import {
  boxFilter,
  type BoxFolder,
  boxFolders,
  boxOf,
  type BoxRecord,
  isOutOfSight,
  liveness,
  ownerLabels,
  ownFilter,
  removeBoxFolder,
} from "../../boxes/box-record.ts";
import { type Engine, engineFailure, isBeingRemoved, isMissing } from "../engine.ts";
import { emptyLayers } from "../environments/environment-mounts.ts";
import { copiesToRemove, emptyWork, layersToRemove, type Leftover, type UserState } from "./layer-volumes.ts";
import { layersIn } from "../../boxes/workspace/layer-record.ts";
import { forget, holderOf, isClaimed, recordsOf, standings } from "./parked-boxes.ts";
import { removeUnthawed } from "./container.ts";
import { filesIn, locksIn, ownerOf } from "../../boxes/workspace/workspace-lock.ts";
import { folderForMounts } from "./account.ts";
import { networksIn } from "../egress/box-network.ts";
import { waitingTimeout } from "../../platform/waits.ts";

interface Left {
  readonly kind: "container" | "volume" | "folder" | "lock";
  readonly id: string;
  readonly reason: string;
}

export interface Reaped {
  readonly containers: readonly string[];
  readonly volumes: readonly string[];
  readonly folders: readonly string[];
  readonly locks: readonly string[];
  /** Left by dead runs and kept on purpose: changes that were not applied. */
  readonly kept: readonly Left[];
  /** Removal failed; the next start tries again. */
  readonly failed: readonly Left[];
}

/**
 * A thing without owner labels (the container of one command), or whose owner cannot be seen from here, is a leftover
 * once it is older than any such thing.
 */
const UNOWNED_MS = 3_600_000;

/** States of a container whose processes have ended. */
const ENDED = new Set(["exited", "dead"]);

interface FoundThing {
  readonly id: string;
  readonly record: BoxRecord;
  readonly created: number;
  /** Set for containers. */
  readonly frozen?: boolean;
  /** A container whose processes have not ended: so its owner lives too, even if it is in another container. */
  readonly runs?: boolean;
}

/** Removes what dead runs of this user left behind. Throws only when the engine does not answer at all. */
export async function reap(engine: Engine, { uid, stateDir }: UserState): Promise<Reaped> {
  const removal = new Removal();
  const { failed, going } = removal;
  const [boxes, volumes, allVolumes] = await list(engine, uid);
  const isDead = deadJudge();
  const doomed = await withoutWaiting(engine, uid, await onlyDead(boxes, isDead));
  const containers = await removal.each(
    "container",
    doomed.map(({ id }) => ({
      id,
      remove: () => removeOrWait(engine.api.getContainer(id)),
    })),
  );
  const stuck = new Set([...going, ...failed.map(({ id }) => id)]);
  const living = namesOf(boxes.filter((box) => !doomed.includes(box) || stuck.has(box.id)));
  const boxless = volumes.filter(({ record }) => !living.has(record.session ?? ""));
  const orphans = await onlyDead(boxless, isDead);
  const left = (
    await onlyDead(
      (await removal.orNone("folder", path.join(stateDir, "boxes"), boxFolders(stateDir))).map(asFound),
      isDead,
    )
  ).filter(({ folder }) => !living.has(folder.id.replace(/\.env$/, "")));
  const networks = networksIn(await folderForMounts(uid, stateDir));
  const ways = await onlyDead(
    (await removal.orNone("folder", networks, boxFolders(networks))).map(asFound),
    isDead,
  );
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
      ...ways
        .filter(({ folder }) => !living.has(folder.id))
        .map(({ id, folder }) => ({ id, remove: () => removeBoxFolder(folder) })),
    ]),
    locks: await removal.each("lock", [
      ...(await removal.orNone("lock", locksIn(stateDir), staleLocks(stateDir))),
      ...(await removal.orNone("lock", stateDir, expiredParkings(stateDir))),
    ]),
    kept: left.flatMap(({ id, folder: { kept } }) =>
      kept === undefined ? [] : [{ kind: "folder", id, reason: kept }],
    ),
    failed,
  };
}

/**
 * Leaves out boxes that are frozen for a person's answer, and boxes that another process than their creator has
 * resumed. Boxes are frozen and resumed while this looks: if the records of a box have changed since before the look, a
 * question that waits keeps the box, whatever state was seen.
 */
async function withoutWaiting(
  engine: Engine,
  uid: number,
  dead: readonly FoundThing[],
): Promise<readonly FoundThing[]> {
  if (!dead.some(({ record }) => record.parks !== undefined)) return dead;
  const before = await Promise.all(dead.map(({ record }) => recordsOf(record)));
  const [boxes] = await list(engine, uid);
  const frozen = new Set(boxes.flatMap((box) => (box.frozen === true ? [box.id] : [])));
  const isHeld = async ({ id, record }: FoundThing, index: number): Promise<boolean> =>
    (await holderOf(record, frozen.has(id))) !== undefined ||
    ((await recordsOf(record)) !== before[index] && (await holderOf(record, true)) !== undefined);
  const areHeld = await Promise.all(dead.map(isHeld));
  return dead.filter((_, index) => areHeld[index] === false);
}

const GOING_MS = 5000;

/** A container that another start is removing may still run: this waits for it briefly before a new box is made. */
async function removeOrWait(container: Docker.Container): Promise<void> {
  try {
    await removeUnthawed(container);
  } catch (thrown) {
    if (!isBeingRemoved(thrown)) throw thrown;
    const abortSignal = waitingTimeout(GOING_MS);
    await container.wait({ condition: "removed", abortSignal }).catch(() => undefined);
    throw thrown;
  }
}

/** Records of boxes that may no longer be resumed. */
async function expiredParkings(stateDir: string): Promise<readonly Leftover[]> {
  const now = Date.now();
  const expired = (await standings(stateDir)).map(async (each) =>
    (await isClaimed(each, now)) ? [] : [{ id: path.basename(each.file), remove: () => forget(each) }],
  );
  return (await Promise.all(expired)).flat();
}

async function removeLayers(engine: Engine, uid: number, folder: BoxFolder): Promise<void> {
  await emptyWork(engine, folder.path, ownerLabels(uid));
  await emptyLayers(engine, folder.path, ownerLabels(uid));
  await removeBoxFolder(folder);
}

async function list(
  engine: Engine,
  uid: number,
): Promise<readonly [readonly FoundThing[], readonly FoundThing[], readonly VolumeInspectInfo[]]> {
  const [boxes, volumes] = await Promise.all([
    engine.api.listContainers({ all: true, filters: boxFilter(uid) }),
    engine.api.listVolumes({ filters: ownFilter(uid) }),
  ]).catch((thrown: unknown) => {
    throw engineFailure("looking for what earlier runs left", thrown);
  });
  const own = ({ record }: FoundThing): boolean => record.uid === uid;
  // The engine answers null for an empty list.
  const all = volumes.Volumes ?? [];
  return [boxes.flatMap(foundBox).filter(own), all.flatMap(foundVolume).filter(own), all];
}

function foundBox({ Id, Labels, Created, State }: ContainerInfo): readonly FoundThing[] {
  const record = boxOf(Labels);
  if (record === undefined) return [];
  return [{ id: Id, record, created: Created * 1000, frozen: State === "paused", runs: !ENDED.has(State) }];
}

function foundVolume(volume: VolumeInspectInfo & { readonly CreatedAt?: string }): readonly FoundThing[] {
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

interface Judged extends Pick<FoundThing, "created" | "runs"> {
  readonly record: Pick<BoxRecord, "owner">;
}

type Judge = (thing: Judged) => Promise<boolean>;

function deadJudge(): Judge {
  const alive = liveness();
  return async ({ record: { owner }, created, runs = false }) => {
    const isOld = Date.now() - created > UNOWNED_MS;
    if (owner === undefined) return isOld;
    return (await isOutOfSight(owner)) ? isOld && !runs : !(await alive(owner));
  };
}

async function onlyDead<T extends Judged>(things: readonly T[], isDead: Judge): Promise<readonly T[]> {
  const dead = await Promise.all(things.map(isDead));
  return things.filter((_, index) => dead[index]);
}

/** The names that tie folders and volumes to these boxes. */
const namesOf = (boxes: readonly FoundThing[]): ReadonlySet<string> =>
  new Set(boxes.flatMap(({ id, record }) => [id, id.slice(0, 12), record.session ?? id]));

/** Removes many things; one failure does not stop the others. */
class Removal {
  readonly failed: Left[] = [];
  /** Things that another start or the run itself is removing; that process also removes what depends on them. */
  readonly going = new Set<string>();

  /** Resolves to the things that were removed. */
  async each(kind: Left["kind"], things: readonly Leftover[]): Promise<readonly string[]> {
    const gone = things.map(async ({ id, remove }) => {
      try {
        await remove();
        return [id];
      } catch (thrown) {
        if (isBeingRemoved(thrown)) this.going.add(id);
        else if (!isMissing(thrown)) this.failed.push({ kind, id, reason: reasonOf(thrown) });
        return [];
      }
    });
    return (await Promise.all(gone)).flat();
  }

  /** A list that cannot be read is recorded as a failure and counts as empty. */
  async orNone<T>(kind: Left["kind"], id: string, list: Promise<readonly T[]>): Promise<readonly T[]> {
    return list.catch((thrown: unknown) => {
      this.failed.push({ kind, id, reason: reasonOf(thrown) });
      return [];
    });
  }
}

/** Locks of dead processes. They have no effect and are removed so that they do not accumulate. */
async function staleLocks(stateDir: string): Promise<readonly Leftover[]> {
  const folder = locksIn(stateDir);
  const alive = liveness();
  const stale = (await filesIn(folder)).map(async (file) => {
    const owner = ownerOf(file)?.owner;
    return owner === undefined || (await alive(owner))
      ? []
      : [{ id: file, remove: () => unlink(path.join(folder, file)) }];
  });
  return (await Promise.all(stale)).flat();
}
