import path from "node:path";
import { parseConfigDocument, projectChanges } from "../../config/load-config.ts";
import { projectServers } from "../../config/mcp-settings.ts";
import { writtenRules } from "../../config/policy-rules-file.ts";
import { printable, USERS_OWN } from "../../config/settings-schema.ts";
import { reasonOf } from "../../core/errors.ts";
import { whyDeceptive } from "../../core/file-names.ts";
import { inertJson } from "../../core/visible.ts";
import { readRecipe, type Recipe } from "../../docker/environments/recipe.ts";
import { type BroughtFile, type Kind, linesOf, rowOf } from "../../extensions/brought.ts";
import { readCommand } from "../../extensions/command-files.ts";
import { NO_TEXT, readSkill, skillFoldersOf } from "../../extensions/skill-folders.ts";
import { projectHooks, projectTools } from "../../extensions/program-files.ts";
import type { RuleForm } from "../../policy/rule.ts";
import { serverDoes } from "./mcp-plans.ts";
import type { Host } from "../host.ts";
import type { Doing } from "./project-trust.ts";
import { readContainer } from "../boxes/workspace-environment.ts";

/** Describes what the things that a project brings would do: nothing counts before it was shown like this. */

export interface Effects {
  readonly does: readonly Doing[];
  /** Why it can do nothing, and so cannot be trusted; null if it can. */
  readonly problem: string | null;
}

/** One thing: its main file, then the files that this names. */
interface Described {
  readonly host: Host;
  readonly top: string;
  readonly files: readonly [BroughtFile, ...BroughtFile[]];
}

type Describe = (thing: Described) => Promise<readonly Doing[]>;

const DESCRIBE: Readonly<Record<Kind, Describe>> = {
  settings: settingsDo,
  rules: rulesDo,
  environment: recipeDoes,
  devcontainer: containerDoes,
  mcp: serversDo,
  "shared-mcp": serversDo,
  skills: skillsDo,
  commands: commandsDo,
  hooks: hooksDo,
  tools: toolsDo,
};

export async function effectsOf(kind: Kind, thing: Described): Promise<Effects> {
  try {
    return { does: [...deceptiveNames(thing), ...(await DESCRIBE[kind](thing))], problem: null };
  } catch (thrown) {
    // Includes input that was made to break its parser: nobody could say what it does.
    return { does: [], problem: reasonOf(thrown) };
  }
}

const loosening = (text: string): Doing => ({ text, loosens: true });
const fileOf = ({ top, files }: Described): string => path.join(top, files[0].path);

/** Names that may be displayed as if they were others. */
const deceptiveNames = ({ files }: Described): readonly Doing[] =>
  files.flatMap((file) => {
    const why = whyDeceptive(file.path);
    return why === undefined ? [] : [loosening(`${file.path} is not what its name suggests: ${why}`)];
  });

async function settingsDo(thing: Described): Promise<readonly Doing[]> {
  const changes = await projectChanges(thing.host.env, { file: fileOf(thing), text: thing.files[0].text });
  return changes.map(({ key, from, to, change }) => {
    const [before, after] = [printable(key, from), printable(key, to)];
    if (USERS_OWN.has(key))
      return { text: `ignored: ${key}: only your own settings can set it`, loosens: false };
    return change === "same"
      ? { text: `${key} stays ${after}`, loosens: false }
      : { text: `${key}: ${before} -> ${after}`, loosens: change === "loosens" };
  });
}

const VERBS = { allow: "runs without asking", ask: "asks before", deny: "refuses" } as const;

async function rulesDo(thing: Described): Promise<readonly Doing[]> {
  const file = { file: fileOf(thing), text: thing.files[0].text };
  const rules = await writtenRules(file, thing.host.places.home);
  return rules.map((rule) => ({
    text: `${VERBS[rule.decision]}: ${conditionOf(rule)} (${rule.reason})`,
    loosens: rule.decision === "allow",
  }));
}

const list = (name: string, value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : [`${name} ${[value].flat().join(" or ")}`];

type Condition = Exclude<
  keyof RuleForm,
  "id" | "prefix" | "exact" | "decision" | "reason" | "match" | "notMatch"
>;

/** What is left out here would be trusted unseen: a condition that is added to rules has to be added here. */
const CONDITIONS = {
  arg: "with the argument",
  effect: "whatever has the effect",
  path: "on the path",
  host: "with the host",
  tool: "the tool",
} satisfies Record<Condition, string>;

/** Every condition of a rule, in a fixed order. */
function conditionOf(rule: RuleForm): string {
  const { prefix, exact } = rule;
  const words = prefix?.map((word) => (typeof word === "string" ? word : `{${word.join(",")}}`)).join(" ");
  return [
    ...(words === undefined ? [] : [exact === true ? `${words} (exactly)` : `${words} …`]),
    ...(Object.keys(CONDITIONS) as Condition[]).flatMap((key) => list(CONDITIONS[key], rule[key])),
  ].join(", ");
}

const INSTALLS = "installs:";

/** What a key of a recipe does; other keys are shown by their names. */
const WORDS: Readonly<Record<string, string>> = {
  detected: "adds to what the project's files say:",
  image: "starts every box from the image:",
  packages: INSTALLS,
  toolchains: INSTALLS,
  managers: INSTALLS,
  stages: "builds in a separate container, to copy files from it:",
  system: "runs as root in a container without the workspace, while its image is built:",
  env: "sets in every box:",
  registries: "connects to during set-up:",
  setup: "runs during set-up:",
  services: "starts beside every run:",
  folders: "keeps in a volume of its own:",
};

/** Reads the recipe with the reader that builds use, so that what is shown is what counts. */
function recipeDoes(thing: Described): Promise<readonly Doing[]> {
  const [{ text }] = thing.files;
  const { value, at } = parseConfigDocument(fileOf(thing), text);
  const recipe = readRecipe(value);
  if (isFaults(recipe)) throw new Error(`${at([])}: ${recipe.join("; ")}`);
  return Promise.resolve(recipeEffects(recipe));
}

const isFaults = (read: Recipe | readonly string[]): read is readonly string[] => Array.isArray(read);

async function containerDoes(thing: Described): Promise<readonly Doing[]> {
  const [{ path: main }, ...named] = thing.files;
  const read = await readContainer(thing.top, thing.files, main);
  if (typeof read === "string") throw new Error(read);
  const others = named.flatMap(textOf);
  const left = read.notTaken.map(({ what }) => ({ text: `not taken: ${what}`, loosens: false }));
  return [...recipeEffects(read.recipe), ...others, ...left];
}

const textOf = (file: BroughtFile): readonly Doing[] =>
  linesOf(file).map((line) => loosening(`${file.path}: ${line.replace(/\n$/, "")}`));

/** Describes for each server what it would start, where, with which variables, and which hosts it would reach. */
function serversDo(thing: Described): Promise<readonly Doing[]> {
  const [{ text }, ...named] = thing.files;
  const { servers, faults } = projectServers(parseConfigDocument(fileOf(thing), text).value);
  const each = Object.entries(servers).map(([name, server]) => serverDoes(name, server));
  return Promise.resolve([
    ...each,
    ...named.flatMap(textOf),
    ...faults.map((fault) => ({ text: `not taken: ${fault}`, loosens: false })),
  ]);
}

/**
 * One skill per folder with a SKILL.md, parsed as at its use. All of its files are words to a model, or come along with
 * them.
 */
function skillsDo({ files }: Described): Promise<readonly Doing[]> {
  const { files: layouts } = rowOf("skills");
  const skills = skillFoldersOf(files, layouts);
  const own = new Set(skills.flatMap((skill) => skill.own));
  const each = skills.flatMap((skill) => [loosening(skillDoes(skill)), ...skill.own.flatMap(textOf)]);
  return Promise.resolve([...each, ...files.filter((file) => !own.has(file)).flatMap(textOf)]);
}

function skillDoes({ folder, main }: ReturnType<typeof skillFoldersOf>[number]): string {
  const called = path.basename(folder);
  if (main === undefined) return `${called} is not a skill: it has no SKILL.md`;
  const read = main.bytes === undefined ? readSkill(main.text, called) : NO_TEXT;
  if (typeof read === "string") return `${called} is not a usable skill: ${read}`;
  const { name, description, offered } = read;
  return offered
    ? `offers the model the skill ${name}: ${description}`
    : `/${name} in a chat sends for you (${description}):`;
}

/** One command per file; its text is sent in the user's name. */
function commandsDo({ files }: Described): Promise<readonly Doing[]> {
  const { files: layouts } = rowOf("commands");
  const each = files.flatMap((file) => [loosening(commandDoes(file, layouts)), ...textOf(file)]);
  return Promise.resolve(each);
}

function commandDoes({ path: file, text }: BroughtFile, layouts: readonly string[]): string {
  const layout = layouts.find((folder) => file.startsWith(`${folder}/`)) ?? "";
  const read = readCommand(text, file.slice(layout.length + 1));
  if (read === undefined) return `${file} is not a command, but is trusted too:`;
  if (typeof read === "string") return `${file} is not a usable command: ${read}`;
  return `/${read.name} in a chat sends for you (${read.description}):`;
}

function hooksDo(thing: Described): Promise<readonly Doing[]> {
  const [{ path: main, text }, ...named] = thing.files;
  const each = projectHooks(main, text).map((hook) => {
    const [what, where] = [[hook.command].flat().join(" "), [hook.tools ?? []].flat().join(", ")];
    return loosening(`runs in the box at ${hook.event}${where === "" ? "" : ` of ${where}`}: ${what}`);
  });
  return Promise.resolve([...each, ...named.flatMap(textOf)]);
}

function toolsDo(thing: Described): Promise<readonly Doing[]> {
  const [{ path: main, text }, ...named] = thing.files;
  const each = Object.entries(projectTools(main, text)).flatMap(([name, tool]) => [
    loosening(`offers the model the tool ${name}: ${tool.description}`),
    loosening(`runs in the box for ${name}: ${[tool.command].flat().join(" ")}`),
  ]);
  return Promise.resolve([...each, ...named.flatMap(textOf)]);
}

const recipeEffects = (recipe: Recipe): readonly Doing[] =>
  Object.entries(recipe).flatMap(([key, value]) =>
    valuesOf(value).map((each) => loosening(`${WORDS[key] ?? `${key}:`} ${each}`)),
  );

/** The entries of a list or an object, one by one; none for null. */
function valuesOf(setting: unknown): readonly string[] {
  if (setting === null) return [];
  if (Array.isArray(setting)) return setting.map(oneOf);
  if (typeof setting !== "object") return [oneOf(setting)];
  return Object.entries(setting).map(([name, value]) => `${name} = ${oneOf(value)}`);
}

const oneOf = (value: unknown): string => (typeof value === "string" ? value : inertJson(value));
