import { getNodeValue, parseTree, type ParseError } from "jsonc-parser";
import type { Context } from "./context-files.ts";
import { type DockerfileLine, readDockerfile } from "./dockerfile.ts";
import { quoted } from "./dockerfile-copies.ts";
import {
  EMPTY_RECIPE,
  faultsOf,
  type FoundRecipe,
  type Recipe,
  recipeSchema,
  type SetupStep,
  type TakenItem,
} from "./recipe.ts";

/**
 * What is taken from a devcontainer.json: its image or the lines of its Dockerfile, variables and set-up commands.
 * Everything else is listed as not taken, with the reason: it wants something of the host (mounts, commands run on it,
 * ports), or something that only an editor does.
 */
export function readDevcontainer(
  text: string,
  from: string,
  dockerfile?: { readonly path: string; readonly text: string },
  context?: Context,
): FoundRecipe | string {
  if (depthOf(text) > MAX_DEPTH) return `${from}: nested more than ${MAX_DEPTH} levels deep`;
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors, { allowTrailingComma: true });
  if (root?.type !== "object" || errors.length > 0)
    return `${from}: not a JSON object, with or without comments`;
  const value = getNodeValue(root) as Readonly<Record<string, unknown>>;
  const taking = new DevcontainerReader(from);
  const fault =
    dockerfile === undefined ? undefined : taking.dockerfile(dockerfile, { build: value["build"], context });
  if (fault !== undefined) return fault;
  for (const [key, setting] of Object.entries(value)) taking.key(key, setting);
  const checked = recipeSchema.safeParse(taking.recipe);
  if (!checked.success) return `${from}: ${faultsOf(checked.error)[0] ?? "not understood"}`;
  return { recipe: checked.data, taken: taking.taken, notTaken: taking.notTaken };
}

/** The context of its build, relative to its own folder, and the files of the context that the Dockerfile names. */
export function buildOf(
  text: string,
  dockerfile: string,
): { readonly context: string; readonly sources: readonly string[] } {
  const errors: ParseError[] = [];
  const root =
    depthOf(text) > MAX_DEPTH
      ? undefined
      : parseTree(text.replace(/^\uFEFF/, " "), errors, { allowTrailingComma: true });
  if (root?.type !== "object" || errors.length > 0) return { context: ".", sources: [] };
  const value = getNodeValue(root) as Readonly<Record<string, unknown>>;
  const build = Object(value["build"]) as Readonly<Record<string, unknown>>;
  const context = [build["context"], value["context"]].find((each) => typeof each === "string") ?? ".";
  const read = readDockerfile(dockerfile, argumentsOf(build));
  return { context, sources: typeof read === "string" ? [] : read.sources };
}

function argumentsOf(build: unknown): {
  readonly args: Readonly<Record<string, string>>;
  readonly target: string | undefined;
} {
  const { args, target } = Object(build) as Readonly<Record<string, unknown>>;
  const strings = Object.entries(Object(args) as Readonly<Record<string, unknown>>).filter(
    (each): each is [string, string] => typeof each[1] === "string" && !VARIABLE.test(each[1]),
  );
  return { args: Object.fromEntries(strings), target: typeof target === "string" ? target : undefined };
}

const MAX_DEPTH = 32;

/** An upper bound: brackets inside texts count too. The parser recurses. */
function depthOf(text: string): number {
  let [depth, most] = [0, 0];
  for (const char of text) {
    if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
    most = Math.max(most, depth);
  }
  return most;
}

/** In the order in which an editor runs them. */
const COMMANDS = ["onCreateCommand", "updateContentCommand", "postCreateCommand"] as const;
type CommandKey = (typeof COMMANDS)[number];

/** Names for people, and settings of editors: nothing that a box would have. */
const SILENT = new Set(["name", "$schema", "customizations", "extensions", "settings"]);

const UNBUILT = "it names no Dockerfile beside it";

const REASONS: Readonly<Record<string, string>> = {
  initializeCommand: "it runs on the host",
  postStartCommand: "it runs at every start; name services in .harness/env.json",
  postAttachCommand: "it runs when an editor attaches",
  build: UNBUILT,
  dockerFile: UNBUILT,
  dockerComposeFile: "services of a compose file are not started; name them in .harness/env.json",
  service: "services of a compose file are not started; name them in .harness/env.json",
  runServices: "services of a compose file are not started; name them in .harness/env.json",
  features: "features are scripts from a registry; name packages in .harness/env.json",
  mounts: "nothing of the host is mounted",
  workspaceMount: "the workspace is mounted at its own path",
  workspaceFolder: "the workspace is mounted at its own path",
  runArgs: "the box's walls are fixed",
  privileged: "the box's walls are fixed",
  capAdd: "the box's walls are fixed",
  securityOpt: "the box's walls are fixed",
  init: "the box has a runner as its first process",
  remoteUser: "commands run as the workspace's owner",
  containerUser: "commands run as the workspace's owner",
  updateRemoteUserUID: "commands run as the workspace's owner",
  forwardPorts: "no port of a box can be reached from outside",
  appPort: "no port of a box can be reached from outside",
  portsAttributes: "no port of a box can be reached from outside",
  otherPortsAttributes: "no port of a box can be reached from outside",
  remoteEnv: "it is for programs that an editor starts; use containerEnv",
};

class DevcontainerReader {
  readonly taken: TakenItem[] = [];
  readonly notTaken: TakenItem[] = [];
  readonly #from: string;
  readonly #steps = new Map<CommandKey, readonly SetupStep[]>();
  #image: string | null = null;
  #system: Recipe["system"] = [];
  #stages: Recipe["stages"] = [];
  #built = false;
  #env: Readonly<Record<string, string>> = {};

  constructor(from: string) {
    this.#from = from;
  }

  get recipe(): Recipe {
    const setup = COMMANDS.flatMap((name) => this.#steps.get(name) ?? []);
    const [image, stages, system] = [this.#image, this.#stages, this.#system];
    return { ...EMPTY_RECIPE, image, stages, system, env: this.#env, setup };
  }

  /** Takes the lines of a Dockerfile, which run in the container of the system layer. Returns why it cannot, if so. */
  dockerfile(
    { path, text }: { readonly path: string; readonly text: string },
    { build, context }: { readonly build: unknown; readonly context: Context | undefined },
  ): string | undefined {
    const read = readDockerfile(text, { ...argumentsOf(build), context });
    if (typeof read === "string") return `${path}: ${read}`;
    this.#built = true;
    this.#image = read.image;
    this.#stages = read.stages.map(({ image, lines }) => ({ image, system: lines.map(lineOf) }));
    this.#system = read.lines.map(lineOf);
    this.taken.push({ what: `image: ${read.image}`, from: path });
    for (const { image, lines } of read.stages) {
      this.taken.push({ what: `an image that files are taken from: ${image}`, from: path });
      this.#takeLines(lines, { what: "a stage", from: path });
    }
    this.#takeLines(read.lines, { what: "the system layer", from: path });
    for (const what of read.notTaken) this.notTaken.push({ what, from: path });
    this.#takeEnv(read.env, path, "ENV");
    return undefined;
  }

  #takeLines(lines: readonly DockerfileLine[], { what, from }: TakenItem): void {
    for (const { run, files = [] } of lines) {
      this.taken.push({ what: `a line of ${what}: ${run}`, from });
      for (const file of files)
        this.taken.push({ what: `a file of ${what}: ${file.path} -> ${file.to}`, from });
    }
  }

  key(name: string, setting: unknown): void {
    if (SILENT.has(name)) return;
    if (this.#built && (name === "build" || name === "dockerFile" || name === "context")) return;
    if (name === "image") return this.#takeImage(setting);
    if (name === "containerEnv") return this.#takeEnv(setting);
    const command = COMMANDS.find((each) => each === name);
    if (command === undefined) return this.#refuse(name, REASONS[name] ?? "not known here");
    const steps = stepsOf(setting);
    if (steps === undefined)
      return this.#refuse(name, "not a command line, a list of words or a table of these");
    this.#steps.set(command, steps);
    for (const { run } of steps) this.#take(`set-up: ${run}`);
    return undefined;
  }

  #takeImage(setting: unknown): void {
    if (typeof setting !== "string" || VARIABLE.test(setting))
      return this.#refuse("image", "not a plain image name");
    if (this.#built) return this.#refuse("image", "its Dockerfile says what it starts from");
    this.#image = setting;
    return this.#take(`image: ${setting}`);
  }

  #takeEnv(setting: unknown, from = this.#from, label = "containerEnv"): void {
    if (typeof setting !== "object" || setting === null)
      return this.#refuse(label, "not a table of variables");
    for (const [name, value] of Object.entries(setting as Readonly<Record<string, unknown>>)) {
      const one = recipeSchema.shape.env.safeParse({ [name]: value });
      if (!one.success) this.#refuse(`${label}.${name}`, faultsOf(one.error)[0] ?? "not understood", from);
      else if (VARIABLE.test(String(value)))
        this.#refuse(`${label}.${name}`, "it requires a value from the host", from);
      else {
        this.#env = { ...this.#env, ...one.data };
        this.taken.push({ what: `variable: ${name}=${String(value)}`, from });
      }
    }
  }

  #take(what: string): void {
    this.taken.push({ what, from: this.#from });
  }

  #refuse(what: string, why: string, from = this.#from): void {
    this.notTaken.push({ what: `${what}: ${why}`, from });
  }
}

const lineOf = ({ files, ...line }: DockerfileLine): Recipe["system"][number] => ({
  ...line,
  env: { ...line.env },
  ...(files === undefined ? {} : { files: files.map((file) => ({ ...file })) }),
});

/** `${localEnv:NAME}` and others, which an editor replaces by values of the host. */
const VARIABLE = /\$\{/;

/** A line for a shell, words without a shell, or several of both by name, which an editor runs at the same time. */
function stepsOf(setting: unknown): readonly SetupStep[] | undefined {
  if (typeof setting === "string") return setting.trim() === "" ? [] : [{ run: setting, folder: "." }];
  if (Array.isArray(setting))
    return setting.every((word) => typeof word === "string")
      ? setting.length === 0
        ? []
        : [{ run: setting.map(quoted).join(" "), folder: "." }]
      : undefined;
  if (typeof setting !== "object" || setting === null) return undefined;
  const each = Object.values(setting).map(stepsOf);
  return each.every((steps) => steps !== undefined) ? each.flat() : undefined;
}
