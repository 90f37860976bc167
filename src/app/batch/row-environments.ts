import { readFile, realpath } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { parseGitConfig } from "../../boxes/workspace/git-directory.ts";
import { findRepository } from "../../boxes/workspace/git-repository.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import {
  environmentFolders,
  type EnvironmentRecord,
  filesOf,
  finishRecord,
  readRecord,
  recordFrom,
} from "../../docker/environments/recipe.ts";
import { inRanges } from "../../kubernetes/batch-cluster.ts";
import { ENVIRONMENTS_FILE, noTreeAt, type RowEnvironment } from "../../kubernetes/batch-trees.ts";
import { makeFolder } from "../../platform/folders.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { recipeFile } from "../environments/environment-recipe.ts";
import { podNoteOn } from "../environments/pod-environment.ts";
import { buildCommand, NO_ENVIRONMENT } from "../environments/workspace-environment.ts";
import type { Host } from "../host.ts";

/**
 * Environments of rows that run in a cluster. Each was built for a folder of this machine whose `origin` is the row's
 * repository, and then pushed. A loop gets the environment's record and uses it as a local run would.
 */
export interface RowEnvironments {
  /** What the row's box starts from, why it cannot, or undefined if it has the image of the settings. */
  readonly of: (repository: URL, name: string | null) => Promise<RowEnvironment | string | undefined>;
}

interface RowEnvironmentParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly warn: (text: string) => void;
}

const OR_NONE = 'or, to use the image from the settings: "env": "none"';

export function rowEnvironments({ host, settings, warn }: RowEnvironmentParts): RowEnvironments {
  let reading: Promise<readonly Built[]> | undefined;
  const looked = new Map<string, Promise<RowEnvironment | string>>();
  return {
    of: async (repository, name) => {
      if (name === NO_ENVIRONMENT) return undefined;
      if (settings.image !== null)
        return name === null
          ? undefined
          : `the environment ${visibleLine(name)} and an image (--image, the setting) are both named: leave one of them out`;
      reading ??= builtEnvironments(host);
      const all = (await reading).filter(
        ({ record, origin }) => record.name === (name ?? "") && origin === repositoryName(repository.href),
      );
      const [one] = all;
      if (one === undefined) return name === null ? undefined : noneOf(repository, name);
      const folders = all.map(({ record }) => visibleLine(record.workspace));
      if (all.length > 1)
        return `${folders.length} folders with this repository as their origin have an environment, so it is unclear which one to use: ${folders.join(", ")}; next: remove the others with harness env rm FOLDER; ${OR_NONE}`;
      const { workspace } = one.record;
      const known =
        looked.get(workspace) ?? usable({ host, settings: { ...settings, env: name } }, one, warn);
      looked.set(workspace, known);
      return known;
    },
  };
}

const noneOf = (repository: URL, name: string): string =>
  `no folder whose origin is ${visibleLine(repository.href)} has the environment ${visibleLine(name)}; next, in a clone of it with kubernetes.registry set: ${buildCommand(name)}; ${OR_NONE}`;

async function usable(
  { host, settings }: Pick<RowEnvironmentParts, "host" | "settings">,
  { record }: Built,
  warn: (text: string) => void,
): Promise<RowEnvironment | string> {
  const { workspace } = record;
  const folder = visibleLine(workspace);
  const why = noTreeAt(workspace);
  if (why !== undefined)
    return `its environment was built for ${folder}, and a pod cannot have its clone there: ${why}; next: build it for a clone elsewhere, such as ~/NAME; ${OR_NONE}`;
  const note = await podNoteOn({ host, settings, workspace }, record);
  if (note?.usable === false) return `${folder}: ${note.text}; ${OR_NONE}`;
  if (note !== undefined) warn(`rows of ${folder}: ${note.text}`);
  return { workspace, told: { ...record, installed: null } };
}

interface Built {
  readonly record: EnvironmentRecord;
  readonly origin: string;
}

/** Environments of whole git repositories; unreadable ones are skipped. */
async function builtEnvironments({ places, uid }: Host): Promise<readonly Built[]> {
  const found = await Promise.all(
    (await environmentFolders(places.state)).map(async (files) => {
      const record = await readRecord(files);
      const origin = record === undefined ? undefined : await originOf(record.workspace, uid);
      return record === undefined || origin === undefined ? [] : [{ record, origin }];
    }),
  );
  return found.flat();
}

async function originOf(workspace: string, uid: number): Promise<string | undefined> {
  const found = await findRepository({ workspace, top: workspace, uid }, workspace).catch(() => undefined);
  const entries = found?.config.flatMap((text) => parseGitConfig(text) ?? []) ?? [];
  const url = entries.findLast(({ key }) => key === "remote.origin.url")?.value;
  return url === undefined || url === null ? undefined : repositoryName(url);
}

/** Host and path of a repository, whichever way it is reached: https, ssh, `git@HOST:OWNER/NAME`. */
export function repositoryName(address: string): string | undefined {
  const [, short, at] = /^(?:[\w.-]+@)?([\w.-]+):(?!\/\/)(.+)$/.exec(address) ?? [];
  const url = URL.parse(short === undefined ? address : `ssh://${short}/${at}`);
  if (url === null || url.host === "") return undefined;
  const host = url.protocol === "https:" ? url.host : url.hostname;
  const name = url.pathname.replaceAll(/\/{2,}/g, "/").replace(/\/$/, "");
  return `${host.toLowerCase()}${name.replace(/\.git$/, "")}`;
}

const environmentsForm = z.array(z.strictObject({ rows: z.string(), environment: z.unknown() }));

/** The Job's record of what this row's box starts from; undefined: the image of the settings. */
export async function environmentOfRow(
  folder: string,
  index: number,
): Promise<EnvironmentRecord | undefined> {
  const file = path.join(folder, ENVIRONMENTS_FILE);
  const text = await readFile(file, "utf8").catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw damaged(file, thrown);
  });
  if (text === undefined) return undefined;
  try {
    const told = environmentsForm.parse(JSON.parse(text)).find(({ rows }) => inRanges(rows, index));
    return told === undefined ? undefined : recordFrom(told.environment);
  } catch (thrown) {
    throw damaged(file, thrown);
  }
}

const damaged = (file: string, thrown: unknown): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${file} cannot be read: ${reasonOf(thrown)}`,
    "use a loop image of the version that created the batch",
    thrown,
  );

/**
 * A loop has no settings of the user's: an environment that was the project's own, or detected, gets this name there.
 */
const ROW_ENVIRONMENT = "of-this-row";

/** Lets the run of the row find the environment built, as on this machine; returns the name to ask for. */
export async function provideEnvironment(host: Host, record: EnvironmentRecord): Promise<string> {
  const { workspace } = record;
  const real = await realpath(workspace).catch(reasonOf);
  if (real !== workspace)
    throw new HarnessError(
      EXIT.usage,
      `the clone is at ${real}, not at ${workspace}, where its environment was built`,
      "use a loop image without a symbolic link on that path",
    );
  const name = record.name === "" ? ROW_ENVIRONMENT : record.name;
  const files = filesOf(host.places.state, workspace, name);
  makeFolder(files.folder);
  await finishRecord(files, { ...record, id: files.id, name });
  const recipe = recipeFile(host, name);
  makeFolder(path.dirname(recipe));
  await replaceFile(recipe, JSON.stringify(record.recipe), { lasts: "content" });
  return name;
}
