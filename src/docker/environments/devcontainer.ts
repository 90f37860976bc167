import { getNodeValue, parseTree, type ParseError } from "jsonc-parser";
import {
  EMPTY_RECIPE,
  faultsOf,
  type FoundRecipe,
  type Recipe,
  recipeSchema,
  type SetupStep,
  type Taken,
} from "./recipe.ts";

/**
 * What a devcontainer.json is taken for: its image, variables and set-up commands. All else is listed as not taken, with
 * the reason, since it asks for the host (mounts, commands run on it, ports) or for what only an editor does.
 */
export function readDevcontainer(text: string, from: string): FoundRecipe | string {
  if (depthOf(text) > MAX_DEPTH) return `${from}: nested more than ${MAX_DEPTH} levels deep`;
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors, { allowTrailingComma: true });
  if (root?.type !== "object" || errors.length > 0) return `${from}: no JSON object with comments`;
  const value = getNodeValue(root) as Readonly<Record<string, unknown>>;
  const taking = new Taking(from);
  for (const [key, given] of Object.entries(value)) taking.key(key, given);
  const checked = recipeSchema.safeParse(taking.recipe);
  if (!checked.success) return `${from}: ${faultsOf(checked.error)[0] ?? "not understood"}`;
  return { recipe: checked.data, taken: taking.taken, notTaken: taking.notTaken };
}

const MAX_DEPTH = 32;

/** An upper bound: brackets in texts count, too. The parser recurses. */
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

/** Names for people, and editors' own: nothing that a box would have. */
const SILENT = new Set(["name", "$schema", "customizations", "extensions", "settings"]);

/** An engine builds with a network of its own, as its own root, and with none of the bounds of a box. */
const UNBUILT =
  "a Dockerfile is not built: its RUN lines would run in the engine, outside of a box's walls; docker build it yourself, and name the image";

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
  forwardPorts: "no port of a box is seen from outside",
  appPort: "no port of a box is seen from outside",
  portsAttributes: "no port of a box is seen from outside",
  otherPortsAttributes: "no port of a box is seen from outside",
  remoteEnv: "it is for programs that an editor starts; use containerEnv",
};

class Taking {
  readonly taken: Taken[] = [];
  readonly notTaken: Taken[] = [];
  readonly #from: string;
  readonly #steps = new Map<CommandKey, readonly SetupStep[]>();
  #image: string | null = null;
  #env: Readonly<Record<string, string>> = {};

  constructor(from: string) {
    this.#from = from;
  }

  get recipe(): Recipe {
    const setup = COMMANDS.flatMap((name) => this.#steps.get(name) ?? []);
    return { ...EMPTY_RECIPE, image: this.#image, env: this.#env, setup };
  }

  key(name: string, given: unknown): void {
    if (SILENT.has(name)) return;
    if (name === "image") return this.#takeImage(given);
    if (name === "containerEnv") return this.#takeEnv(given);
    const command = COMMANDS.find((each) => each === name);
    if (command === undefined) return this.#leave(name, REASONS[name] ?? "not known here");
    const steps = stepsOf(given);
    if (steps === undefined)
      return this.#leave(name, "neither a command line, a list of words, nor both by name");
    this.#steps.set(command, steps);
    for (const { run } of steps) this.#take(`set-up: ${run}`);
    return undefined;
  }

  #takeImage(given: unknown): void {
    if (typeof given !== "string" || VARIABLE.test(given))
      return this.#leave("image", "no plain name of an image");
    this.#image = given;
    return this.#take(`image: ${given}`);
  }

  #takeEnv(given: unknown): void {
    if (typeof given !== "object" || given === null)
      return this.#leave("containerEnv", "no table of variables");
    for (const [name, value] of Object.entries(given as Readonly<Record<string, unknown>>)) {
      const one = recipeSchema.shape.env.safeParse({ [name]: value });
      if (!one.success) this.#leave(`containerEnv.${name}`, faultsOf(one.error)[0] ?? "not understood");
      else if (VARIABLE.test(String(value)))
        this.#leave(`containerEnv.${name}`, "it asks for a value of the host");
      else {
        this.#env = { ...this.#env, ...one.data };
        this.#take(`variable: ${name}=${String(value)}`);
      }
    }
  }

  #take(what: string): void {
    this.taken.push({ what, from: this.#from });
  }

  #leave(what: string, why: string): void {
    this.notTaken.push({ what: `${what}: ${why}`, from: this.#from });
  }
}

/** `${localEnv:NAME}` and others: an editor puts values of the host there. */
const VARIABLE = /\$\{/;

/** A line for a shell, words without one, or several of both by name: those an editor runs side by side. */
function stepsOf(given: unknown): readonly SetupStep[] | undefined {
  if (typeof given === "string") return given.trim() === "" ? [] : [{ run: given, folder: "." }];
  if (Array.isArray(given))
    return given.every((word) => typeof word === "string")
      ? given.length === 0
        ? []
        : [{ run: given.map(quoted).join(" "), folder: "." }]
      : undefined;
  if (typeof given !== "object" || given === null) return undefined;
  const each = Object.values(given).map(stepsOf);
  return each.every((steps) => steps !== undefined) ? each.flat() : undefined;
}

const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
