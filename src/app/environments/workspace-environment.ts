import { realpath } from "node:fs/promises";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { AbsentImage, boxImage } from "../../docker/box-image.ts";
import type { Engine } from "../../docker/engine.ts";
import type { BoxEnvironment } from "../../docker/environments/environment-mounts.ts";
import {
  type Bases,
  environmentKey,
  type EnvironmentRecord,
  filesOf,
  readRecord,
} from "../../docker/environments/recipe.ts";
import { imageIsThere, volumesOf } from "../../docker/environments/environment-store.ts";
import { toolVariables } from "../../docker/environments/tool-variables.ts";
import { type ChosenRecipe, chooseRecipe } from "./environment-recipe.ts";
import { type Host, packageRoot } from "../host.ts";

/** With this name, boxes start from the plain image. */
export const NO_ENVIRONMENT = "none";

interface EnvironmentRequest {
  readonly host: Host;
  readonly settings: Pick<Settings, "env" | "image" | "allow_domains" | "min_release_age">;
  readonly workspace: string;
  readonly warn: (text: string) => void;
}

/**
 * The environment that was built for this workspace, for its boxes to start from. An environment older than the
 * project's files is used with a warning, since the project's own tools report what it lacks; a damaged one is not
 * used.
 */
export async function environmentFor(
  engine: Engine,
  wanted: EnvironmentRequest,
): Promise<BoxEnvironment | undefined> {
  const { host, settings, warn } = wanted;
  const { env: name, image, allow_domains } = settings;
  if (name === NO_ENVIRONMENT || image !== null) return undefined;
  const workspace = await realpath(wanted.workspace).catch(() => wanted.workspace);
  const files = filesOf(host.places.state, workspace, name ?? "");
  const record = await readRecord(files);
  if (record === undefined) {
    if (name !== null) throw notBuilt(name);
    return undefined;
  }
  const note = await noteOn(engine, wanted, record);
  if (note !== undefined) warn(note.text);
  if (note?.usable === false) return undefined;
  const granted = allow_domains.length > 0;
  return {
    image: record.image,
    volumes: record.volumes,
    env: toolVariables(record.recipe, { workspace, granted, minAge: settings.min_release_age }),
    use: "run",
    services: record.recipe.services,
    notes: files.points,
  };
}

/** The command to build an environment that the project needs but does not have; undefined if its needs are unknown. */
export async function unbuiltEnvironment({
  host,
  settings,
  workspace: given,
}: {
  readonly host: Host;
  readonly settings: Pick<Settings, "env" | "image">;
  readonly workspace: string;
}): Promise<string | undefined> {
  if (settings.env !== null || settings.image !== null) return undefined;
  const workspace = await realpath(given).catch(() => given);
  if ((await readRecord(filesOf(host.places.state, workspace, ""))) !== undefined) return undefined;
  const chosen = await chooseRecipe(host, workspace, null).catch(() => undefined);
  const { toolchains = {}, setup = [], image = null } = chosen?.recipe ?? {};
  const isEmpty = Object.keys(toolchains).length + setup.length === 0 && image === null;
  return isEmpty ? undefined : `\`${buildCommand(null)}\` installs what the project needs.`;
}

export const buildCommand = (name: string | null): string =>
  name === null ? "harness env build" : `harness env build --env ${name}`;

export const notBuilt = (name: string): HarnessError =>
  new HarnessError(EXIT.usage, `the environment ${name} is not built for this workspace`, buildCommand(name));

export interface EnvironmentNote {
  readonly usable: boolean;
  /** Includes the command to type. */
  readonly text: string;
}

type WorkspaceContext = Pick<EnvironmentRequest, "host" | "workspace" | "settings">;

/** The note on a built environment; undefined if it is complete and matches what the project says now. */
export async function noteOn(
  engine: Engine,
  wanted: WorkspaceContext,
  record: EnvironmentRecord,
): Promise<EnvironmentNote | undefined> {
  const [lacks, now] = await Promise.all([lackOf(engine, record), changedSince(engine, wanted, record)]);
  const build = buildCommand(wanted.settings.env);
  const absent = now instanceof AbsentImage ? now : undefined;
  const next = absent === undefined ? build : `${absent.remedy}, then: ${build}`;
  const gone = `the image ${absent?.image}, from which it is built, is no longer on this engine`;
  if (lacks !== undefined) {
    const why = absent === undefined ? lacks : `${lacks}, and ${gone}`;
    const text = `the environment of this workspace is not used: ${why}. Rebuild it: ${next}`;
    return { usable: false, text };
  }
  if (absent !== undefined)
    return {
      usable: true,
      text: `${gone}, so the environment stays as it was built. To rebuild it: ${next}`,
    };
  if (typeof now !== "string") return undefined;
  return { usable: true, text: `${now}, so the environment is out of date. Rebuild it: ${next}` };
}

/**
 * What the environment lacks. Checked before use, because an engine would create an empty volume for an unknown name.
 */
export async function lackOf(
  engine: Engine,
  { id, image, volumes }: Pick<EnvironmentRecord, "id" | "image" | "volumes">,
): Promise<string | undefined> {
  const [there, isThere] = await Promise.all([
    volumesOf(engine, id),
    image === null ? true : imageIsThere(engine, image),
  ]);
  const gone = volumes.filter(({ volume }) => !there.has(volume));
  if (gone.length > 0)
    return `the engine no longer has a volume for ${gone.map(({ target }) => target).join(", ")}`;
  return isThere ? undefined : "the engine no longer has the image that boxes start from";
}

/**
 * What changed since the build, or the image that the recipe names and the engine no longer has; undefined for neither.
 */
async function changedSince(
  engine: Engine,
  { host, workspace, settings }: WorkspaceContext,
  record: EnvironmentRecord,
): Promise<string | AbsentImage | undefined> {
  try {
    const chosen = await chooseRecipe(host, workspace, settings.env);
    if (JSON.stringify(chosen.recipe) !== JSON.stringify(record.recipe))
      return "what the project needs has changed since it was built";
    const { key } = await keyOf(engine, chosen);
    return key === record.key ? undefined : "lock files or an image that it is built from have changed since";
  } catch (thrown) {
    return thrown instanceof AbsentImage ? thrown : `its recipe cannot be read (${reasonOf(thrown)})`;
  }
}

/** The key of the environment, with the images that the system layer and its stages are made of. */
export async function keyOf(
  engine: Engine,
  { recipe, files }: Pick<ChosenRecipe, "recipe" | "files">,
): Promise<{ readonly key: string; readonly bases: Bases }> {
  const { id: base } = await boxImage(engine, packageRoot, recipe.image);
  const stages: string[] = [];
  for (const { image } of recipe.stages) stages.push((await boxImage(engine, packageRoot, image)).id);
  const bases = { base, stages };
  return { key: environmentKey({ ...bases, recipe, files }), bases };
}
