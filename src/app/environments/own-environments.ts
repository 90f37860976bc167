import { readFile } from "node:fs/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Engine } from "../../docker/engine.ts";
import {
  type EnvironmentFiles,
  environmentFolders,
  type EnvironmentRecord,
  filesOf,
  forgetEnvironment,
  readBuilding,
  readRecord,
} from "../../docker/environments/recipe.ts";
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
import { isEngine } from "../../docker/engine.ts";
import { wantedImage } from "../../docker/box-image.ts";
import { lookForEngine, requireEngine } from "../box-access.ts";
import { type Host, packageRoot } from "../host.ts";
import { engineOfEnvironments, namedCluster } from "../named-engine.ts";
import { podNoteOn, pushedImage } from "./pod-environment.ts";
import { noteOn } from "./workspace-environment.ts";

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
