import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { AbsentImage, boxImage } from "../../docker/box-image.ts";
import type { Engine } from "../../docker/engine.ts";
import type { BoxEnvironment } from "../../docker/environments/environment-mounts.ts";
import {
  addedTo,
  type Bases,
  environmentKey,
  type FoundRecipe,
  readRecipe,
} from "../../docker/environments/recipe.ts";
import { type EnvironmentRecord, filesOf, readRecord } from "../../docker/environments/environment-record.ts";
import { volumesOf } from "../../docker/environments/environment-store.ts";
import { isImageThere } from "../../docker/image-progress.ts";
import { toolVariables } from "../../docker/environments/tool-variables.ts";
import { type Host, packageRoot } from "../host.ts";
import { detectRecipe, type ProjectFile, projectFiles } from "../../docker/environments/detect-recipe.ts";
import { registriesUsed } from "../../docker/environments/system-steps.ts";
import { firstOf } from "../../core/wording.ts";
import { emptySubmodules, lfsPointers } from "../../docker/environments/unserved.ts";
import { readRegular } from "../../platform/safe-files.ts";
import { trustedFile } from "../project/project-trust.ts";
import { type Context, type ContextFile, readContext } from "../../docker/environments/context-files.ts";
import { buildOf, readDevcontainer } from "../../docker/environments/devcontainer.ts";
import type { BroughtFile } from "../../extensions/brought.ts";
import { utf8In } from "../../core/raw-data.ts";

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
  workspace: folder,
}: {
  readonly host: Host;
  readonly settings: Pick<Settings, "env" | "image">;
  readonly workspace: string;
}): Promise<string | undefined> {
  if (settings.env !== null || settings.image !== null) return undefined;
  const workspace = await realpath(folder).catch(() => folder);
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
  const [lacks, now] = await Promise.all([missingPart(engine, record), changedSince(engine, wanted, record)]);
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
  if (typeof now !== "string")
    return record.failed === undefined ? undefined : partialNote(record.failed, build);
  return { usable: true, text: `${now}, so the environment is out of date. Rebuild it: ${next}` };
}

const partialNote = (failed: readonly string[], build: string): EnvironmentNote => ({
  usable: true,
  text: `the environment lacks what failed to install (${firstOf(failed, 3, (step) => step)}). Build it again: ${build}`,
});

/**
 * What the environment lacks. Checked before use, because an engine would create an empty volume for an unknown name.
 */
export async function missingPart(
  engine: Engine,
  { id, image, volumes }: Pick<EnvironmentRecord, "id" | "image" | "volumes">,
): Promise<string | undefined> {
  const [there, isThere] = await Promise.all([
    volumesOf(engine, id),
    image === null ? true : isImageThere(engine.api, image),
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

/** The recipe of a workspace: one that the user named, a trusted file of the project, or what its files imply. */
export interface ChosenRecipe extends FoundRecipe {
  readonly kind: "named" | "project" | "devcontainer" | "detected";
  /** The recipe's file; empty if the recipe is detected. */
  readonly file: string;
  /** The project's top folder; paths of files in a recipe are relative to it. */
  readonly top: string;
  readonly files: readonly ProjectFile[];
  /** Recipes that would take precedence but do not count, each with what would make it count. */
  readonly ignored: readonly string[];
}

/** Path of the user's recipe of this name. */
export const recipeFile = ({ places }: Host, name: string): string =>
  path.join(path.dirname(places.configFiles[0]), "environments", `${name}.json`);

export async function chooseRecipe(
  host: Host,
  workspace: string,
  name: string | null,
): Promise<ChosenRecipe> {
  const [{ files, more }, empty, pointers] = await Promise.all([
    projectFiles(workspace),
    emptySubmodules(workspace),
    lfsPointers(workspace),
  ]);
  const ignored: string[] = [
    ...(more
      ? ["not all folders were searched; to name what the project needs, write a recipe: .harness/env.json"]
      : []),
    ...(empty.length === 0
      ? []
      : [`empty submodules of git: ${firstOf(empty, 5)}. To fill them: git submodule update --init`]),
    ...(pointers.length === 0
      ? []
      : [
          `pointers of git-lfs instead of files: ${firstOf(pointers, 5, (file) => file)}. To get the files: git lfs pull`,
        ]),
  ];
  const detected = (): FoundRecipe => detectRecipe(files);
  if (name !== null) return { ...(await namedRecipe(host, name, detected)), top: workspace, files, ignored };
  for (const kind of ["environment", "devcontainer"] as const) {
    const found = await trustedFile(host, workspace, kind);
    if (found.state === "untrusted") ignored.push(`${found.file} is ignored: ${found.why}: harness trust`);
    if (found.state !== "trusted") continue;
    const read =
      kind === "environment"
        ? recipeFromFile(found.file, found.text, detected)
        : withDetected(
            devcontainer(await readContainer(found.top, found.files, path.basename(found.file))),
            detected(),
          );
    const about = {
      kind: kind === "environment" ? "project" : kind,
      file: found.file,
      top: found.top,
    } as const;
    return { ...read, ...about, files, ignored };
  }
  return { ...detected(), kind: "detected", file: "", top: workspace, files, ignored };
}

async function namedRecipe(
  host: Host,
  name: string,
  detected: () => FoundRecipe,
): Promise<FoundRecipe & Pick<ChosenRecipe, "kind" | "file">> {
  if (!/^[a-z0-9][\w.-]{0,63}$/i.test(name))
    throw new HarnessError(
      EXIT.usage,
      `${JSON.stringify(name)} is not a valid environment name`,
      "harness env show",
    );
  const file = recipeFile(host, name);
  const text = await readRegular(file, { links: "follow", max: MAX_BYTES }).catch((thrown: unknown) => {
    const why = errorCode(thrown) === "ENOENT" ? "there is no such file" : reasonOf(thrown);
    throw new HarnessError(
      EXIT.usage,
      `no environment ${name}: ${file}: ${why}`,
      "docs/environments.md shows a recipe",
      thrown,
    );
  });
  return { ...recipeFromFile(file, text.toString("utf8"), detected), kind: "named", file };
}

const MAX_BYTES = 2 ** 20;

/**
 * A dev container does not say where its commands put dependencies or which registries they use: the project's files
 * do.
 */
function withDetected(read: FoundRecipe, detected: FoundRecipe): FoundRecipe {
  if (read.recipe.setup.length === 0) return read;
  const { folders } = detected.recipe;
  const registries = [...new Set([...detected.recipe.registries, ...registriesUsed(read.recipe.setup)])];
  return {
    ...read,
    recipe: { ...read.recipe, folders: [...folders], registries },
    taken: [
      ...read.taken,
      ...folders.map((folder) => ({ what: `kept in a volume: ${folder}`, from: "the project's files" })),
      ...registries.map((name) => ({
        what: `registry: ${name}`,
        from: "the project's files and its commands",
      })),
    ],
  };
}

function devcontainer(read: FoundRecipe | string): FoundRecipe {
  if (typeof read !== "string") return read;
  throw new HarnessError(EXIT.usage, read, "fix it there, then: harness trust");
}

function recipeFromFile(file: string, text: string, detected: () => FoundRecipe): FoundRecipe {
  const recipe = requireRecipe(file, readRecipe(parsed(file, text)));
  if (recipe.detected === true) {
    const whole = addedTo(detected(), recipe, file);
    return { ...whole, recipe: requireRecipe(file, readRecipe(whole.recipe)) };
  }
  return {
    recipe,
    taken: [{ what: "the whole recipe", from: file }],
    notTaken: [],
  };
}

function requireRecipe(file: string, read: ReturnType<typeof readRecipe>): FoundRecipe["recipe"] {
  if (!Array.isArray(read)) return read as FoundRecipe["recipe"];
  throw new HarnessError(EXIT.usage, `${file}: ${read.join("; ")}`, "docs/environments.md lists every key");
}

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `${file}: ${reasonOf(thrown)}`, "fix it there", thrown);
  }
}

/**
 * Files that a dev container's Dockerfile takes from its build context: they are part of what is trusted, and of the
 * recipe.
 */
async function contextOf(top: string, [main, dockerfile]: readonly BroughtFile[]): Promise<Context> {
  if (main === undefined || dockerfile === undefined) return new Map();
  const build = buildOf(main.text, dockerfile.text);
  const folder = path.posix.join(path.posix.dirname(main.path), build.context);
  if (folder === ".." || folder.startsWith("../") || path.isAbsolute(build.context))
    return new Map(build.sources.map((source) => [source, "its context is outside the project"]));
  const place = { top, folder: folder === "." ? "" : folder.replace(/\/$/, ""), dockerfile: dockerfile.path };
  return readContext(place, build.sources);
}

const filesIn = (context: Context): readonly ContextFile[] => [
  ...new Map(
    [...context.values()]
      .flatMap((source) => (typeof source === "string" ? [] : source.flatMap(({ files }) => [...files])))
      .map((file) => [file.path, file]),
  ).values(),
];

/** How many bytes of text are shown; files beyond that, and files that are not text, are shown by their hash. */
const MAX_SHOWN_BYTES = 2 ** 17;

/** For trust: the files other than those that a dev container names itself. */
export async function contextFiles(
  top: string,
  files: readonly BroughtFile[],
): Promise<readonly BroughtFile[]> {
  const known = new Set(files.map((file) => file.path));
  let shown = 0;
  return filesIn(await contextOf(top, files))
    .filter((file) => !known.has(file.path))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path: name, sha256, bytes }) => {
      const text = utf8In(bytes);
      shown += text === undefined ? 0 : bytes.length;
      return text === undefined || shown > MAX_SHOWN_BYTES
        ? { path: name, text: "", sha256, bytes: bytes.length }
        : { path: name, text, sha256 };
    });
}

/**
 * The recipe of a dev container named `from` (`files`: its own file, its Dockerfile, and the files that these take). A
 * file that has changed since `files` was read is not taken.
 */
export async function readContainer(
  top: string,
  files: readonly BroughtFile[],
  from: string,
): Promise<FoundRecipe | string> {
  const [main, dockerfile] = files;
  if (main === undefined) return "there is no dev container";
  const known = new Map(files.map((file) => [file.path, file]));
  const found = await contextOf(top, files);
  const context = new Map(
    [...found].map(([source, each]) => {
      const other =
        typeof each === "string"
          ? undefined
          : each
              .flatMap((match) => [...match.files])
              .find((file) => known.get(file.path)?.sha256 !== file.sha256);
      return [source, other === undefined ? each : `${other.path} has changed since it was trusted`] as const;
    }),
  );
  return readDevcontainer(main.text, from, dockerfile, context);
}
