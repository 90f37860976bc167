import * as z from "zod";
import { textOfBytes } from "../core/text/bytes.ts";
import type { Box } from "../core/ports.ts";
import { counted } from "../core/text/short-lists.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { type ToolContext, absolute, shown } from "./tool-context.ts";
import { failed, ok, refusal } from "./tool-results.ts";
import { forgiving } from "./forgiving-input.ts";
import { knownContent, markWritten } from "./seen-content.ts";
import { BOM, CRLF, textAbout, WITH_BOM } from "./edits/file-text.ts";
import { boundedDiff, compactDiff, linesOf } from "./edits/text-edit.ts";

const input = forgiving(z.strictObject({ path: z.string(), content: z.string() }));

/** Losing this many lines of a file matters if at most half of the file remains. */
const MIN_LOSS = 10;

export function writeFileTool(context: ToolContext): AnyTool {
  const questioned = new Set<string>();
  return anyTool({
    name: "write_file",
    description: "Make a file, or replace the whole of one you have read.",
    input,
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
  given: string,
): Promise<ToolResult> {
  const known = await knownContent(context, box, path, "keeps");
  if (known.kind === "refused") return known.result;
  const name = shown(context.workspace, path);
  const { text, kept, lost } = known.kind === "known" ? adapted(known.content, given) : { text: given };
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
  if (known.kind === "absent") return ok(`${name}: made, ${counted(count, "line")}`);
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
function adapted(content: Uint8Array, given: string): AdaptedText {
  if (content.includes(0) || given === "") return { text: given };
  const { notes } = textAbout(content);
  if (given.includes("\uFFFD") && !textOfBytes(content).isWellFormed()) return { text: given, lost: true };
  const returns = notes.includes(CRLF) && !given.includes("\r");
  const bom = notes.includes(WITH_BOM) && !given.startsWith(BOM);
  const kept = [...(returns ? [CRLF] : []), ...(bom ? [WITH_BOM] : [])].join("; ");
  if (kept === "") return { text: given };
  return { text: `${bom ? BOM : ""}${returns ? given.replaceAll("\n", "\r\n") : given}`, kept };
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
