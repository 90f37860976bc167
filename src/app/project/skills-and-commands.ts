import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleWhole } from "../../core/visible.ts";
import { bytesOf, rowOf } from "../../extensions/brought.ts";
import {
  type AddedCommand,
  commandIn,
  commandOfSkill,
  expanded,
  ownCommands,
  projectCommands,
} from "../../extensions/command-files.ts";
import {
  firstOfEachName,
  type FoundExtensions,
  ownSkills,
  projectSkills,
  type Skill,
} from "../../extensions/skill-folders.ts";
import type { Host } from "../host.ts";
import { trustedFile } from "./project-trust.ts";
import { renderSkills } from "../../agent/context/prompt.ts";
import type { Extensions } from "../../core/tool.ts";
import { skillTool } from "../../extensions/skill-tool.ts";
import type { ExtensionParts } from "./open-extensions.ts";

export interface SlashCommands extends FoundExtensions<AddedCommand> {
  readonly untrusted: readonly NotTrusted[];
  /** The untrusted things in one line; empty if there are none. */
  readonly note: string;
}

/** The current words that can be typed after a slash in addition to the chat's own: commands, then skills. */
export async function slashCommands(host: Host, workspace: string): Promise<SlashCommands> {
  const [own, brought, skills] = await Promise.all([
    Promise.all(ownFolders(host, "commands").map((folder) => ownCommands(folder, workspace))),
    trustedFile(host, workspace, "commands"),
    skillsOf(host, workspace),
  ]);
  const theirs = brought.state === "trusted" ? [projectCommands(brought.files, rowOf("commands").files)] : [];
  const commands = firstOfEachName([...own, ...theirs], (one, other) => one.text === other.text);
  const names = new Set(commands.all.map(({ name }) => name.toLowerCase()));
  const typed = skills.all.filter(({ name, typed }) => typed && !names.has(name.toLowerCase()));
  const untrusted: readonly NotTrusted[] = [
    ...(skills.untrusted === undefined ? [] : [skills.untrusted]),
    ...(brought.state === "untrusted"
      ? [{ kind: "commands", file: brought.file, why: brought.why } as const]
      : []),
  ];
  return {
    all: [...commands.all, ...typed.map(commandOfSkill)],
    problems: commands.problems,
    untrusted,
    note: noteOf(untrusted),
  };
}

/** What a command says in the user's place: handled like any other request, so it acts only through the model. */
export interface ExpandedCommand {
  readonly text: string;
  /** Tells the person which command was expanded. */
  readonly note: string;
}

/** Undefined if the line names none of these commands: then it is a request as it stands. */
export function expansionOf(line: string, { all }: SlashCommands): ExpandedCommand | undefined {
  const found = commandIn(line, all);
  if (found === undefined) return undefined;
  const { command, argument } = found;
  const filled = expanded(command, argument);
  if ("why" in filled) throw new HarnessError(EXIT.usage, filled.why, "shorten what follows the command");
  const whose = command.origin === "user" ? "yours" : "the project's";
  return { text: filled.text, note: `/${command.name} sends the text in ${command.place}, ${whose}` };
}

/** The prompt of a run; `warn` receives a note on an expanded or ignored slash command. */
export async function expandedPrompt(
  host: Host,
  workspace: string,
  prompt: string,
  warn: (text: string) => void,
): Promise<string> {
  const commands = await slashCommands(host, workspace);
  const expansion = expansionOf(prompt, commands);
  if (expansion !== undefined) {
    warn(expansion.note);
    return expansion.text;
  }
  if (commands.note !== "" && /^\/[A-Za-z0-9._:-]+(?:\s|$)/.test(prompt)) warn(commands.note);
  return prompt;
}

function noteOf(left: readonly NotTrusted[]): string {
  if (left.length === 0) return "";
  const kinds = left.map(({ kind }) => kind).join(" and ");
  const each = left.map(({ file, why }) => `${visibleWhole(file)} (${why})`).join(", ");
  return `${kinds} of the project are ignored: ${each}; next: harness trust`;
}

/** A skill or command as it is listed, without its text. */
export interface ListedCommand {
  readonly name: string;
  readonly description: string;
  readonly origin: "user" | "project";
  readonly place: string;
}

/** All skills and commands, for a person: what the model may use, and what only a person can type. */
export async function skillsAndCommands(
  host: Host,
  workspace: string,
): Promise<{
  readonly skills: readonly ListedCommand[];
  readonly commands: readonly ListedCommand[];
  readonly problems: SlashCommands["problems"];
  readonly untrusted: SlashCommands["untrusted"];
}> {
  const [skills, commands] = await Promise.all([skillsOf(host, workspace), slashCommands(host, workspace)]);
  const offered = skills.all.filter((skill) => skill.offered);
  const places = new Set(offered.map(({ place }) => place));
  return {
    skills: offered.map(listEntry),
    commands: commands.all.filter(({ place }) => !places.has(place)).map(listEntry),
    problems: [...skills.problems, ...commands.problems],
    untrusted: commands.untrusted,
  };
}

const listEntry = ({ name, description, origin, place }: ListedCommand): ListedCommand => ({
  name,
  description,
  origin,
  place,
});

/** The user's own folders, in order of precedence. */
const ownFolders = ({ places }: Host, kind: "skills" | "commands"): readonly string[] => [
  path.join(path.dirname(places.configFiles[0]), kind),
  path.join(places.home, ".agents", kind),
  path.join(places.home, ".claude", kind),
];

/** A thing of a project that exists but does not count. */
interface NotTrusted {
  readonly kind: "skills" | "commands";
  /** Absolute. */
  readonly file: string;
  readonly why: string;
}

export interface Skills extends FoundExtensions<Skill> {
  readonly untrusted: NotTrusted | undefined;
}

/** The user's current skills, then those of the workspace's project that are trusted. */
export async function skillsOf(host: Host, workspace: string): Promise<Skills> {
  const [own, brought] = await Promise.all([
    Promise.all(ownFolders(host, "skills").map((folder) => ownSkills(folder, workspace))),
    trustedFile(host, workspace, "skills"),
  ]);
  const theirs =
    brought.state === "trusted"
      ? [projectSkills(brought.files, rowOf("skills").files, (file) => bytesOf(brought.top, file))]
      : [];
  const found = firstOfEachName(
    [...own, ...theirs],
    (one, other) => one.body === other.body && one.description === other.description,
  );
  const untrusted =
    brought.state === "untrusted"
      ? ({ kind: "skills", file: brought.file, why: brought.why } as const)
      : undefined;
  return { ...found, untrusted };
}

/** Undefined if there is no skill for the model. Untrusted things of the project are reported and otherwise ignored. */
export async function openSkills(parts: ExtensionParts): Promise<Extensions | undefined> {
  const { host, workspace, warn } = parts;
  const { all, problems, untrusted } = await skillsOf(host, workspace);
  if (untrusted !== undefined) tellUntrusted(parts, untrusted);
  if (problems.length > 0)
    warn(
      `${problems.length === 1 ? "a skill is" : `${problems.length} skills are`} ignored: ${problems[0]?.file} (${problems[0]?.why})${problems.length > 1 ? " …" : ""}; harness skills lists them`,
    );
  const offered = all.filter((skill) => skill.offered);
  if (offered.length === 0) return undefined;
  const { text, left } = renderSkills(offered);
  if (left.length > 0)
    warn(
      `${left.length} of ${offered.length} skills are not offered to the model, for lack of room: ${left.slice(0, 5).join(", ")}`,
    );
  const tools = [skillTool(offered, parts.box)];
  return { tools: () => tools, prompt: text, [Symbol.asyncDispose]: () => Promise.resolve() };
}

function tellUntrusted({ emit, workspace }: ExtensionParts, { kind, file, why }: NotTrusted): void {
  const name = path.relative(workspace, file);
  const shown = name.startsWith("..") ? file : name;
  emit({
    type: "notice",
    text: `skills of the project are left out: ${shown} (${why}); harness trust shows what they say`,
    untrusted: [{ kind, file: shown, why }],
  });
}
