import * as z from "zod";
import { formatSize } from "../core/text/bounds.ts";
import type { Box } from "../core/ports.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { binaryKind, numbered, textAbout } from "./edits/file-text.ts";
import { count, forgiving } from "./forgiving-input.ts";
import { tokenOf, WHOLE } from "./seen-content.ts";
import { absolute, type ToolContext, shown } from "./tool-context.ts";
import { cutShort, failed, missing, ok } from "./tool-results.ts";

const LINES = 2000;
const LINES_OF = "offset is the first line, limit how many lines";

const input = forgiving(
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
    description: `Read a text file, lines numbered. At most ${LINES} lines at once; offset and limit page on.`,
    input,
    concurrent: true,
    where: "box",
    facts: ({ path }) => ({ ...NO_FACTS, reads: [absolute(context.workspace, path)] }),
    run: ({ path, offset = 1, limit = LINES }, box, signal) => {
      const page = { first: Math.max(1, Math.floor(offset)), most: Math.max(1, Math.floor(limit)) };
      return read({ context, box, signal, path: absolute(context.workspace, path) }, page);
    },
  });

async function read(place: Place, wanted: Lines): Promise<ToolResult> {
  const { context, box, path } = place;
  const result = await box.read(path, { offset: 0, limit: WHOLE });
  if (result.kind !== "ok") return missing(context, box, result);
  const { content, size } = result.value;
  context.seen.saw(path, await tokenOf(box, path, result.value));
  const name = shown(context.workspace, path);
  const binary = binaryKind(content, path);
  if (binary !== undefined) return ok(`[${name}: ${binary}, ${formatSize(size)}; not shown]`);
  return size > WHOLE ? largePage(place, wanted, size) : whole(name, content, wanted);
}

function whole(name: string, content: Uint8Array, { first, most }: Lines): ToolResult {
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
    box.exec({ words, env: { LC_ALL: "C" }, timeoutMs: SCAN_MS, keep: { head: WHOLE, tail: 0 } }, signal);
  const [page, counted] = await Promise.all([
    ask(["sed", "-n", `${first},${last}p;${last}q`, "--", path]),
    ask(["grep", "-ac", "", "--", path]),
  ]);
  const name = shown(context.workspace, path);
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
