import { nearest } from "../core/spelling.ts";
import { visibleLine } from "../core/visible.ts";
import type { SlashCommands } from "../app/extensions/slash-commands.ts";
import type { Output } from "../render/tty/output.ts";
import type { ChatController } from "../app/run/chat-controller.ts";

/** What a slash command does; it gives what is to be shown. */
interface SlashCommand extends SlashName {
  readonly run: (chat: ChatController, argument: string, screen: Output) => Promise<string> | string;
}

/** Those that need more than a few lines are loaded when they are typed. */
export const COMMANDS: readonly SlashCommand[] = [
  { name: "help", says: "this list", run: async (chat) => help(await chat.commands()) },
  {
    name: "clear",
    says: "forget the conversation",
    run: async (chat) => (await import("./chat-command-actions.ts")).clear(chat),
  },
  {
    name: "compact",
    says: "summarise its older part",
    run: async (chat) => (await import("./chat-command-actions.ts")).compact(chat),
  },
  {
    name: "undo",
    says: "take back the last message and its answer",
    run: async (chat) => (await import("./chat-command-actions.ts")).undo(chat),
  },
  {
    name: "model",
    takes: "NAME",
    says: "show the model, or ask another one",
    run: async (chat, argument) => (await import("./chat-command-actions.ts")).model(chat, argument),
  },
  {
    name: "mode",
    takes: "MODE",
    says: "show what the box may touch, or change it",
    run: async (chat, argument) => (await import("./chat-command-actions.ts")).mode(chat, argument),
  },
  {
    name: "grant",
    takes: "NAME",
    says: "show what the box may reach, or add to it (always NAME: for later, too)",
    run: async (chat, argument) => (await import("./chat-command-actions.ts")).grant(chat, argument),
  },
  {
    name: "web",
    says: "whether pages are read and searched for, and where",
    run: async (chat) => (await import("./chat-command-actions.ts")).web(chat),
  },
  {
    name: "tools",
    says: "what the model can call",
    run: async (chat, _, screen) => (await import("./chat-command-actions.ts")).tools(chat, screen),
  },
  {
    name: "cost",
    says: "tokens, cost, and how full the window is",
    run: async (chat) => (await import("./chat-command-actions.ts")).cost(chat),
  },
  {
    name: "sessions",
    says: "the last ones of this folder",
    run: async (chat, _, screen) => (await import("./chat-command-actions.ts")).sessions(chat, screen),
  },
  {
    name: "resume",
    takes: "ID",
    says: "go on with an earlier one",
    run: async (chat, argument, screen) =>
      (await import("./chat-command-actions.ts")).resume(chat, argument, screen),
  },
];

const COLUMN = 16;

function help({ all, untrusted }: SlashCommands): string {
  const rows = [
    ...COMMANDS.map(({ name, takes = "", says }) => [`/${name} ${takes}`.trim(), says] as const),
    ["/quit", "leave (also: exit, Ctrl-D)"] as const,
  ];
  const added = all.map(({ name, hint, description, origin }) => {
    const typed = visibleLine(`/${name} ${hint}`.trim());
    const whose = isOwn(name) ? "never: the chat has one of this name" : WHOSE[origin];
    return [typed, `${clip(visibleLine(description))} (${whose})`] as const;
  });
  const waiting = [...new Set(untrusted.map(({ kind }) => kind))].join(" and ");
  return [
    ...rows.map(([name, says]) => `${name.padEnd(COLUMN)}${says}`),
    ...(added.length === 0 ? [] : ["", "Added, and said to the model in your place:"]),
    ...added.map(([name, says]) => `${name.padEnd(COLUMN - 2)}  ${says}`),
    ...(waiting === "" ? [] : ["", `The project has ${waiting} that are not trusted: harness trust`]),
    "",
    "A backslash at the end goes on in the next line.",
    "Ctrl-C cancels what is going on.",
  ].join("\n");
}

const WHOSE = { user: "yours", project: "the project's" };
const MAX_SAYS = 160;
const clip = (text: string): string => (text.length <= MAX_SAYS ? text : `${text.slice(0, MAX_SAYS)}…`);
const isOwn = (name: string): boolean =>
  LEAVING.test(name) || COMMANDS.some((each) => each.name === name.toLowerCase());

/** Those that a line can reach: the chat's own come first. */
export const namesOf = (added: SlashCommands["all"]): readonly SlashName[] =>
  added.filter(({ name }) => !isOwn(name)).map(({ name, description }) => ({ name, says: description }));

export interface SlashName {
  readonly name: string;
  /** Of its argument; none when left out. */
  readonly takes?: string;
  readonly says: string;
}

type Slash =
  | { readonly kind: "text" }
  | { readonly kind: "leave" }
  | { readonly kind: "command"; readonly name: string; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string; readonly near: string | undefined };

const LEAVING = /^(?:quit|exit)$/i;
/** A path begins with a slash too, and goes on with one. */
const COMMAND = /^\/([A-Za-z-]*)(?:\s+(.*))?$/s;

/** What a line is: for the model, or for the chat itself. */
export function slashOf(line: string, known: readonly SlashName[]): Slash {
  const text = line.trim();
  if (LEAVING.test(text)) return { kind: "leave" };
  const match = COMMAND.exec(text);
  if (match === null) return { kind: "text" };
  const name = (match[1] ?? "").toLowerCase();
  if (LEAVING.test(name)) return { kind: "leave" };
  const names = known.map((each) => each.name);
  if (names.includes(name)) return { kind: "command", name, argument: (match[2] ?? "").trim() };
  return { kind: "unknown", name, near: nearest(name, [...names, "quit", "exit"]) };
}

/** For the tab key: the commands that begin so, then the values of a command that has some. */
export function completed(
  line: string,
  known: readonly SlashName[],
  values: Readonly<Record<string, readonly string[]>>,
): readonly [readonly string[], string] {
  if (!line.startsWith("/")) return [[], line];
  const [, name = "", given] = /^\/(\S*)(?:\s+(\S*))?$/.exec(line) ?? [];
  if (given !== undefined) return [(values[name] ?? []).filter((value) => value.startsWith(given)), given];
  const names = [...known.map((each) => each.name), "quit", "exit"].map((each) => `/${each}`);
  return [names.filter((each) => each.startsWith(line)), line];
}
