/** The tool read_file, how it shows a file, and what a model is known to have read of a file that it changes. */

import * as z from "zod";
import type { Box, FileContent } from "../core/ports.ts";
import { textOfBytes } from "../core/raw-data.ts";
import { type AnyTool, anyTool, failed, NO_FACTS, ok, type ToolResult } from "../core/tool.ts";
import { formatSize } from "../core/wording.ts";
import {
  absolute,
  count,
  cutShort,
  lenientInput,
  missing,
  refusal,
  displayPath,
  type ToolContext,
} from "./tool-context.ts";

const MAX_LINES = 2000;
const LINES_OF = "offset is the first line, limit how many lines";

const input = lenientInput(
  z.strictObject({
    path: z.string(),
    offset: count.describe("first line").optional(),
    limit: count.optional(),
  }),
);

export const readFileTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "read_file",
    instead: { start_line: LINES_OF, end_line: LINES_OF, lines: LINES_OF, range: LINES_OF },
    description: `Read a text file, lines numbered. At most ${MAX_LINES} lines at once; offset and limit page on.`,
    input,
    concurrent: true,
    where: "box",
    facts: ({ path }) => ({ ...NO_FACTS, reads: [absolute(context.workspace, path)] }),
    run: ({ path, offset = 1, limit = MAX_LINES }, box, signal) => {
      const page = { first: Math.max(1, Math.floor(offset)), most: Math.max(1, Math.floor(limit)) };
      return read({ context, box, signal, path: absolute(context.workspace, path) }, page);
    },
  });

async function read(place: Place, wanted: Lines): Promise<ToolResult> {
  const { context, box, path } = place;
  const result = await box.read(path, { offset: 0, limit: MAX_WHOLE_BYTES });
  if (result.kind !== "ok") return missing(context, box, result);
  const { content, size } = result.value;
  context.seen.saw(path, await tokenOf(box, path, result.value));
  const name = displayPath(context.workspace, path);
  const binary = binaryKind(content, path);
  if (binary !== undefined) return ok(`[${name}: ${binary}, ${formatSize(size)}; not shown]`);
  return size > MAX_WHOLE_BYTES ? largePage(place, wanted, size) : filePage(name, content, wanted);
}

function filePage(name: string, content: Uint8Array, { first, most }: Lines): ToolResult {
  const { lines, notes } = textAbout(content);
  if (lines.length === 0) return ok(`[${name} is empty${notes.map((note) => `; ${note}`).join("")}]`);
  if (first > lines.length) return failed(`${name}: offset ${first} is past its end, line ${lines.length}`);
  const page = lines.slice(first - 1, first - 1 + most);
  return ok(
    `${numbered(page, first)}\n${pageNote({ first, shown: page.length, total: lines.length, notes })}`,
  );
}

interface Place {
  readonly context: ToolContext;
  readonly box: Box;
  readonly signal: AbortSignal;
  /** Absolute path. */
  readonly path: string;
}

interface Lines {
  /** Counted from 1. */
  readonly first: number;
  readonly most: number;
}

interface PageFacts {
  readonly first: number;
  readonly shown: number;
  readonly total: number;
  readonly notes: readonly string[];
}

function pageNote({ first, shown, total, notes }: PageFacts): string {
  const last = first + shown - 1;
  const which =
    shown === total ? (total === 1 ? "1 line" : `all ${total} lines`) : `lines ${first}-${last} of ${total}`;
  const next = last < total ? [`go on with offset ${last + 1}`] : [];
  return `[${[which, ...next, ...notes].join("; ")}]`;
}

const SCAN_MS = 60_000;

/** Lines of a file that is too large to transfer: they are found inside the box. */
async function largePage(
  { context, box, path, signal }: Place,
  { first, most }: Lines,
  size: number,
): Promise<ToolResult> {
  const last = first + most - 1;
  const ask = (words: readonly string[]) =>
    box.exec(
      { words, env: { LC_ALL: "C" }, timeoutMs: SCAN_MS, keep: { head: MAX_WHOLE_BYTES, tail: 0 } },
      signal,
    );
  const [page, counted] = await Promise.all([
    ask(["sed", "-n", `${first},${last}p;${last}q`, "--", path]),
    ask(["grep", "-ac", "", "--", path]),
  ]);
  const name = displayPath(context.workspace, path);
  const cut = cutShort(page, `reading ${name}`) ?? cutShort(counted, `counting the lines of ${name}`);
  if (cut !== undefined) return cut;
  const total = Number(Buffer.from(counted.stdout.head).toString("utf8"));
  if (page.exit_code !== 0 || !(total > 0)) return failed(`${name}: could not be read: ${page.reason}`);
  if (first > total) return failed(`${name}: offset ${first} is past its end, line ${total}`);
  const { lines, notes } = textAbout(page.stdout.head);
  const lost = page.stdout.total - page.stdout.head.length;
  const rest =
    lost === 0
      ? []
      : [`the last line shown is cut: ${formatSize(lost)} follow; use a smaller limit, or bash`];
  const about = [formatSize(size), ...rest, ...notes.filter((note) => !note.startsWith("no newline"))];
  return ok(`${numbered(lines, first)}\n${pageNote({ first, shown: lines.length, total, notes: about })}`);
}

/** Largest file that is read in one piece. Larger ones are compared by size and time, not by content. */
const MAX_WHOLE_BYTES = 8 * 2 ** 20;
const NEVER = new AbortController().signal;

/** A fingerprint by which a later look recognises this content. */
async function tokenOf(box: Box, path: string, { content, size }: FileContent): Promise<string> {
  if (size > MAX_WHOLE_BYTES) return largeToken(box, path);
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
  const output = Buffer.from(stdout.head).toString("utf8").trim();
  return exit_code === 0 && output !== "" ? output : `unknown-${crypto.randomUUID()}`;
}

/** A file that may be changed: the model knows its current content. */
type KnownContent =
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
  const name = displayPath(context.workspace, path);
  const { content, size } = read.value;
  if (size > content.length) return refused(failed(`${name}: too large for this tool; change it with bash`));
  const seen = context.seen.hashOf(path);
  if (seen === undefined) return refused(await unreadResult(context, box, { path, read: read.value, shows }));
  return seen === (await tokenOf(box, path, read.value))
    ? { kind: "known", content }
    : refused(failed(`${name}: it has changed since you read it: read it again. Nothing was changed.`));
}

/** Limits of a file that is shown in answer to a call that had not read it. */
const MAX_SHOWN_BYTES = 16_000;
const MAX_SHOWN_LINES = 400;

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
  const name = displayPath(context.workspace, path);
  const { lines, notes } = textAbout(read.content);
  const fits = read.content.length <= MAX_SHOWN_BYTES && lines.length > 0 && lines.length <= MAX_SHOWN_LINES;
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

export const BOM = "\uFEFF";
export const WITH_BOM = "starts with a BOM";
export const CRLF = "CRLF line ends";

/** A text's lines, and remarks about the text. */
interface TextAbout {
  /** Lines without their ends; none for an empty text. */
  readonly lines: readonly string[];
  readonly notes: readonly string[];
}

/** The text as it is shown: without byte order mark and without carriage returns at line ends. */
export function textAbout(bytes: Uint8Array): TextAbout {
  const text = textOfBytes(bytes);
  const bom = text.startsWith(BOM);
  const lines = (bom ? text.slice(1) : text).split("\n");
  const ended = lines.at(-1) === "";
  if (ended) lines.pop();
  const returns = lines.filter((line) => line.endsWith("\r")).length;
  const notes = [
    ...(bom ? [WITH_BOM] : []),
    ...(returns === 0 ? [] : [returns >= lines.length - (ended ? 0 : 1) ? CRLF : "mixed line ends"]),
    ...(ended || lines.length === 0 ? [] : ["no newline at the end"]),
    ...(text.isWellFormed() ? [] : ["bytes that are not UTF-8 are shown as \uFFFD"]),
  ];
  return {
    lines: lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line).toWellFormed()),
    notes,
  };
}

export const numbered = (lines: readonly string[], first: number): string =>
  lines.map((line, index) => `${first + index}\t${line}`).join("\n");

const MAGIC: readonly (readonly [string, string])[] = [
  ["89504e47", "PNG image"],
  ["ffd8ff", "JPEG image"],
  ["474946383", "GIF image"],
  ["424d", "BMP image"],
  ["25504446", "PDF document"],
  ["504b0304", "ZIP archive"],
  ["1f8b", "gzip archive"],
  ["7f454c46", "ELF program"],
  ["fffe", "UTF-16 text"],
  ["feff", "UTF-16 text"],
];

/** The kind of a file that is not UTF-8 text; undefined for text. */
function binaryKind(bytes: Uint8Array, name: string): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 12));
  if (start.toString("latin1", 0, 4) === "RIFF" && start.toString("latin1", 8) === "WEBP")
    return "WebP image";
  const hex = start.toString("hex");
  const known = MAGIC.find(([magic]) => hex.startsWith(magic))?.[1];
  if (bytes.includes(0)) return known ?? "binary file";
  return /\.(png|jpe?g|gif|webp|bmp)$/i.test(name) ? known : undefined;
}
