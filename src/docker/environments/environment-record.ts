/**
 * What is stored of an environment. `<state>/environments/<id>/` is one environment of one workspace: `record` once it is complete, `building` while it
 * is made, `log` of the last build, `points` (folders made only to mount on them), `lock`.
 */

import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { packageForm } from "../../core/run-record.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { recipeSchema } from "./recipe.ts";

const volumeMount = z.strictObject({ volume: z.string(), target: z.string() });

const commonFields = {
  form: z.literal(1),
  id: z.string(),
  workspace: z.string(),
  /** The user's name of the recipe; empty for the workspace's own recipe. */
  name: z.string(),
  key: z.string(),
  /** The image of the system layer; null: the sandbox image as it is. */
  image: z.string().nullable(),
  volumes: z.array(volumeMount),
};

const recordForm = z.strictObject({
  ...commonFields,
  recipe: recipeSchema,
  /** The file of the recipe, by its name at that time; empty if the recipe was detected. */
  file: z.string(),
  versions: z.array(z.string()),
  /** Set-up commands that failed while other projects of the workspace were set up. */
  failed: z.array(z.string()).min(1).exactOptional(),
  /** The installed packages; of very many only the first ones, with their total. Null if unknown. */
  installed: z
    .strictObject({
      total: z.int(),
      new: z.int(),
      packages: z.array(packageForm),
      programs: z.array(z.string()).exactOptional(),
      incomplete: z.literal(true).exactOptional(),
    })
    .nullable()
    .default(null),
  made: z.string(),
  seconds: z.number(),
  /** Where boxes that are pods get the environment from; null: not pushed since it was made. */
  pushed: z
    .strictObject({
      /** A repository of a registry, without a tag. */
      registry: z.string(),
      tag: z.string(),
      digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
      at: z.string(),
      /** The base images in its key, and the sandbox image at that time: with pods, no engine is asked for them. */
      bases: z.strictObject({ base: z.string(), stages: z.array(z.string()) }),
      sandbox: z.string(),
      arch: z.string(),
    })
    .nullable()
    .default(null),
});
const buildingForm = z.strictObject({ ...commonFields, steps: z.number().int() });

export type EnvironmentRecord = z.output<typeof recordForm>;
export type BuildingRecord = z.output<typeof buildingForm>;

export interface EnvironmentFiles {
  readonly id: string;
  readonly folder: string;
  readonly log: string;
  readonly points: string;
  readonly lock: string;
}

const environmentsIn = (stateDir: string): string => path.join(stateDir, "environments");

/** `workspace` is a real path. */
export function filesOf(stateDir: string, workspace: string, name: string): EnvironmentFiles {
  const id = createHash("sha256").update(`${workspace}\0${name}`).digest("hex").slice(0, 12);
  return environmentFiles(stateDir, id);
}

function environmentFiles(stateDir: string, id: string): EnvironmentFiles {
  const folder = path.join(environmentsIn(stateDir), id);
  const inside = (name: string): string => path.join(folder, name);
  return { id, folder, log: inside("log"), points: inside("points"), lock: inside("lock") };
}

/** Reads a record from elsewhere; throws if it is none. */
export const recordFrom = (value: unknown): EnvironmentRecord => recordForm.parse(value);

/** Undefined if there is no record, or if it cannot be read: then the environment is built anew. */
export const readRecord = ({ folder }: EnvironmentFiles): Promise<EnvironmentRecord | undefined> =>
  readForm(path.join(folder, "record"), recordForm);
export const readBuilding = ({ folder }: EnvironmentFiles): Promise<BuildingRecord | undefined> =>
  readForm(path.join(folder, "building"), buildingForm);

async function readForm<T>(file: string, form: z.ZodType<T>): Promise<T | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return form.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export const noteBuilding = ({ folder }: EnvironmentFiles, building: BuildingRecord): Promise<void> =>
  replaceFile(path.join(folder, "building"), JSON.stringify(building), { lasts: "content" });

/** From here on boxes start from the environment. */
export async function finishRecord(files: EnvironmentFiles, record: EnvironmentRecord): Promise<void> {
  await replaceFile(path.join(files.folder, "record"), JSON.stringify(record), { lasts: "name" });
  await rm(path.join(files.folder, "building"), { force: true });
}

export const forgetEnvironment = ({ folder }: EnvironmentFiles): Promise<void> =>
  rm(folder, { recursive: true, force: true });

/** All environments of this state folder, unfinished ones too. */
export async function environmentFolders(stateDir: string): Promise<readonly EnvironmentFiles[]> {
  const names = await readdir(environmentsIn(stateDir)).catch(() => []);
  return names.filter((name) => /^[0-9a-f]{12}$/.test(name)).map((id) => environmentFiles(stateDir, id));
}
