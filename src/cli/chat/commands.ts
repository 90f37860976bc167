import type { SlashName } from "./slash.ts";
import type { Room } from "./room.ts";
import { type Output } from "../../render/tty/output.ts";

/** What a slash command does; it gives what is to be shown. */
export interface SlashCommand extends SlashName {
  readonly run: (room: Room, argument: string, screen: Output) => Promise<string> | string;
}

/** Those that need more than a few lines are loaded when they are typed. */
export const COMMANDS: readonly SlashCommand[] = [
  { name: "help", says: "this list", run: () => help() },
  {
    name: "clear",
    says: "forget the conversation",
    run: async (room) => (await import("./history-commands.ts")).clear(room),
  },
  {
    name: "compact",
    says: "summarise its older part",
    run: async (room) => (await import("./history-commands.ts")).compact(room),
  },
  {
    name: "undo",
    says: "take back the last message and its answer",
    run: async (room) => (await import("./history-commands.ts")).undo(room),
  },
  {
    name: "model",
    takes: "NAME",
    says: "show the model, or ask another one",
    run: async (room, argument) => (await import("./setting-commands.ts")).model(room, argument),
  },
  {
    name: "mode",
    takes: "MODE",
    says: "show what the box may touch, or change it",
    run: async (room, argument) => (await import("./setting-commands.ts")).mode(room, argument),
  },
  {
    name: "tools",
    says: "what the model can call",
    run: async (room, _, screen) => (await import("./setting-commands.ts")).tools(room, screen),
  },
  {
    name: "cost",
    says: "tokens, cost, and how full the window is",
    run: async (room) => (await import("./setting-commands.ts")).cost(room),
  },
  {
    name: "sessions",
    says: "the last ones of this folder",
    run: async (room, _, screen) => (await import("./session-commands.ts")).sessions(room, screen),
  },
  {
    name: "resume",
    takes: "ID",
    says: "go on with an earlier one",
    run: async (room, argument, screen) =>
      (await import("./session-commands.ts")).resume(room, argument, screen),
  },
];

const COLUMN = 16;

function help(): string {
  const rows = [
    ...COMMANDS.map(({ name, takes = "", says }) => [`/${name} ${takes}`.trim(), says] as const),
    ["/quit", "leave (also: exit, Ctrl-D)"] as const,
  ];
  return [
    ...rows.map(([name, says]) => `${name.padEnd(COLUMN)}${says}`),
    "",
    "A backslash at the end goes on in the next line.",
    "Ctrl-C cancels what is going on.",
  ].join("\n");
}
