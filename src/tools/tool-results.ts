import type { Cause } from "../core/errors.ts";
import type { Box, ExecResult, FileResult } from "../core/ports.ts";
import { lastName } from "../core/text/file-paths.ts";
import { nearest } from "../core/text/spelling.ts";
import type { ToolResult } from "../core/tool.ts";
import { folderOf, nameShown, shown, type ToolContext } from "./tool-context.ts";

export type FileRefusal = Exclude<FileResult<never>, { readonly kind: "ok" }>;

export const ok = (text: string): ToolResult => ({ kind: "ok", text });

export const failed = (text: string, cause: Cause = "program"): ToolResult => ({
  kind: "failed",
  cause,
  text,
});

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
  const name = shown(workspace, path);
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
  const told = refusal(context, refused);
  return refused.code === "ENOENT"
    ? { ...told, text: told.text + (await hint(context, box, refused.path)) }
    : told;
}

const NAMES = 12;

async function hint(context: ToolContext, box: Box, path: string): Promise<string> {
  const folder = folderOf(path);
  const listed = await box.list(folder);
  if (listed.kind !== "ok") return path === "/" ? "" : hint(context, box, folder);
  const names = listed.value.map(({ name, kind }) => (kind === "folder" ? `${name}/` : name)).toSorted();
  const wanted = lastName(path);
  if (names.includes(wanted)) return ": it is a link that leads out of the box, or nowhere";
  const like = nearest(wanted, names) ?? names.find((name) => name.toLowerCase() === wanted.toLowerCase());
  if (like !== undefined) return `. Did you mean ${nameShown(like)}?`;
  const some = names.slice(0, NAMES).map(nameShown).join(" ");
  const more = names.length > NAMES ? ` and ${names.length - NAMES} more` : "";
  return `. In ${shown(context.workspace, folder)}: ${some === "" ? "nothing" : some}${more}`;
}

/** The result of a program that the box ended; undefined when it exited by itself. */
export function cutShort({ cause, reason }: ExecResult, doing: string): ToolResult | undefined {
  if (cause === "timeout") return { kind: "timed_out", cause, text: `${doing}: ${reason}` };
  if (cause === "user") return { kind: "cancelled", cause, text: `${doing}: cancelled` };
  return cause === null || cause === "program" ? undefined : failed(`${doing}: ${reason}`, cause);
}
