import { lstat, realpath } from "node:fs/promises";
import type { Settings } from "../../config/settings-schema.ts";
import { reasonOf } from "../../core/errors.ts";
import { type Bases, environmentKey, type Recipe } from "../../docker/environments/recipe.ts";
import {
  type EnvironmentFiles,
  type EnvironmentRecord,
  filesOf,
  finishRecord,
  readRecord,
} from "../../docker/environments/environment-record.ts";
import { podImage, removePodImages, volumeFolder } from "../../docker/environments/environment-store.ts";
import { toolVariables } from "../../docker/environments/tool-variables.ts";
import { imageTag, readImageInputs } from "../../docker/image-inputs.ts";
import { type Host, packageRoot } from "../host.ts";
import {
  buildCommand,
  chooseRecipe,
  type EnvironmentNote,
  NO_ENVIRONMENT,
  notBuilt,
} from "./workspace-environment.ts";
import { ownerLabels, thisProcess } from "../../boxes/box-record.ts";
import { podUserOf } from "../../boxes/workspace/box-workspace.ts";
import { boxImage, wantedImage } from "../../docker/box-image.ts";
import type { Engine } from "../../docker/engine.ts";
import { isInRegistry, pushImage, registryLogin } from "../../docker/push-image.ts";

/** What a pod gets from the environment that was built for its folder. No engine is asked. */
interface PodEnvironment {
  /** Named by its digest. */
  readonly image: string;
  readonly brought: readonly { readonly from: string; readonly to: string }[];
  readonly env: Readonly<Record<string, string>>;
  readonly services: Recipe["services"];
}

interface PodEnvironmentRequest {
  readonly host: Host;
  readonly settings: Pick<Settings, "env" | "image" | "allow_domains" | "min_release_age" | "kubernetes">;
  readonly workspace: string;
  readonly warn: (text: string) => void;
}

export const NAME_REGISTRY =
  'harness config set kubernetes \'{"registry": "REGISTRY/harness-env", …}\', then: harness env build';

/** The image that pods start from; undefined if it is in no registry. */
export const pushedImage = (record: Pick<EnvironmentRecord, "pushed"> | undefined): string | undefined =>
  record?.pushed ? `${record.pushed.registry}@${record.pushed.digest}` : undefined;

/** Undefined: use the image of the settings. */
export async function podEnvironmentFor(wanted: PodEnvironmentRequest): Promise<PodEnvironment | undefined> {
  const { host, settings, warn } = wanted;
  const { env: name, image: own, min_release_age: minAge } = settings;
  if (name === NO_ENVIRONMENT || own !== null) return undefined;
  const workspace = await realpath(wanted.workspace).catch(() => wanted.workspace);
  const record = await readRecord(filesOf(host.places.state, workspace, name ?? ""));
  if (record === undefined) {
    if (name !== null) throw notBuilt(name);
    return undefined;
  }
  const note = await podNoteOn({ ...wanted, workspace }, record);
  if (note !== undefined) warn(note.text);
  const image = pushedImage(record);
  if (note?.usable === false || image === undefined) return undefined;
  return {
    image,
    brought: record.volumes.map(({ target }, at) => ({ from: volumeFolder(at), to: target })),
    env: toolVariables(record.recipe, { workspace, granted: settings.allow_domains.length > 0, minAge }),
    services: record.recipe.services,
  };
}

const unusable = (why: string, next: string): EnvironmentNote => ({
  usable: false,
  text: `the environment of this workspace is not used: ${why}. ${next}`,
});

/** The note on a built environment when boxes are pods; undefined if pods get it in the project's current form. */
export async function podNoteOn(
  wanted: Omit<PodEnvironmentRequest, "warn">,
  record: EnvironmentRecord,
): Promise<EnvironmentNote | undefined> {
  const { registry } = wanted.settings.kubernetes;
  const { pushed } = record;
  const build = buildCommand(wanted.settings.env);
  if (registry === null)
    return unusable("pods get environments from a registry, and none is set", `Set one: ${NAME_REGISTRY}`);
  if (pushed === null) return unusable(`it was not pushed to ${registry}`, `Push it: ${build}`);
  if (pushed.registry !== registry)
    return unusable(
      `it was pushed to ${pushed.registry}, and pods pull it from ${registry}`,
      `Push it: ${build}`,
    );
  const now = await changedSince(wanted, record, pushed);
  if (now === undefined) return undefined;
  return { usable: true, text: `${now}, so the environment is out of date. Rebuild it: ${build}` };
}

/** Of the images it was made of, only a changed sandbox image can be noticed without an engine. */
async function changedSince(
  { host, workspace, settings }: Omit<PodEnvironmentRequest, "warn">,
  record: EnvironmentRecord,
  { bases, sandbox, arch }: NonNullable<EnvironmentRecord["pushed"]>,
): Promise<string | undefined> {
  try {
    const { recipe, files } = await chooseRecipe(host, workspace, settings.env);
    if (JSON.stringify(recipe) !== JSON.stringify(record.recipe))
      return "what the project needs has changed since it was built";
    const key = environmentKey({ ...bases, recipe, files });
    const isSame = key === record.key && sandbox === imageTag(await readImageInputs(packageRoot, arch));
    return isSame ? undefined : "lock files or an image that it is built from have changed since";
  } catch (thrown) {
    return `its recipe cannot be read (${reasonOf(thrown)})`;
  }
}

/** Environments in a registry, from which pods get them. */
interface Pushing {
  readonly host: Host;
  /** A real path. */
  readonly workspace: string;
  readonly engine: Engine;
  readonly files: EnvironmentFiles;
  readonly record: EnvironmentRecord;
  readonly bases: Bases;
  /** A repository, without a tag. */
  readonly registry: string;
  readonly onLine: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface PushedEnvironment {
  readonly record: EnvironmentRecord;
  /** The image that pods start from. */
  readonly image: string;
  /** `kept`: the registry already has it from an earlier push. */
  readonly how: "kept" | "pushed";
  /** How many layers were sent. */
  readonly moved: number;
}

/** Pushes a built environment to the registry, unless it is already there, and notes that in the record. */
export async function pushEnvironment(pushing: Pushing): Promise<PushedEnvironment> {
  const { host, workspace, engine, files, record, bases, registry, onLine, signal } = pushing;
  const login = await registryLogin({ env: host.env, repository: registry, apart: workspace, signal });
  const before = record.pushed?.registry === registry ? pushedImage(record) : undefined;
  if (before !== undefined && (await isInRegistry(engine, { image: before, repository: registry, login })))
    return { record, image: before, how: "kept", moved: 0 };
  const [{ id: sandbox }, { tag: sandboxTag }, owner, stats] = await Promise.all([
    boxImage(engine, packageRoot, null),
    wantedImage(engine, packageRoot),
    thisProcess(),
    lstat(workspace),
  ]);
  const image = await podImage({
    engine,
    record,
    sandbox,
    lacksRunner: record.recipe.image !== null,
    owner: podUserOf(stats),
    labels: ownerLabels(host.uid, owner),
    signal,
  });
  const tag = `${record.key}-${record.id}`;
  const { digest, moved } = await pushImage(engine, {
    image,
    repository: registry,
    tag,
    login,
    onLine,
    signal,
  });
  const at = new Date().toISOString();
  const { arch } = engine.version;
  const { base, stages } = bases;
  const pushed = {
    registry,
    tag,
    digest,
    at,
    bases: { base, stages: [...stages] },
    sandbox: sandboxTag,
    arch,
  };
  const now = { ...record, pushed };
  await finishRecord(files, now);
  await removePodImages(engine, record.id);
  return { record: now, image: pushedImage(now) ?? "", how: "pushed", moved };
}
