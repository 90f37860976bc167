import * as z from "zod";
import { formatSize } from "../core/bounds.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import type { Desk } from "./tool-context.ts";
import { failed, missing, ok } from "./line-endings.ts";
import { count, forgiving } from "./forgiving-input.ts";
import { largePage, type Lines, pageNote, type Place } from "./pages.ts";
import { absolute, shown } from "./tool-paths.ts";
import { tokenOf, WHOLE } from "./seen-content.ts";
import { binaryKind, numbered, textAbout } from "./edits/file-text.ts";

const LINES = 2000;
const LINES_OF = "offset is the first line, limit how many lines";

const input = forgiving(
  z.strictObject({
    path: z.string(),
    offset: count.describe("first line").optional(),
    limit: count.optional(),
  }),
);

export const readFileTool = (desk: Desk): AnyTool =>
  anyTool({
    name: "read_file",
    instead: { start_line: LINES_OF, end_line: LINES_OF, lines: LINES_OF, range: LINES_OF },
    description: `Read a text file, lines numbered. At most ${LINES} lines at once; offset and limit page on.`,
    input,
    beside: true,
    where: "box",
    facts: ({ path }) => ({ ...NO_FACTS, reads: [absolute(desk.workspace, path)] }),
    run: ({ path, offset = 1, limit = LINES }, box, signal) => {
      const page = { first: Math.max(1, Math.floor(offset)), most: Math.max(1, Math.floor(limit)) };
      return read({ desk, box, signal, path: absolute(desk.workspace, path) }, page);
    },
  });

async function read(place: Place, wanted: Lines): Promise<ToolResult> {
  const { desk, box, path } = place;
  const result = await box.read(path, { offset: 0, limit: WHOLE });
  if (result.kind !== "ok") return missing(desk, box, result);
  const { content, size } = result.value;
  desk.seen.saw(path, await tokenOf(box, path, result.value));
  const name = shown(desk.workspace, path);
  const binary = binaryKind(content, path);
  if (binary !== undefined) return ok(`[${name}: ${binary}, ${formatSize(size)}; not shown]`);
  return size > WHOLE ? largePage(place, wanted, size) : whole(name, content, wanted);
}

function whole(name: string, content: Uint8Array, { first, most }: Lines): ToolResult {
  const { lines, notes } = textAbout(content);
  if (lines.length === 0) return ok(`[${name} is empty${notes.map((note) => `; ${note}`).join("")}]`);
  if (first > lines.length) return failed(`${name}: offset ${first} is behind its end, line ${lines.length}`);
  const page = lines.slice(first - 1, first - 1 + most);
  return ok(
    `${numbered(page, first)}\n${pageNote({ first, shown: page.length, total: lines.length, notes })}`,
  );
}
