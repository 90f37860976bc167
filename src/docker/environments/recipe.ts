/** What an environment is made of: written by a user, a trusted file, or found in the files of a project. */
import { createHash } from "node:crypto";
import * as z from "zod";
import { PRESETS } from "../../core/network.ts";
import { globOf, isPattern } from "./context-files.ts";

/** Package managers that come from npm, and those that come from PyPI. */
export const NPM_MANAGERS = ["pnpm", "yarn", "bun", "deno"] as const;
export const PIP_MANAGERS = ["uv", "poetry", "pdm", "pipenv"] as const;

const TOOLCHAINS = ["node", "python", "go", "rust", "java", "php", "ruby"] as const;
export type Toolchain = (typeof TOOLCHAINS)[number];

const text = (most: number) =>
  z
    .string("expected text")
    .min(1, "expected text that is not empty")
    .max(most, `expected at most ${most} characters`)
    .refine((value) => !value.includes("\0"), "expected text without a NUL");

const packageName = z
  .string("expected a package's name")
  .regex(
    /^[a-z0-9][a-z0-9+.-]{0,99}(?:=[\w.+:~-]{1,100})?$/,
    "expected a name of the distribution's packages, such as libpq-dev",
  );

/** Digits and dots, as far as the version is known: the highest release of that line is taken. */
const version = z
  .string("expected a version")
  .regex(/^\d{1,4}(?:\.\d{1,4}){0,2}$/, "expected a version such as 20 or 1.22.3")
  .nullable();

/** Relative to the workspace; the workspace itself is `.`. */
const folder = text(400).refine(isInside, "expected a folder below the workspace, such as packages/app");

const variable = z
  .string()
  .regex(/^[A-Za-z_]\w{0,99}$/, "expected the name of a variable")
  .refine(
    (name) => !FORBIDDEN.test(name),
    "this variable decides what programs load, so a recipe cannot set it",
  );
/** Variables that no image may set either, and those through which the box finds its own programs and home. */
const FORBIDDEN =
  /^(?:LD_|DYLD_|GIT_|BASH_|GCONV_PATH$|GLIBC_TUNABLES$|ENV$|SHELLOPTS$|IFS$|DOCKER_|HOME$|PATH$)/;

const host = z
  .string("expected a registry")
  .regex(
    /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?(?::\d{1,5})?$/i,
    `expected ${PRESETS.join(", ")} or a host's name`,
  );

const step = z.strictObject({
  run: text(10_000),
  folder: folder.default("."),
  /** If it fails, that is reported, and the environment is kept without it. */
  optional: z.literal(true).exactOptional(),
});

export const USER_FORM = /^[A-Za-z0-9_][\w.-]{0,63}(?::[A-Za-z0-9_][\w.-]{0,63})?$/;

const place = text(1000).regex(/^\/[^\p{Cc}]*$/u, "expected a place in the image, such as /opt/x");

/** A file of the project that is put into the system layer, pinned by the hash of its bytes. */
const copiedFile = z.strictObject({
  path: text(1000).refine(isInside, "expected a file below the project's top"),
  to: place,
  within: text(300).exactOptional(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "expected a sha256"),
  mode: z.string().regex(/^[0-7]{3,4}$/, "expected a mode such as 644"),
  owner: z.string().regex(USER_FORM, "expected a user of the image").exactOptional(),
});

const MAX_STAGES = 16;

/** A place in an image that is not the whole image, or a pattern of such places as in COPY. */
export const isPlaceOrPattern = (value: string): boolean =>
  isInside(value.slice(1)) &&
  !/^\/(?:\.|\**)$/.test(value) &&
  value.split("/").every((name) => !isPattern(name) || globOf(name, false) !== undefined);

/** Files that a line takes from a stage, unchanged, links as links. */
const takenPaths = z.strictObject({
  /** The stage's number in `stages`; it must stand before. */
  stage: z
    .number("expected the number of a stage")
    .int()
    .min(0)
    .max(MAX_STAGES - 1),
  paths: z
    .array(
      place.refine(isPlaceOrPattern, "expected a place below the image's top, or a pattern of such places"),
    )
    .min(1)
    .max(50),
  /** A folder if it ends with a slash. */
  to: place,
  mode: z
    .string()
    .regex(/^[0-7]{3,4}$/, "expected a mode such as 644")
    .exactOptional(),
  /** As in the stage when left out. */
  owner: z.string().regex(USER_FORM, "expected a user of the image").exactOptional(),
});
export type TakenPaths = z.output<typeof takenPaths>;

/** A shell line for the container of the system layer, which has no workspace. */
const systemLine = z.strictObject({
  run: text(20_000),
  folder: text(400).regex(/^\//, "expected a folder of the image, such as /opt").default("/"),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_]\w{0,99}$/, "expected the name of a variable"),
      z.string().max(10_000),
    )
    .default({}),
  /** As a Dockerfile's USER: a name or a number, perhaps with a group. Root when left out. */
  user: z
    .string()
    .regex(USER_FORM, "expected a user of the image, such as node, 1000 or 1000:1000")
    .exactOptional(),
  files: z.array(copiedFile).max(500).exactOptional(),
  from: takenPaths.exactOptional(),
});

const systemLines = z.array(systemLine).max(200).default([]);

/** An image that is made only to take files from; nothing else of it gets into a box. */
const stage = z.strictObject({ image: text(500), system: systemLines });

const service = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, "expected a short name such as postgres"),
  packages: z.array(packageName).max(20).default([]),
  /** A shell line that stays in the foreground. */
  start: text(10_000),
  /** A shell line that succeeds once the service can be used. */
  health: text(2000),
  ports: z.array(z.number().int().min(1).max(65_535)).max(10).default([]),
});

/** Each is a volume, and a layer over it in every box: a box keeps up to 64. */
export const MAX_FOLDERS = 60;

const recipeForm = z.strictObject({
  /** The recipe adds to what the project's files say. */
  detected: z.literal(true, "expected true, or nothing").exactOptional(),
  /** Null: the sandbox image. */
  image: text(500).nullable().default(null),
  packages: z.array(packageName).max(200).default([]),
  toolchains: z.partialRecord(z.enum(TOOLCHAINS), version).default({}),
  managers: z.partialRecord(z.enum([...NPM_MANAGERS, ...PIP_MANAGERS]), version).default({}),
  stages: z.array(stage).max(MAX_STAGES).default([]),
  system: systemLines,
  env: z.record(variable, z.string().max(10_000)).default({}),
  registries: z.array(host).max(50).default([]),
  setup: z.array(step).max(100).default([]),
  /** Folders where tools install things: each is a volume of the environment. */
  folders: z
    .array(folder.refine((value) => value !== ".", "expected a folder of its own"))
    .max(MAX_FOLDERS)
    .default([]),
  services: z.array(service).max(8).default([]),
});

export const recipeSchema = recipeForm.superRefine(({ stages, system }, context) => {
  for (const [at, lines] of [...stages.map((each) => each.system), system].entries())
    if (lines.some(({ from }) => from !== undefined && from.stage >= at))
      context.addIssue({
        code: "custom",
        path: at === stages.length ? ["system"] : ["stages", at],
        message: "expected lines that take files from earlier stages",
      });
});

export type Recipe = z.output<typeof recipeSchema>;
export type SetupStep = Recipe["setup"][number];

export const EMPTY_RECIPE: Recipe = recipeSchema.parse({});

/** One thing of a recipe, and the file that it came from. */
export interface TakenItem {
  readonly what: string;
  readonly from: string;
}

export interface FoundRecipe {
  readonly recipe: Recipe;
  readonly taken: readonly TakenItem[];
  /** Wishes in the files that this environment does not fulfil, each with the reason. */
  readonly notTaken: readonly TakenItem[];
  /**
   * The project that each step of `setup` belongs to: a failure ends only the steps of its own project. Left out: the
   * steps build on each other.
   */
  readonly projects?: readonly string[];
}

function isInside(path: string): boolean {
  if (path === ".") return true;
  return (
    !path.startsWith("/") && path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  );
}

/** The recipe, or what is wrong with it, one line each. */
export function readRecipe(value: unknown): Recipe | readonly string[] {
  const read = recipeSchema.safeParse(value);
  return read.success ? read.data : faultsOf(read.error);
}

export const faultsOf = ({ issues }: Pick<z.ZodError, "issues">): readonly string[] =>
  issues.map((issue) => {
    const inner = issue.code === "invalid_key" ? issue.issues[0]?.message : undefined;
    return `${issue.path.length === 0 ? "the file" : issue.path.join(".")}: ${inner ?? issue.message}`;
  });

const union = <T>(first: readonly T[], second: readonly T[]): T[] => [...new Set([...first, ...second])];

/** What a project's files say, with a recipe that adds to it: where both name a version or a variable, the recipe's counts. */
export function addedTo(found: FoundRecipe, own: Recipe, file: string): FoundRecipe {
  const { recipe, projects = [], taken, notTaken } = found;
  return {
    recipe: {
      image: own.image,
      stages: own.stages,
      system: own.system,
      services: own.services,
      packages: union(recipe.packages, own.packages),
      toolchains: { ...recipe.toolchains, ...own.toolchains },
      managers: { ...recipe.managers, ...own.managers },
      env: { ...recipe.env, ...own.env },
      registries: union(recipe.registries, own.registries),
      setup: [...recipe.setup, ...own.setup],
      folders: union(recipe.folders, own.folders),
    },
    projects: [...projects, ...own.setup.map(() => file)],
    taken: [
      ...taken,
      ...own.setup.map(({ run, folder }) => ({
        what: `set-up: ${run}${folder === "." ? "" : ` (in ${folder})`}`,
        from: file,
      })),
      { what: "the rest of the recipe, added", from: file },
    ],
    notTaken,
  };
}

/** A stage as the recipe of a layer of its own, which takes files from the stages before it. */
export function stageRecipe({ stages }: Recipe, at: number): Recipe {
  const { image = null, system = [] } = stages[at] ?? {};
  return { ...EMPTY_RECIPE, image, system, stages: stages.slice(0, at) };
}

/** The ids of the images that a recipe's layers start from. */
export interface Bases {
  /** The base of the system layer. */
  readonly base: string;
  /** The bases of its stages, in order. */
  readonly stages: readonly string[];
}

interface KeyParts extends Bases {
  readonly recipe: Recipe;
  /** Lock and version files: their paths and the hashes of their contents. Those without a hash do not count. */
  readonly files: readonly { readonly path: string; readonly hash: string }[];
}

/**
 * The part of a recipe that the system layer is made from. It holds no byte of a workspace: only names, versions, the
 * recipe's own lines, and the files that these pin by their hashes.
 */
const systemPart = ({ packages, toolchains, managers, services, system, stages }: Recipe): object => ({
  ...(system.length === 0 ? {} : { system: system.map(linePart) }),
  ...(stages.length === 0 ? {} : { stages: stages.map((each) => each.system.map(linePart)) }),
  packages: [...new Set([...packages, ...services.flatMap((each) => each.packages)])].toSorted(),
  toolchains: sorted(toolchains),
  managers: sorted(managers),
});

const linePart = ({
  run,
  folder: at,
  env,
  user,
  files,
  from,
}: Recipe["system"][number]): readonly unknown[] => [
  run,
  at,
  sorted(env),
  ...(user === undefined ? [] : [user]),
  ...(files === undefined
    ? []
    : [files.map(({ to, within = "", sha256, mode, owner = "" }) => [to, within, sha256, mode, owner])]),
  ...(from === undefined ? [] : [{ ...from }]),
];

const takesFiles = ({ system, stages }: Recipe): boolean =>
  [system, ...stages.map((each) => each.system)].flat().some(({ files }) => files !== undefined);

/** A layer with files of a workspace belongs to that workspace (`owner`); any other may be shared. */
export const systemKey = ({ base, stages }: Bases, recipe: Recipe, owner = ""): string =>
  hashOf([FORMAT_VERSION, base, ...stages, systemPart(recipe), ...(takesFiles(recipe) ? [owner] : [])]);

export const environmentKey = ({ base, stages, recipe, files }: KeyParts): string =>
  hashOf([
    FORMAT_VERSION,
    base,
    ...stages,
    {
      ...recipe,
      // Keys of recipes without these stay as they were before these existed.
      stages: recipe.stages.length === 0 ? undefined : recipe.stages,
      system: recipe.system.length === 0 ? undefined : recipe.system,
      env: sorted(recipe.env),
      toolchains: sorted(recipe.toolchains),
      managers: sorted(recipe.managers),
    },
    files
      .filter(({ hash }) => hash !== "")
      .map(({ path, hash }) => [path, hash])
      .toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  ]);

/** A new number if the same recipe is built in another way. */
const FORMAT_VERSION = 2;

const sorted = <T>(record: Readonly<Record<string, T>>): readonly (readonly [string, T])[] =>
  Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1));

const hashOf = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
