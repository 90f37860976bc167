import * as z from "zod";
import { textOfBytes } from "../core/text/bytes.ts";
import type { Box } from "../core/ports.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { type ToolContext, absolute, shown } from "./tool-context.ts";
import { ok, refusal } from "./tool-results.ts";
import { forgiving } from "./forgiving-input.ts";
import { knownContent, wrote } from "./seen-content.ts";
import { boundedDiff, compactDiff, linesOf } from "./edits/text-edit.ts";

const input = forgiving(z.strictObject({ path: z.string(), content: z.string() }));

export const writeFileTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "write_file",
    description: "Make a file, or replace the whole of one you have read.",
    input,
    beside: false,
    where: "box",
    facts: ({ path }) => ({ ...NO_FACTS, writes: [absolute(context.workspace, path)] }),
    shown: ({ content }) => `@@ all of the file @@\n${linesOf("", content)}`,
    run: ({ path, content }, box) => write({ context, box }, absolute(context.workspace, path), content),
  });

interface At {
  readonly context: ToolContext;
  readonly box: Box;
}

async function write({ context, box }: At, path: string, text: string): Promise<ToolResult> {
  const known = await knownContent(context, box, path, "keeps");
  if (known.kind === "refused") return known.result;
  const content = Buffer.from(text, "utf8");
  const name = shown(context.workspace, path);
  // Nothing is changed, its time neither: what a run changed is told by that.
  if (known.kind !== "absent" && content.equals(known.content))
    return { ...ok(`${name}: it already had this content`), unchanged: true };
  const written = await box.write(path, content);
  if (written.kind !== "ok") return refusal(context, written);
  await wrote(context, box, path, content);
  const count = text.split("\n").length - (text.endsWith("\n") || text === "" ? 1 : 0);
  if (known.kind === "absent") return ok(`${name}: made, ${count} ${count === 1 ? "line" : "lines"}`);
  if (known.content.includes(0)) return ok(`${name}: replaced; it was a binary file`);
  const before = textOfBytes(known.content);
  const { added, removed, lines } = compactDiff(before, text);
  return ok(`${name}: replaced (+${added} -${removed})\n${boundedDiff(lines)}`);
}
