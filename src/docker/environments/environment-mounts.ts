import { chown, lchown, lstat, mkdir, readFile, rmdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { errorCode, reasonOf } from "../../core/errors.ts";
import {
  boxFolders,
  boxOf,
  makeBoxFolder,
  markFinished,
  type Owner,
  removeBoxFolder,
} from "../../boxes/box-record.ts";
import { isInside } from "../../core/file-names.ts";
import type { BoxPlan } from "../container-spec.ts";
import { type Engine, engineFailure } from "../engine.ts";
import { emptyWork, noteImage, overlayVolume } from "../box/layer-volumes.ts";
import type { Recipe } from "./recipe.ts";

/** What an environment brings into a box. */
export interface BoxEnvironment {
  /** The system layer's id; null for the box's usual image. */
  readonly image: string | null;
  /** Volumes of installed files, each with its absolute path. */
  readonly volumes: readonly { readonly volume: string; readonly target: string }[];
  /** Variables for the commands of the box. */
  readonly env: Readonly<Record<string, string>>;
  /** `fill`: files that the box writes stay; `run`: they are removed with the box, and no other box sees them. */
  readonly use: "fill" | "run";
  /** Services that start in the box before anything else runs in it. */
  readonly services: Recipe["services"];
  /** The file that lists the folders of the workspace that were made only to mount something on them. */
  readonly notes: string;
}

export interface MountRequest {
  readonly engine: Engine;
  readonly stateDir: string;
  readonly owner: Owner;
  readonly session: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  readonly workspace: { readonly path: string; readonly uid: number; readonly gid: number };
  /** No other box lies over the workspace. */
  readonly alone: boolean;
  readonly onWarning: (text: string) => void;
}

interface MountedEnvironment {
  readonly volumes: BoxPlan["volumes"];
  /** Called after the container is gone. */
  readonly remove: () => Promise<void>;
}

/** The folder of one box's own layers; the part before the dot is the box's session. */
const layersId = (session: string): string => `${session}.env`;

/** Makes the volumes of one box: a layer of the box's own lies over what was installed, and is removed with the box. */
export async function mountEnvironment(
  environment: BoxEnvironment,
  request: MountRequest,
): Promise<MountedEnvironment> {
  const { workspace } = request;
  const shown = await mountable(environment, request);
  const folders = { remove: () => removeMountPoints(environment, workspace.path, request.alone) };
  if (environment.use === "fill")
    return { volumes: shown.map((each) => ({ ...each, writable: true as const })), ...folders };
  if (!request.engine.endpoint.host.startsWith("unix:")) return { volumes: shown, ...folders };
  const id = layersId(request.session);
  const folder = await makeBoxFolder(request.stateDir, id, request.owner);
  const made: string[] = [];
  const remove = async (): Promise<void> => {
    for (const name of made) await request.engine.api.getVolume(name).remove();
    await emptyLayers(request.engine, folder, request.labels);
    await removeBoxFolder({ path: folder, id });
    await folders.remove();
  };
  try {
    await markFinished(folder);
    const layered = await Promise.all(
      shown.map(async (each, index) => {
        const volume = await layerOver(each.volume, path.join(folder, String(index)), index, request);
        if (volume === undefined) return each;
        made.push(volume);
        return { volume, target: each.target, writable: true as const };
      }),
    );
    return { volumes: layered, remove };
  } catch (thrown) {
    await remove().catch(() => undefined);
    throw engineFailure("mounting the environment", thrown);
  }
}

/** Undefined if the engine keeps the volume in a way that nothing can lie over: then the volume is read-only. */
async function layerOver(
  volume: string,
  folder: string,
  index: number,
  { engine, workspace, image, labels, session }: MountRequest,
): Promise<string | undefined> {
  const { Mountpoint: lower } = await engine.api.getVolume(volume).inspect();
  if (/[,:\\]/.test(`${lower}${folder}`) || lower === "") return undefined;
  await mkdir(folder);
  const [upper, work] = [path.join(folder, "upper"), path.join(folder, "work")];
  await Promise.all([
    mkdir(upper, { mode: 0o755 }),
    mkdir(work),
    symlink(lower, path.join(folder, "lower")),
    noteImage(folder, image),
  ]);
  if (process.getuid?.() === 0)
    await Promise.all([upper, work].map((one) => chown(one, workspace.uid, workspace.gid)));
  return overlayVolume(engine, folder, { name: layerName(session, index), labels, lower: "lower" });
}

const layerName = (session: string, index: number): string => `harness-${session}-e${index}`;

/** The volumes as they were mounted into a box that has been frozen since. */
export const standingVolumes = (
  engine: Engine,
  { volumes }: BoxEnvironment,
  session: string,
): BoxPlan["volumes"] =>
  engine.endpoint.host.startsWith("unix:")
    ? volumes.map(({ target }, index) => ({
        volume: layerName(session, index),
        target,
        writable: true as const,
      }))
    : volumes;

/** Removes the layers of a box that this process resumed, after its container is gone. */
export async function removeStanding({
  engine,
  stateDir,
  plan,
}: Pick<MountRequest, "engine" | "stateDir"> & { readonly plan: BoxPlan }): Promise<void> {
  const session = boxOf(plan.labels)?.session ?? "";
  const own = plan.volumes.filter(({ volume }) => volume.startsWith(`harness-${session}-e`));
  for (const { volume } of own) await engine.api.getVolume(volume).remove();
  const folder = (await boxFolders(stateDir)).find(({ id }) => id === layersId(session));
  if (folder === undefined) return;
  await emptyLayers(engine, folder.path, plan.labels);
  await removeBoxFolder(folder);
}

/** Removes what root left in the layers of a box that is gone, if we are not root. */
export async function emptyLayers(
  engine: Engine,
  folder: string,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  for (let index = 0; index < MAX_LAYERS; index += 1) {
    const layer = path.join(folder, String(index));
    if ((await lstat(layer).catch(() => undefined)) === undefined) return;
    await emptyWork(engine, layer, labels);
  }
}

const MAX_LAYERS = 64;

/**
 * Variables for the commands of a box with these volumes. If the virtual environment could not be mounted, what lies in
 * its place is the repository's, and its programs must not be found before the box's own.
 */
export function environmentVariables(
  env: BoxEnvironment["env"],
  volumes: readonly { readonly target: string }[],
): BoxEnvironment["env"] {
  const { VIRTUAL_ENV: venv, PATH: found, ...others } = env;
  const isFirst = venv !== undefined && found?.startsWith(`${venv}/bin:`) === true;
  return isFirst && !volumes.some(({ target }) => target === venv) ? others : env;
}

/** Leaves out volumes that cannot be mounted at their place in the workspace. */
async function mountable(
  { volumes, notes }: BoxEnvironment,
  { workspace, onWarning }: MountRequest,
): Promise<BoxEnvironment["volumes"]> {
  const inside = volumes.filter(({ target }) => isInside(workspace.path, target));
  const made: string[] = [];
  const refused = new Set<string>();
  for (const { target } of inside) {
    const why = await mountPoint(workspace, target, made);
    if (why === undefined) continue;
    refused.add(target);
    onWarning(`${target} is not the environment's: ${why}`);
  }
  if (made.length > 0)
    await writeFile(notes, [...new Set([...(await notedFolders(notes)), ...made])].join("\n"), {
      mode: 0o600,
    });
  return volumes.filter(({ target }) => !refused.has(target));
}

/** Makes missing folders on the way, as the workspace's owner; no link is followed. Returns why it cannot, if so. */
async function mountPoint(
  { path: root, uid, gid }: MountRequest["workspace"],
  target: string,
  made: string[],
): Promise<string | undefined> {
  const parts = target.slice(root.length + 1).split("/");
  let at = root;
  try {
    for (const part of parts) {
      at = path.join(at, part);
      const stats = await lstat(at).catch((thrown: unknown) => {
        if (errorCode(thrown) !== "ENOENT") throw thrown;
        return undefined;
      });
      if (stats?.isDirectory() === true) continue;
      if (stats !== undefined) return `${at} is not a folder`;
      await mkdir(at, { mode: 0o755 });
      // The owner may have put a link there by now: only the entry itself changes its owner, not the link's target.
      if (process.getuid?.() === 0) await lchown(at, uid, gid);
      made.push(at);
    }
    return undefined;
  } catch (thrown) {
    return reasonOf(thrown);
  }
}

const notedFolders = async (notes: string): Promise<readonly string[]> =>
  (await readFile(notes, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");

/** Removes empty folders that were made as mount points, once nobody else can have mounted something on them. */
async function removeMountPoints(
  { notes }: Pick<BoxEnvironment, "notes">,
  root: string,
  alone: boolean,
): Promise<void> {
  if (!alone) return;
  for (const folder of [...(await notedFolders(notes))].toReversed())
    if (isInside(root, folder)) await rmdir(folder).catch(() => undefined);
}

/** For an environment that is removed. */
export const forgetMountPoints = async (notes: string, root: string): Promise<void> =>
  removeMountPoints({ notes }, root, true);

/** Leaves out protected paths below these folders: mounts cover the host's folders, so the box does not see them. */
export function outsideOf(targets: readonly string[], paths: readonly string[]): readonly string[] {
  return paths.filter((file) => !targets.some((target) => isInside(target, file)));
}
