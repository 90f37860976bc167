/** What the tools share: the state of their agent, paths and results in words, and inputs as models send them. */

import * as z from "zod";
import { asSeenFrom, lastName } from "../core/file-names.ts";
import { type Box, BOX_HOME, type ExecResult, type FileResult, type Index } from "../core/ports.ts";
import type { Plan } from "../core/run-record.ts";
import type { Notes, NoteText, Outputs } from "../core/session.ts";
import { failed, type ToolResult } from "../core/tool.ts";
import { nearest } from "../core/wording.ts";

/** Contents of files that the model knows, by absolute path. Every change is stored with the session. */
export interface SeenFiles {
  hashOf(path: string): string | undefined;
  /** The model has read the file in whole or in part, or written it. */
  saw(path: string, hash: string): void;
  forget(path: string): void;
}

/** Variables by name. */
export type ExportedVariables = ReadonlyMap<string, string>;

/** State that one shell call leaves to the next. */
export interface ShellState {
  /** Absolute path. */
  readonly folder: string;
  /** Exported in addition to the box's environment. */
  readonly env: Readonly<Record<string, string>>;
  move(folder: string, env: Readonly<Record<string, string>>): void;
}

/** A part of the task, for an agent with separate messages. */
export interface TaskPart {
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
  run(part: TaskPart, signal: AbortSignal): Promise<ToolResult>;
  /** Starts a subagent that runs beside its caller, and ends with the run at the latest. */
  begin(part: TaskPart, signal: AbortSignal): ToolResult;
  look(look: TaskLook, signal: AbortSignal): Promise<ToolResult>;
}

/** A person's own words, or one of the choices; undefined when they gave none. */
export type AskPerson = (
  question: { readonly question: string; readonly choices: readonly string[] },
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
  readonly refused?: (variables: ExportedVariables) => Promise<ReadonlySet<string>>;
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
export function displayPath(workspace: string, path: string): string {
  if (path === workspace) return ".";
  return nameShown(asSeenFrom(workspace, path));
}

export const nameShown = (name: string): string =>
  /[\u0000-\u001F\u007F]/.test(name) ? JSON.stringify(name.toWellFormed()) : name.toWellFormed();

const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));

export type FileRefusal = Exclude<FileResult<never>, { readonly kind: "ok" }>;

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "no such file or folder",
  EISDIR: "is a folder; list_dir shows what is in it",
  ENOTDIR: "a part of this path is a file, not a folder",
  EACCES: "permission denied",
  EINVAL: "not a regular file: a FIFO, socket or device, or a name that no file can have",
  ELOOP: "a link that leads nowhere",
  ENAMETOOLONG: "the name is too long",
  EFBIG: "larger than the 64 MiB that can be written at once",
  ENOSPC: "the disk is full; nothing was written",
  EDQUOT: "the disk quota is used up; nothing was written",
};

const DISK: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** The message to the model for a file operation that the box refused. */
export function refusal({ workspace }: Pick<ToolContext, "workspace">, refused: FileRefusal): ToolResult {
  const { kind, code, path } = refused;
  const name = displayPath(workspace, path);
  if (kind === "blocked")
    return {
      kind,
      cause: "filesystem",
      text: `${name}: blocked by the sandbox (${code}): this path is protected, and other ways to reach it are blocked too. Continue without it, or say that the task needs it.`,
    };
  const text = `${name}: ${WORDS[code] ?? code}`;
  return failed(text, DISK.has(code) ? "disk" : "filesystem");
}

/** The same, with similar names as suggestions. */
export async function missing(context: ToolContext, box: Box, refused: FileRefusal): Promise<ToolResult> {
  const result = refusal(context, refused);
  return refused.code === "ENOENT"
    ? { ...result, text: result.text + (await hint(context, box, refused.path)) }
    : result;
}

const MAX_NAMES = 12;

async function hint(context: ToolContext, box: Box, path: string): Promise<string> {
  const folder = folderOf(path);
  const listed = await box.list(folder);
  if (listed.kind !== "ok") return path === "/" ? "" : hint(context, box, folder);
  const names = listed.value.map(({ name, kind }) => (kind === "folder" ? `${name}/` : name)).toSorted();
  const wanted = lastName(path);
  if (names.includes(wanted)) return ": it is a link that leads out of the box, or nowhere";
  const like = nearest(wanted, names) ?? names.find((name) => name.toLowerCase() === wanted.toLowerCase());
  if (like !== undefined) return `. Did you mean ${nameShown(like)}?`;
  const some = names.slice(0, MAX_NAMES).map(nameShown).join(" ");
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  return `. In ${displayPath(context.workspace, folder)}: ${some === "" ? "nothing" : some}${more}`;
}

/** The result of a program that the box ended; undefined when it exited by itself. */
export function cutShort({ cause, reason }: ExecResult, doing: string): ToolResult | undefined {
  if (cause === "timeout") return { kind: "timed_out", cause, text: `${doing}: ${reason}` };
  if (cause === "user") return { kind: "cancelled", cause, text: `${doing}: cancelled` };
  return cause === null || cause === "program" ? undefined : failed(`${doing}: ${reason}`, cause);
}

/** Parameter names of other tools that models know → names of our tools. */
const ALIASES: Readonly<Record<string, string>> = {
  file_path: "path",
  filename: "path",
  old_string: "old",
  new_string: "new",
  old_text: "old",
  new_text: "new",
  replace_all: "all",
  case_insensitive: "ignore_case",
  run_in_background: "background",
  cmd: "command",
};

/** Remarks about a call that many models add. Dropping them does not change the call. */
const COMMENTARY: ReadonlySet<string> = new Set([
  "comment",
  "description",
  "explanation",
  "justification",
  "purpose",
  "rationale",
  "reason",
  "reasoning",
  "thought",
  "thoughts",
]);

/**
 * Accepts an input as small models send it: null for an omitted field, names of other tools, a list written as text,
 * remarks. Any other name is an error: dropping it would silently ignore what the model meant.
 */
export function lenientInput<S extends z.ZodObject<z.ZodRawShape, z.core.$strict>>(
  schema: S,
): z.ZodPreprocess<S> {
  const known: ReadonlySet<string> = new Set(Object.keys(schema.shape));
  return z.preprocess((value) => normalizeInput(value, known), schema);
}

function normalizeInput(value: unknown, known: ReadonlySet<string>): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([name, one]) => one !== null && !isComment(name, one, known));
  const names = new Set(entries.map(([name]) => name));
  return Object.fromEntries(
    entries.map(([name, one]) => {
      const own = ALIASES[name];
      return own !== undefined && known.has(own) && !names.has(own) ? [own, one] : [name, one];
    }),
  );
}

const isComment = (name: string, value: unknown, known: ReadonlySet<string>): boolean =>
  value === undefined || (typeof value === "string" && COMMENTARY.has(name) && !known.has(name));

/** Some models send an empty text for an omitted field. Blanks are not a valid command, task or name either. */
export const isGiven = (value: string | true | undefined): value is string | true =>
  value === true || (value !== undefined && value.trim() !== "");

export const flag = z.preprocess(
  (value) => (value === "true" ? true : value === "false" ? false : value),
  z.boolean(),
);

/** A whole number; some models send it as text. */
export const count = z.preprocess(
  (value) => (typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value),
  z.number().min(0),
);

export const listOf = <S extends z.ZodType>(item: S): z.ZodPreprocess<z.ZodArray<S>> =>
  z.preprocess((value) => (typeof value === "string" ? parsed(value) : value), z.array(item));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
