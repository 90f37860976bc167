import type { Index } from "../core/ports.ts";
import type { Notes, Outputs } from "../core/session.ts";
import type { ToolResult } from "../core/tool.ts";

/** Which contents of files the model knows, by absolute path. Every change of it is remembered with the session. */
export interface SeenFiles {
  hashOf(path: string): string | undefined;
  /** The model has read it whole or in part, or written it. */
  saw(path: string, hash: string): void;
  forget(path: string): void;
}

/** Variables by their names. */
export type Exported = ReadonlyMap<string, string>;

/** What one shell call leaves to the next. */
export interface ShellState {
  /** Absolute. */
  readonly folder: string;
  /** Exported over the box's own environment. */
  readonly env: Readonly<Record<string, string>>;
  move(folder: string, env: Readonly<Record<string, string>>): void;
}

/** Does a part of the task with a memory of its own; only its last word comes back. */
export type Spawn = (
  part: { readonly prompt: string; readonly maxTurns: number },
  signal: AbortSignal,
) => Promise<ToolResult>;

/** What the tools of one agent share. The box is not on it: it comes with each call. */
export interface ToolContext {
  /** Tells its jobs from those of other agents in the same box. */
  readonly agent: string;
  /** Absolute; the same path inside the box. */
  readonly workspace: string;
  readonly seen: SeenFiles;
  readonly shell: ShellState;
  readonly outputs: Outputs;
  readonly notes: Notes;
  /** Names of those of these exported variables that do not go on to later calls; absent, all do. */
  readonly refused?: (variables: Exported) => Promise<ReadonlySet<string>>;
  /** For a command that names no limit of its own. */
  readonly timeoutMs: number;
  readonly index?: Index;
  /** Only the parent has it: a subagent starts none. */
  readonly spawn?: Spawn;
}

/** Absolute, without `.` or `..`: what is judged is what is touched. */
export function absolute(workspace: string, path: string): string {
  const kept: string[] = [];
  for (const name of (path.startsWith("/") ? path : `${workspace}/${path}`).split("/")) {
    if (name === "..") kept.pop();
    else if (name !== "" && name !== ".") kept.push(name);
  }
  return `/${kept.join("/")}`;
}

/** Below the workspace as the model writes it, elsewhere absolute; a name that would break the line is quoted. */
export function shown(workspace: string, path: string): string {
  if (path === workspace) return ".";
  return nameShown(path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path);
}

export const nameShown = (name: string): string =>
  /[\u0000-\u001F\u007F]/.test(name) ? JSON.stringify(name.toWellFormed()) : name.toWellFormed();

export const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
