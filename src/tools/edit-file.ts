/** The tools edit_file and write_file: each changes one file. */

import * as z from "zod";
import type { Box } from "../core/ports.ts";
import { bytesOfText, textOfBytes } from "../core/raw-data.ts";
import { type AnyTool, anyTool, failed, NO_FACTS, ok, type ToolResult } from "../core/tool.ts";
import { plural } from "../core/wording.ts";
import { BOM, CRLF, knownContent, markWritten, textAbout, unreadPaths, WITH_BOM } from "./read-file.ts";
import { boundedDiff, compactDiff, type Edit, linesOf, replaced } from "./text-edit.ts";
import {
  absolute,
  flag,
  lenientInput,
  listOf,
  refusal,
  displayPath,
  type ToolContext,
} from "./tool-context.ts";

const editForm = lenientInput(z.strictObject({ old: z.string(), new: z.string(), all: flag.optional() }));

const editInput = lenientInput(
  z
    .strictObject({
      path: z.string(),
      old: z.string().optional(),
      new: z.string().optional(),
      all: flag.describe("every occurrence").optional(),
      edits: listOf(editForm).describe("several at once, instead of old and new").optional(),
    })
    .refine(isOneForm, "give either old and new, or edits"),
);

interface EditForms {
  readonly old?: string | undefined;
  readonly new?: string | undefined;
  readonly edits?: readonly { readonly old: string; readonly new: string }[] | undefined;
}

/** Models that fill in every argument leave one form empty, or give the same edit in both: neither is ambiguous. */
function isOneForm({ old, new: young, edits = [] }: EditForms): boolean {
  if (edits.length === 0) return old !== undefined && young !== undefined;
  if ((old ?? "") === "" && (young ?? "") === "") return true;
  return edits.every((edit) => edit.old === old && edit.new === young);
}

export const editFileTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "edit_file",
    description:
      "Replace exact text in a file you have read. old must be there once, spaces included. All edits are made or none.",
    input: editInput,
    concurrent: false,
    where: "box",
    facts: ({ path }) => {
      const writes = [absolute(context.workspace, path)];
      return { ...NO_FACTS, reads: unreadPaths(context, writes), writes };
    },
    shown: (input) => editsOf(input).map(editLines).join("\n"),
    run: ({ path, ...input }, box) => edit(context, box, absolute(context.workspace, path), editsOf(input)),
  });

type EditInput = Omit<z.infer<typeof editInput>, "path">;

/** A lone surrogate stands for a byte that is not UTF-8; only the file itself may contain one. */
function editsOf({ old, new: young, all = false, edits = [] }: EditInput): readonly Edit[] {
  const isFlat = old !== undefined && young !== undefined && (edits.length === 0 || old !== "");
  const given = isFlat ? [{ old, new: young, all }] : edits;
  return given.map(({ old, new: young, all = false }) => ({
    old: old.toWellFormed(),
    new: young.toWellFormed(),
    all,
  }));
}

const editLines = ({ old, new: young, all }: Edit): string =>
  `@@ ${all ? "every occurrence" : "one place"} @@\n${linesOf(old, young)}`;

async function edit(
  context: ToolContext,
  box: Box,
  path: string,
  edits: readonly Edit[],
): Promise<ToolResult> {
  const known = await knownContent(context, box, path, "shows");
  const name = displayPath(context.workspace, path);
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
  return ok(`${name}: ${plural(done.places, "place")} changed\n${boundedDiff(lines)}`);
}

const writeInput = lenientInput(z.strictObject({ path: z.string(), content: z.string() }));

/** Losing this many lines of a file matters if at most half of the file remains. */
const MIN_LOSS = 10;

export function writeFileTool(context: ToolContext): AnyTool {
  const questioned = new Set<string>();
  return anyTool({
    name: "write_file",
    description: "Make a file, or replace the whole of one you have read.",
    input: writeInput,
    concurrent: false,
    where: "box",
    facts: ({ path }) => ({ ...NO_FACTS, writes: [absolute(context.workspace, path)] }),
    shown: ({ content }) => `@@ all of the file @@\n${linesOf("", content)}`,
    run: ({ path, content }, box) =>
      write({ context, box, questioned }, absolute(context.workspace, path), content),
  });
}

interface WriteTarget {
  readonly context: ToolContext;
  readonly box: Box;
  /** Paths whose content would mostly be lost. The model is asked once for each whether it wants that. */
  readonly questioned: Set<string>;
}

async function write(
  { context, box, questioned }: WriteTarget,
  path: string,
  newText: string,
): Promise<ToolResult> {
  const known = await knownContent(context, box, path, "keeps");
  if (known.kind === "refused") return known.result;
  const name = displayPath(context.workspace, path);
  const { text, kept, lost } = known.kind === "known" ? adapted(known.content, newText) : { text: newText };
  if (lost === true) return failed(`${name}: ${LOST_BYTES}`);
  const content = Buffer.from(text, "utf8");
  // Nothing is written, so the modification time stays, too: it shows what a run changed.
  if (known.kind !== "absent" && content.equals(known.content))
    return { ...ok(`${name}: it already had this content`), unchanged: true };
  const loss =
    context.isWeak?.() === true && known.kind === "known" ? lossOf(known.content, text) : undefined;
  if (loss !== undefined && !questioned.has(path)) {
    questioned.add(path);
    return failed(
      `${name}: ${loss} would be gone, so nothing was written. To keep them call edit_file, with old and new for the part that changes. If they are to go, call write_file again.`,
    );
  }
  const written = await box.write(path, content);
  if (written.kind !== "ok") return refusal(context, written);
  await markWritten(context, box, path, content);
  const count = linesIn(text);
  if (known.kind === "absent") return ok(`${name}: made, ${plural(count, "line")}`);
  if (known.content.includes(0)) return ok(`${name}: replaced; it was a binary file`);
  const before = textOfBytes(known.content);
  const { added, removed, lines } = compactDiff(before, text);
  const stays = kept === undefined ? "" : `; ${kept} as before`;
  return ok(`${name}: replaced (+${added} -${removed})${stays}\n${boundedDiff(lines)}`);
}

const LOST_BYTES =
  "some of its bytes are not UTF-8 and are shown as \uFFFD: with \uFFFD in their place they would be lost. Change the other lines with edit_file. Nothing was changed.";

interface AdaptedText {
  readonly text: string;
  /** Properties of the file that were kept although the new text lacks them. */
  readonly kept?: string;
  readonly lost?: true;
}

/**
 * A model sees neither carriage returns nor a byte order mark, so the file keeps those it has. For bytes that are not
 * UTF-8 the model sees replacement characters.
 */
function adapted(content: Uint8Array, newText: string): AdaptedText {
  if (content.includes(0) || newText === "") return { text: newText };
  const { notes } = textAbout(content);
  if (newText.includes("\uFFFD") && !textOfBytes(content).isWellFormed())
    return { text: newText, lost: true };
  const returns = notes.includes(CRLF) && !newText.includes("\r");
  const bom = notes.includes(WITH_BOM) && !newText.startsWith(BOM);
  const kept = [...(returns ? [CRLF] : []), ...(bom ? [WITH_BOM] : [])].join("; ");
  if (kept === "") return { text: newText };
  return { text: `${bom ? BOM : ""}${returns ? newText.replaceAll("\n", "\r\n") : newText}`, kept };
}

/** How much of a file its new text lacks, if that is most of it. */
function lossOf(content: Uint8Array, text: string): string | undefined {
  if (content.includes(0)) return undefined;
  const before = textOfBytes(content);
  const { added, removed } = compactDiff(before, text);
  const lines = linesIn(before);
  return removed - added >= MIN_LOSS && linesIn(text) * 2 <= lines
    ? `${removed} of its ${lines} lines`
    : undefined;
}

const linesIn = (text: string): number =>
  text.split("\n").length - (text.endsWith("\n") || text === "" ? 1 : 0);
