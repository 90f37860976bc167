/** What a user does with boxes, their image and their environments, without a model. */
import { readFile } from "node:fs/promises";
import type { BoxLog } from "../../core/run-record.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type ExecResult, isUnstarted, type ListedBox, type OwnedBox } from "../../core/ports.ts";
import { listBoxes, memoryOf, pickBoxes, removeBox, SHORT_ID } from "../../docker/box/box-list.ts";
import { reap } from "../../docker/box/reap.ts";
import { dropFrozen, lookForEngine, requireEngine } from "./box-access.ts";
import { engineOfEnvironments, type Host, namedCluster, packageRoot } from "../host.ts";
import { type Engine, isEngine } from "../../docker/engine.ts";
import {
  type EnvironmentFiles,
  environmentFolders,
  type EnvironmentRecord,
  filesOf,
  forgetEnvironment,
  readBuilding,
  readRecord,
} from "../../docker/environments/environment-record.ts";
import { forgetMountPoints } from "../../docker/environments/environment-mounts.ts";
import {
  isLayerUsed,
  removePodImages,
  removeSystemImage,
  removeVolume,
  stagesOfState,
  systemImages,
  volumeSizes,
  volumesOf,
  volumesOfState,
} from "../../docker/environments/environment-store.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { wantedImage } from "../../docker/box-image.ts";
import { podNoteOn, pushedImage } from "./pod-environment.ts";
import { noteOn } from "./workspace-environment.ts";

export const shortId = (id: string): string => id.slice(0, SHORT_ID);

/** The boxes of this user, oldest first; with `memory`, also the memory that each one uses. */
export async function ownBoxes(host: Host, { memory }: { readonly memory: boolean }) {
  const cluster = await namedCluster(host);
  if (cluster !== undefined) {
    const boxes = await (await import("./pod-access.ts")).ownPods(host, cluster);
    return { boxes, memory: memory && boxes.length > 0 ? new Map<string, number>() : undefined };
  }
  const engine = await requireEngine(host);
  const boxes = await listBoxes(engine, host.uid);
  return { boxes, memory: memory && boxes.length > 0 ? await memoryOf(engine, boxes) : undefined };
}

export interface RemovedBoxes {
  readonly removed: readonly ListedBox[];
  /** The first failed removal, as thrown. */
  readonly failure: PromiseRejectedResult | undefined;
  /** Removes what dead runs have left; returns what stays, and why. */
  readonly sweep: () => Promise<{ readonly kept: readonly Leftover[]; readonly failed: readonly Leftover[] }>;
}

type Leftover = Pick<Awaited<ReturnType<typeof reap>>["kept"][number], "id" | "reason"> & {
  readonly kind: string;
};

/** Removes boxes by their ids, all boxes, or those of dead runs. */
export async function removeOwnBoxes(
  host: Host,
  which: readonly string[] | "all" | "dead",
): Promise<RemovedBoxes> {
  const { boxes, remove, sweep } = await placeOf(host);
  const chosen =
    which === "all"
      ? boxes
      : which === "dead"
        ? boxes.filter(({ owner, parked }) => owner?.alive === false && parked === null)
        : pickBoxes(boxes, which);
  const ended = await Promise.allSettled(
    chosen.map(async ({ id, parked }) => {
      await remove(id);
      if (parked !== null) await dropFrozen(host, parked.session);
    }),
  );
  return {
    removed: chosen.filter((_, index) => ended[index]?.status === "fulfilled"),
    failure: ended.find((one) => one.status === "rejected"),
    sweep,
  };
}

interface Place {
  readonly boxes: readonly ListedBox[];
  readonly remove: (id: string) => Promise<unknown>;
  readonly sweep: RemovedBoxes["sweep"];
}

/** Where the user's boxes are: on a container engine, or in a cluster. */
async function placeOf(host: Host): Promise<Place> {
  const cluster = await namedCluster(host);
  if (cluster !== undefined) {
    const { ownPods, removePod, sweepPods } = await import("./pod-access.ts");
    return {
      boxes: await ownPods(host, cluster),
      remove: (id) => removePod(host, cluster, id),
      sweep: async () => ({ kept: [], failed: await sweepPods(host, cluster) }),
    };
  }
  const engine = await requireEngine(host);
  return {
    boxes: await listBoxes(engine, host.uid),
    remove: (id) => removeBox(engine, id),
    sweep: () => reap(engine, { uid: host.uid, stateDir: host.places.state }),
  };
}

interface ImageBuild {
  readonly rebuild: boolean;
  readonly onLine: (line: string) => void;
}

/** Returns the build of the sandbox image; an image of the same inputs is reused unless `rebuild` is set. */
export async function buildImage(host: Host, { rebuild, onLine }: ImageBuild) {
  const [engine, { ensureImage }] = await Promise.all([
    requireEngine(host),
    import("../../docker/box-image.ts"),
  ]);
  const request = { root: packageRoot, cache: host.places.cache, env: host.env, onLine };
  return (signal: AbortSignal) => ensureImage(engine, { ...request, signal }, rebuild);
}

/** The result and changes of a command, as `sandbox exec --json` prints them. */
export async function execAnswer(
  result: ExecResult,
  changes: Awaited<ReturnType<OwnedBox["changes"]>>,
  log: BoxLog,
  workspace: string,
) {
  const [{ withoutMoved, boxLogReport }, { execJson }, { causeOf }] = await Promise.all([
    import("../../agent/ending/run-changes.ts"),
    import("../../render/renderers.ts"),
    import("../../tools/shell-command.ts"),
  ]);
  const { handoff: _, ...report } = boxLogReport(log, workspace);
  const plain = execJson(result, changes, report);
  // The cause as a run names it: the box itself notices neither a full disk nor a host name that does not resolve.
  const answer = isUnstarted(result)
    ? plain
    : { ...plain, cause: causeOf(result, `${plain.stdout}\n${plain.stderr}`).cause };
  return { ...answer, changes: withoutMoved(answer.changes, log, workspace) };
}

/** `sandbox exec` and `shell` exit with their command's code, so a missing or lost box has an exit code of its own. */
export function asNoBox(thrown: unknown, json: boolean): never {
  if (!json && thrown instanceof HarnessError && thrown.exit === EXIT.sandbox)
    throw new HarnessError(EXIT.noBox, thrown.message, thrown.remedy, thrown);
  throw thrown;
}

/** Environments as a user sees and removes them. */
export interface ListedEnvironment {
  readonly id: string;
  readonly workspace: string;
  readonly name: string;
  readonly state: "ready" | "unfinished";
  readonly made: string | null;
  /**
   * Size of its volumes, and of its system layer, which other environments may share; null if the engine does not tell.
   */
  readonly bytes: number | null;
  readonly system_bytes: number | null;
  /** The image that pods start from, REGISTRY@sha256:…; null if it is in no registry. */
  readonly pushed: string | null;
}

export async function ownEnvironments(host: Host): Promise<readonly ListedEnvironment[]> {
  const all = await knownEnvironments(host);
  if (all.length === 0) return [];
  const engine = await requireEngine(host, undefined, engineOfEnvironments(host));
  const [sizes, images] = await Promise.all([volumeSizes(engine), systemImages(engine)]);
  return all.map(({ files, record, half }) => {
    const { workspace, name, volumes, image } = record ?? half;
    const known = volumes.map(({ volume }) => sizes.get(volume));
    return {
      id: files.id,
      workspace,
      name,
      state: record === undefined ? "unfinished" : "ready",
      made: record?.made ?? null,
      bytes: known.includes(undefined) ? null : known.reduce<number>((sum, each) => sum + (each ?? 0), 0),
      system_bytes: images.find(({ id }) => id === image)?.bytes ?? null,
      pushed: pushedImage(record) ?? null,
    };
  });
}

/** Counts unfinished ones too; does not ask the engine. */
export const environmentCount = async (host: Host): Promise<number> => (await knownEnvironments(host)).length;

interface KnownEnvironment {
  readonly files: EnvironmentFiles;
  readonly record: EnvironmentRecord | undefined;
  readonly half: Pick<EnvironmentRecord, "workspace" | "name" | "volumes" | "image">;
}

async function knownEnvironments({ places }: Host): Promise<readonly KnownEnvironment[]> {
  const found = await Promise.all(
    (await environmentFolders(places.state)).map(async (files) => {
      const [record, building] = await Promise.all([readRecord(files), readBuilding(files)]);
      const half = record ?? building;
      return half === undefined ? [] : [{ files, record, half }];
    }),
  );
  return found.flat();
}

/**
 * Removes the environments with these ids or workspaces; `all`: those of this user, with leftovers that no record
 * names.
 */
export async function removeEnvironments(
  host: Host,
  which: readonly string[] | "all",
): Promise<readonly string[]> {
  const all = await knownEnvironments(host);
  const chosen = which === "all" ? all : which.map((word) => oneOf(all, word));
  const engine = await requireEngine(host, undefined, engineOfEnvironments(host));
  for (const each of chosen) await removeOne(engine, each);
  if (which === "all") {
    for (const files of await environmentFolders(host.places.state)) await forgetEnvironment(files);
    for (const name of await volumesOfState(engine, host.places.state)) await removeVolume(engine, name);
    for (const tag of await stagesOfState(engine, host.places.state)) await removeSystemImage(engine, tag);
  }
  await removeUnused(engine, new Set(chosen.map(({ half }) => half.image)));
  return chosen.map(({ files }) => files.id);
}

function oneOf(all: readonly KnownEnvironment[], word: string): KnownEnvironment {
  const found = all.filter(({ files, half }) => files.id.startsWith(word) || half.workspace === word);
  const [one] = found;
  if (one !== undefined && found.length === 1) return one;
  const why = one === undefined ? "there is no environment" : "there are several environments";
  throw new HarnessError(EXIT.usage, `${why} ${JSON.stringify(word)}`, "harness env list");
}

/** An environment in use by a box stays: the record is only forgotten once all volumes are removed. */
async function removeOne(engine: Engine, { files, half }: KnownEnvironment): Promise<void> {
  for (const name of await volumesOf(engine, files.id))
    await removeVolume(engine, name).catch((thrown: unknown) => {
      const message = `the environment ${files.id} is in use`;
      throw new HarnessError(
        EXIT.failed,
        message,
        "harness sandbox ls shows its boxes; try again once they have ended",
        thrown,
      );
    });
  await removePodImages(engine, files.id);
  await forgetMountPoints(files.points, half.workspace);
  await forgetEnvironment(files);
}

/**
 * System layers are shared, also by other users of the engine: a layer is removed with the last environment that uses
 * it.
 */
async function removeUnused(engine: Engine, layers: ReadonlySet<string | null>): Promise<void> {
  for (const { id, tag } of await systemImages(engine))
    if (layers.has(id) && !(await isLayerUsed(engine, id))) await removeSystemImage(engine, tag);
}

/** The output of the last build; undefined if there was none. */
export async function environmentLog(
  { places }: Host,
  workspace: string,
  name: string | null,
): Promise<string | undefined> {
  return readFile(filesOf(places.state, workspace, name ?? "").log, "utf8").catch(() => undefined);
}

export const environmentOf = (
  { places }: Host,
  workspace: string,
  name: string | null,
): Promise<EnvironmentRecord | undefined> => readRecord(filesOf(places.state, workspace, name ?? ""));

/**
 * The note that boxes would get, for commands that only look; undefined if no engine answers or it has no sandbox image
 * yet.
 */
export async function noteFor(
  host: Host,
  { workspace, settings }: { readonly workspace: string; readonly settings: Settings },
  record: EnvironmentRecord,
): Promise<string | undefined> {
  if ((await namedCluster(host)) !== undefined)
    return (await podNoteOn({ host, workspace, settings }, record))?.text;
  const engine = await lookForEngine(host);
  if (!isEngine(engine) || !(await wantedImage(engine, packageRoot)).present) return undefined;
  return (await noteOn(engine, { host, workspace, settings }, record))?.text;
}
