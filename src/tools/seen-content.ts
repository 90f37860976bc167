import type { Box, FileContent } from "../core/ports.ts";
import type { ToolResult } from "../core/tool.ts";
import { binaryKind, numbered, textAbout } from "./edits/file-text.ts";
import { type ToolContext, shown } from "./tool-context.ts";
import { failed, refusal } from "./tool-results.ts";
/** Largest file that is read in one piece. Larger ones are compared by size and time, not by content. */
export const WHOLE = 8 * 2 ** 20;
const NEVER = new AbortController().signal;

/** A fingerprint by which a later look recognises this content. */
export async function tokenOf(box: Box, path: string, { content, size }: FileContent): Promise<string> {
  if (size > WHOLE) return largeToken(box, path);
  const digest = await crypto.subtle.digest("SHA-256", content);
  return Buffer.from(digest).toString("hex");
}

/** Size and time of a link's target, with the fraction of a second that the port's `modified` lacks. */
async function largeToken(box: Box, path: string): Promise<string> {
  const words = ["stat", "-L", "-c", "%s-%.9Y", "--", path];
  const { exit_code, stdout } = await box.exec(
    { words, timeoutMs: 10_000, keep: { head: 200, tail: 0 } },
    NEVER,
  );
  const said = Buffer.from(stdout.head).toString("utf8").trim();
  return exit_code === 0 && said !== "" ? said : `unknown-${crypto.randomUUID()}`;
}

/** A file that may be changed: the model knows its current content. */
export type KnownContent =
  | { readonly kind: "known"; readonly content: Uint8Array }
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly result: ToolResult };

const refused = (result: ToolResult): KnownContent => ({ kind: "refused", result });

/**
 * Reads a file that a call wants to change. `shows`: the call declared that it may read the file, so the content of an
 * unread file may be shown.
 */
export async function knownContent(
  context: ToolContext,
  box: Box,
  path: string,
  shows: "shows" | "keeps",
): Promise<KnownContent> {
  const read = await box.read(path);
  if (read.kind !== "ok")
    return read.code === "ENOENT" ? { kind: "absent" } : refused(refusal(context, read));
  const name = shown(context.workspace, path);
  const { content, size } = read.value;
  if (size > content.length) return refused(failed(`${name}: too large for this tool; change it with bash`));
  const seen = context.seen.hashOf(path);
  if (seen === undefined) return refused(await unreadResult(context, box, { path, read: read.value, shows }));
  return seen === (await tokenOf(box, path, read.value))
    ? { kind: "known", content }
    : refused(failed(`${name}: it has changed since you read it: read it again. Nothing was changed.`));
}

/** Limits of a file that is shown in answer to a call that had not read it. */
const MAX_BYTES = 16_000;
const MAX_LINES = 400;

interface UnreadFile {
  readonly path: string;
  readonly read: FileContent;
  readonly shows: "shows" | "keeps";
}

/** A small file comes with the refusal, as `read_file` shows it, and counts as read: the next call can be right. */
async function unreadResult(
  context: ToolContext,
  box: Box,
  { path, read, shows }: UnreadFile,
): Promise<ToolResult> {
  const name = shown(context.workspace, path);
  const { lines, notes } = textAbout(read.content);
  const fits = read.content.length <= MAX_BYTES && lines.length > 0 && lines.length <= MAX_LINES;
  if (shows === "keeps" || !fits || binaryKind(read.content, path) !== undefined)
    return failed(`${name}: read it with read_file first. Nothing was changed.`);
  context.seen.saw(path, await tokenOf(box, path, read));
  const about = [lines.length === 1 ? "1 line" : `all ${lines.length} lines`, ...notes].join("; ");
  const head = `${name}: you had not read it. Nothing was changed. This is the file, which counts as read now; call again with what stands in it:`;
  return { ...failed(`${head}\n${numbered(lines, 1)}\n[${about}]`), missed: "unread" };
}

/** Files that the call reads because it changes them before the model knows them. */
export const unreadPaths = ({ seen }: ToolContext, paths: readonly string[]): readonly string[] =>
  paths.filter((path) => seen.hashOf(path) === undefined);

/** Call after a write: the model knows what it has just written. */
export async function markWritten(
  context: ToolContext,
  box: Box,
  path: string,
  content: Uint8Array,
): Promise<void> {
  context.seen.saw(path, await tokenOf(box, path, { content, size: content.length }));
}
