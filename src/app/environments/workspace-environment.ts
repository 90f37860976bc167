import { realpath } from "node:fs/promises";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { boxImage } from "../../docker/box/box-image.ts";
import type { Engine } from "../../docker/engine.ts";
import type { BoxEnvironment } from "../../docker/environments/environment-mounts.ts";
import { type EnvironmentRecord, filesOf, readRecord } from "../../docker/environments/environment-record.ts";
import { type Bases, environmentKey } from "../../docker/environments/recipe.ts";
import { imageIsThere, volumesOf } from "../../docker/environments/environment-store.ts";
import { toolVariables } from "../../docker/environments/tool-variables.ts";
import { type ChosenRecipe, chooseRecipe } from "./environment-recipe.ts";
import { type Host, packageRoot } from "../host.ts";

/** By this name boxes start from the plain image. */
const NO_ENVIRONMENT = "none";

interface Wanted {
  readonly host: Host;
  readonly settings: Pick<Settings, "env" | "image" | "allow_domains" | "min_release_age">;
  readonly workspace: string;
  readonly warn: (text: string) => void;
}

/**
 * What a box of this workspace starts from: the environment that was built for it. One that is older than the project's
 * files is used, and said, since the project's own tools tell what it lacks; one that is damaged is not.
 */
export async function environmentFor(engine: Engine, wanted: Wanted): Promise<BoxEnvironment | undefined> {
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
  const [lacks, stale] = await Promise.all([lackOf(engine, record), staleness(engine, wanted, record)]);
  if (lacks !== undefined) {
    warn(`the environment of this workspace is not used: ${lacks}. Make it anew: ${buildCommand(name)}`);
    return undefined;
  }
  if (stale !== undefined)
    warn(`${stale}, so the environment is an older one. Renew it: ${buildCommand(name)}`);
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

export const buildCommand = (name: string | null): string =>
  name === null ? "harness env build" : `harness env build --env ${name}`;

const notBuilt = (name: string): HarnessError =>
  new HarnessError(EXIT.usage, `the environment ${name} is not built for this workspace`, buildCommand(name));

/** An engine would make an empty volume of a name that it does not know. */
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
    return `the engine has no volume for ${gone.map(({ target }) => target).join(", ")} any more`;
  return isThere ? undefined : "the engine does not have its image any more";
}

/** What changed since it was built; undefined where nothing did. */
async function staleness(
  engine: Engine,
  { host, workspace, settings }: Wanted,
  record: EnvironmentRecord,
): Promise<string | undefined> {
  try {
    const chosen = await chooseRecipe(host, workspace, settings.env);
    const { key } = await keyOf(engine, chosen);
    if (key === record.key) return undefined;
    if (JSON.stringify(chosen.recipe) !== JSON.stringify(record.recipe))
      return "what the project needs has changed since";
    return "lock files or the sandbox image have changed since";
  } catch (thrown) {
    return `its recipe cannot be read (${reasonOf(thrown)})`;
  }
}

/** With the images that the system layer and its stages are made of. */
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
