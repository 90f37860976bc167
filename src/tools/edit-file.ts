import * as z from "zod";
import { bytesOfText, textOfBytes } from "../core/text/bytes.ts";
import type { Box } from "../core/ports.ts";
import { counted } from "../core/text/short-lists.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { type ToolContext, absolute, shown } from "./tool-context.ts";
import { failed, ok, refusal } from "./tool-results.ts";
import { flag, forgiving, listOf } from "./forgiving-input.ts";
import { knownContent, unreadPaths, markWritten } from "./seen-content.ts";
import { boundedDiff, compactDiff, type Edit, linesOf, replaced } from "./edits/text-edit.ts";
const editForm = forgiving(z.strictObject({ old: z.string(), new: z.string(), all: flag.optional() }));

const input = forgiving(
  z
    .strictObject({
      path: z.string(),
      old: z.string().optional(),
      new: z.string().optional(),
      all: flag.describe("every occurrence").optional(),
      edits: listOf(editForm).describe("several at once, instead of old and new").optional(),
    })
    .refine(
      ({ old, new: young, edits = [] }) =>
        edits.length > 0
          ? old === undefined && young === undefined
          : old !== undefined && young !== undefined,
      "give either old and new, or edits",
    ),
);

export const editFileTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "edit_file",
    description:
      "Replace exact text in a file you have read. old must be there once, spaces included. All edits are made or none.",
    input,
    concurrent: false,
    where: "box",
    facts: ({ path }) => {
      const writes = [absolute(context.workspace, path)];
      return { ...NO_FACTS, reads: unreadPaths(context, writes), writes };
    },
    shown: (given) => editsOf(given).map(editLines).join("\n"),
    run: ({ path, ...given }, box) =>
      edit({ context, box }, absolute(context.workspace, path), editsOf(given)),
  });

type EditInput = Omit<z.infer<typeof input>, "path">;

/** A lone surrogate stands for a byte that is not UTF-8; only the file itself may contain one. */
function editsOf({ old, new: young, all = false, edits = [] }: EditInput): readonly Edit[] {
  const flat = old === undefined || young === undefined ? [] : [{ old, new: young, all }];
  return [...flat, ...edits].map(({ old, new: young, all = false }) => ({
    old: old.toWellFormed(),
    new: young.toWellFormed(),
    all,
  }));
}

const editLines = ({ old, new: young, all }: Edit): string =>
  `@@ ${all ? "every occurrence" : "one place"} @@\n${linesOf(old, young)}`;

interface EditTarget {
  readonly context: ToolContext;
  readonly box: Box;
}

async function edit({ context, box }: EditTarget, path: string, edits: readonly Edit[]): Promise<ToolResult> {
  const known = await knownContent(context, box, path, "shows");
  const name = shown(context.workspace, path);
  if (known.kind === "refused") return known.result;
  if (known.kind === "absent")
    return failed(`${name}: no such file; write_file makes a new one`, "filesystem");
  if (known.content.includes(0)) return failed(`${name}: a binary file; it cannot be edited as text`);
  const before = textOfBytes(known.content);
  const done = replaced(before, edits);
  if (done.kind === "not")
    return failed(`${name}: ${done.why}${done.why.includes("\n") ? "\n" : ". "}Nothing was changed.`);
  const content = bytesOfText(done.text);
  const written = await box.write(path, content);
  if (written.kind !== "ok") return refusal(context, written);
  await markWritten(context, box, path, content);
  const { lines } = compactDiff(before, done.text);
  return ok(`${name}: ${counted(done.places, "place")} changed\n${boundedDiff(lines)}`);
}
