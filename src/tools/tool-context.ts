import { asSeenFrom } from "../core/text/file-paths.ts";
import type { Plan } from "../core/work-plan.ts";
import { BOX_HOME, type Index } from "../core/ports.ts";
import type { Notes, NoteText, Outputs } from "../core/session.ts";
import type { ToolResult } from "../core/tool.ts";

/** Contents of files that the model knows, by absolute path. Every change is stored with the session. */
export interface SeenFiles {
  hashOf(path: string): string | undefined;
  /** The model has read the file in whole or in part, or written it. */
  saw(path: string, hash: string): void;
  forget(path: string): void;
}

/** Variables by name. */
export type Exported = ReadonlyMap<string, string>;

/** State that one shell call leaves to the next. */
export interface ShellState {
  /** Absolute path. */
  readonly folder: string;
  /** Exported in addition to the box's environment. */
  readonly env: Readonly<Record<string, string>>;
  move(folder: string, env: Readonly<Record<string, string>>): void;
}

/** A part of the task, for an agent with separate messages. */
export interface Part {
  readonly prompt: string;
  readonly maxTurns: number;
}

export interface TaskLook {
  readonly id: string;
  /** How long to wait for its end. */
  readonly waitMs: number;
  readonly cancel: boolean;
}

export interface Subagents {
  /** Returns only the subagent's last answer. */
  run(part: Part, signal: AbortSignal): Promise<ToolResult>;
  /** Starts a subagent that runs beside its caller, and ends with the run at the latest. */
  begin(part: Part, signal: AbortSignal): ToolResult;
  look(look: TaskLook, signal: AbortSignal): Promise<ToolResult>;
}

/** A person's own words, or one of the choices; undefined when they gave none. */
export type AskPerson = (
  asked: { readonly question: string; readonly choices: readonly string[] },
  signal: AbortSignal,
) => Promise<string | undefined>;

/** State that the tools of one agent share. The box is not part of it: it comes with each call. */
export interface ToolContext {
  /** Tells its jobs from those of other agents in the same box. */
  readonly agent: string;
  /** Absolute; the same path inside the box. */
  readonly workspace: string;
  readonly seen: SeenFiles;
  readonly shell: ShellState;
  readonly outputs: Outputs;
  readonly notes: Pick<Notes, "find"> & { readonly write: (note: NoteText) => unknown };
  /** Which of these exported variables later calls must not get; without this function, later calls get all. */
  readonly refused?: (variables: Exported) => Promise<ReadonlySet<string>>;
  /** Time limit of a command that names none. */
  readonly timeoutMs: number;
  /** The model has few parameters: it may write the part of a file that it thinks of as if it were the whole. */
  readonly isWeak?: () => boolean;
  readonly index?: Index;
  /** Only the parent has it: the plan shown to a person covers the whole run. */
  readonly plan?: (plan: Plan) => void;
  /** Only the parent has it: a subagent starts no others. */
  readonly subagents?: Subagents;
  /** Only when a person is there, and only for the main agent. */
  readonly person?: AskPerson;
}

/**
 * Absolute, without `.` or `..`, so that the path judged is the path used. `~` means the box's home, as for its
 * commands: taken as a name, it would create a folder that a shell would then take for the home.
 */
export function absolute(workspace: string, path: string): string {
  const kept: string[] = [];
  const from = /^~(?=\/|$)/.test(path) ? BOX_HOME + path.slice(1) : path;
  for (const name of (from.startsWith("/") ? from : `${workspace}/${from}`).split("/")) {
    if (name === "..") kept.pop();
    else if (name !== "" && name !== ".") kept.push(name);
  }
  return `/${kept.join("/")}`;
}

/** Relative to the workspace if the path lies in it, otherwise absolute; a name that would break the line is quoted. */
export function shown(workspace: string, path: string): string {
  if (path === workspace) return ".";
  return nameShown(asSeenFrom(workspace, path));
}

export const nameShown = (name: string): string =>
  /[\u0000-\u001F\u007F]/.test(name) ? JSON.stringify(name.toWellFormed()) : name.toWellFormed();

export const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
