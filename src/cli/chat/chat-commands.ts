import type { SlashCommands } from "../../app/project/skills-and-commands.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { visibleLine } from "../../core/visible.ts";
import { truncate, nearest } from "../../core/wording.ts";
import { widthOfStream, wrapped } from "../../render/tty/columns.ts";
import type { Output } from "../../render/tty/output.ts";

/** The input of a chat command. It does not know how its result is shown, or how a person is asked. */
export interface SlashCall {
  readonly chat: ChatController;
  /** The text after the command's name. */
  readonly argument: string;
  /** For the width and colours of texts; commands do not write to it. */
  readonly output: Output;
  /** Shows a text at once: the subject of a question, or progress. */
  readonly show: (text: string) => void;
  /** False unless a person says yes. */
  readonly confirm: (question: string) => Promise<boolean>;
}

/** A slash command; `run` returns the text to show. */
export interface SlashCommand extends SlashName {
  readonly run: (call: SlashCall) => Promise<string> | string;
}

/** Each module is loaded when one of its commands is typed. */
const session = () => import("./slash-session.ts");
const project = () => import("./slash-project.ts");

export const COMMANDS: readonly SlashCommand[] = [
  { name: "help", takes: "[NAME]", says: "show this list, or describe one command", run: help },
  {
    name: "new",
    says: "start a new session; this one is kept",
    run: async (call) => (await session()).begin(call),
  },
  {
    name: "clear",
    says: "forget the conversation",
    run: async (call) => (await session()).clear(call),
  },
  {
    name: "compact",
    says: "summarise the older part of the conversation",
    run: async (call) => (await session()).compact(call),
  },
  {
    name: "undo",
    takes: "[files]",
    says: "take back the last message; with files: what was changed",
    more: [
      "/undo forgets the last message and its answer, and leaves files as they are.",
      "/undo files takes back what this session changed in the folder; your own lines stay. You see the changes first, and are asked.",
    ],
    run: async (call) =>
      call.argument === "files" ? (await project()).undoFiles(call) : (await session()).undo(call),
  },
  {
    name: "diff",
    takes: "[stat]",
    says: "show what this session has changed",
    more: ["/diff stat shows one line for each path. To take the changes back: harness undo"],
    run: async (call) => (await project()).diff(call),
  },
  {
    name: "apply",
    says: "move the changes in this session's layer into the folder",
    more: [
      "For --isolation overlay and copy. You see the changes first, and are asked; you are asked again about each path that the host would obey.",
    ],
    run: async (call) => (await project()).apply(call),
  },
  {
    name: "commit",
    takes: "[MESSAGE]",
    says: "commit the changes; the model proposes a message",
    more: [
      "Commits what is staged or, if nothing is staged, everything that is not ignored. You see the commit with its message first, and are asked.",
      "The commit is made in its own container, without hooks.",
    ],
    run: async (call) => (await project()).commit(call),
  },
  {
    name: "model",
    takes: "[NAME]",
    says: "show the model, or switch to another one",
    run: async (call) => (await session()).model(call),
  },
  {
    name: "provider",
    takes: "[NAME [URL] [MODEL]]",
    says: "show the model's provider, or switch; the conversation continues",
    more: [
      "/provider openai http://127.0.0.1:1234/v1 MODEL asks another server from the next message on.",
      "A server on another machine then gets the whole conversation.",
    ],
    run: async (call) => (await session()).provider(call),
  },
  {
    name: "mode",
    takes: "[MODE]",
    says: "show what the box may touch, or change it",
    run: async (call) => (await session()).mode(call),
  },
  {
    name: "grant",
    takes: "[NAME]",
    says: "show what the box may reach, or add to it (always NAME: for later chats, too)",
    run: async (call) => (await session()).grant(call),
  },
  {
    name: "web",
    says: "show whether web pages are read and searched for, and where",
    run: async (call) => (await session()).web(call),
  },
  {
    name: "policy",
    takes: "[CMD]",
    says: "show what decides here; with a command: how it would be judged",
    more: [
      "/policy rm -rf build shows what would be decided, by which rule, and what would pass. Nothing is run.",
    ],
    run: async (call) => (await session()).policy(call),
  },
  {
    name: "tools",
    says: "list the tools that the model can call",
    run: async (call) => (await session()).tools(call),
  },
  {
    name: "cost",
    says: "show tokens, cost and how full the window is",
    run: async (call) => (await session()).cost(call),
  },
  {
    name: "memory",
    says: "show what is in the prompt and in the window, and where it comes from",
    run: async (call) => (await project()).memory(call),
  },
  {
    name: "system",
    says: "show the system prompt as it is",
    run: async (call) => (await project()).system(call),
  },
  {
    name: "sessions",
    says: "list the last sessions of this folder",
    run: async (call) => (await session()).sessions(call),
  },
  {
    name: "resume",
    takes: "[ID]",
    says: "continue an earlier session; without an ID, the last other one of this folder",
    run: async (call) => (await session()).resume(call),
  },
  {
    name: "init",
    says: "write a short AGENTS.md from what is found in the project",
    more: [
      "Looks up languages, commands and folders, and asks no model. You see the file first, and are asked.",
    ],
    run: async (call) => (await project()).init(call),
  },
  {
    name: "doctor",
    says: "check everything that a run depends on",
    run: async (call) => (await project()).doctor(call),
  },
];

/** The text to show for a command of the chat; `?` after its name describes the command. */
export async function answerTo(name: string, call: SlashCall): Promise<string> {
  const command = COMMANDS.find((each) => each.name === name);
  if (command === undefined) return "";
  return call.argument === "?" ? described(command) : command.run(call);
}

const typedAs = ({ name, takes = "" }: SlashName): string => `/${name} ${takes}`.trim();

const described = (command: SlashName): string =>
  [`${typedAs(command)}   ${command.says}`, ...(command.more ?? [])].join("\n");

async function help({ chat, argument, output }: SlashCall): Promise<string> {
  const commands = await chat.commands();
  if (argument === "") return allOf(commands, widthOfStream(output) - 1);
  const wanted = argument.replace(/^\//, "").toLowerCase();
  const own = COMMANDS.find(({ name }) => name === wanted);
  if (own !== undefined) return described(own);
  if (LEAVING.test(wanted)) return "/exit   leave (also: /quit, exit, Ctrl-D)";
  const added = commands.all.find(({ name }) => name.toLowerCase() === wanted);
  if (added !== undefined) return visibleLine(`/${added.name} ${added.hint}   ${added.description}`);
  const near = nearest(wanted, [...COMMANDS.map(({ name }) => name), "exit"]);
  return visibleLine(
    `There is no /${wanted}${near === undefined ? "; /help lists all commands" : `; did you mean /${near}?`}`,
  );
}

const NAME_WIDTH = 18;
/** Narrower screens have the words below the name. */
const WIDE_SCREEN = 60;

/** Every row fits, so that the screen does not break it. */
function helpRows(name: string, says: string, width: number): readonly string[] {
  const indent = width < WIDE_SCREEN ? 4 : NAME_WIDTH;
  const words = wrapped(says, Math.max(20, width - indent)).map((row) => " ".repeat(indent) + row);
  if (width < WIDE_SCREEN || name.length + 2 > NAME_WIDTH) return [name, ...words];
  return [name.padEnd(NAME_WIDTH) + (words[0] ?? "").slice(NAME_WIDTH), ...words.slice(1)];
}

function allOf({ all, untrusted }: SlashCommands, width: number): string {
  const rows = [
    ...COMMANDS.map((each) => [typedAs(each), each.says] as const),
    ["/exit", "leave (also: /quit, exit, Ctrl-D)"] as const,
  ];
  const added = all.map(({ name, hint, description, origin }) => {
    const typed = visibleLine(`/${name} ${hint}`.trim());
    const whose = isOwn(name) ? "not used: the chat has a command with this name" : WHOSE[origin];
    return [typed, `${clip(visibleLine(description))} (${whose})`] as const;
  });
  const waiting = [...new Set(untrusted.map(({ kind }) => kind))].join(" and ");
  return [
    ...rows.flatMap(([name, says]) => helpRows(name, says, width)),
    ...(added.length === 0 ? [] : ["", "Added commands (their text is sent to the model):"]),
    ...added.flatMap(([name, says]) => helpRows(name, says, width)),
    ...(waiting === "" ? [] : ["", `The project has ${waiting} that are not trusted: harness trust`]),
    "",
    "/NAME ? describes one command. A backslash at the end continues the message on the next line.",
    "Ctrl-C cancels the work in progress. Up and Ctrl-R bring back earlier messages. Tab completes, also files after @.",
    "In a drawn chat, Esc also cancels, Ctrl-O shows all the output of a call, Ctrl-S puts aside what you typed.",
  ].join("\n");
}

const WHOSE = { user: "yours", project: "the project's" };
const MAX_SAYS = 160;
const clip = (text: string): string => truncate(text, MAX_SAYS);
const isOwn = (name: string): boolean =>
  LEAVING.test(name) || COMMANDS.some((each) => each.name === name.toLowerCase());

/** The commands that a line can reach: the chat's own take precedence. */
export const namesOf = (added: SlashCommands["all"]): readonly SlashName[] =>
  added.filter(({ name }) => !isOwn(name)).map(({ name, description }) => ({ name, says: description }));

export interface SlashName {
  readonly name: string;
  /** Name of the argument; left out if there is none. */
  readonly takes?: string;
  readonly says: string;
  /** Further lines that `?` shows. */
  readonly more?: readonly string[];
}

type Slash =
  | { readonly kind: "text" }
  | { readonly kind: "leave" }
  | { readonly kind: "command"; readonly name: string; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string; readonly near: string | undefined };

const LEAVING = /^(?:quit|exit)$/i;
/** A path begins with a slash too, but contains another one. */
const COMMAND = /^\/([A-Za-z][\w-]*|)(\?)?(?:\s+(.*))?$/s;

/** Whether a line is for the model, or for the chat itself. */
export function slashOf(line: string, known: readonly SlashName[]): Slash {
  const text = line.trim();
  if (LEAVING.test(text)) return { kind: "leave" };
  const match = COMMAND.exec(text);
  if (match === null) return { kind: "text" };
  const name = (match[1] ?? "").toLowerCase();
  if (LEAVING.test(name)) return { kind: "leave" };
  const names = known.map((each) => each.name);
  if (names.includes(name)) return { kind: "command", name, argument: match[2] ?? (match[3] ?? "").trim() };
  return { kind: "unknown", name, near: nearest(name, [...names, "quit", "exit"]) };
}

/** For the tab key: commands with this beginning, or the values of a command that has some. */
export function completed(
  line: string,
  known: readonly SlashName[],
  values: Readonly<Record<string, readonly string[]>>,
): readonly [readonly string[], string] {
  if (!line.startsWith("/")) return [[], line];
  const [, name = "", typed] = /^\/(\S*)(?:\s+(\S*))?$/.exec(line) ?? [];
  if (typed !== undefined) return [(values[name] ?? []).filter((value) => value.startsWith(typed)), typed];
  const names = [...known.map((each) => each.name), "quit", "exit"].map((each) => `/${each}`);
  return [names.filter((each) => each.startsWith(line)), line];
}
