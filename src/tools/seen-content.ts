import type { Box, FileContent } from "../core/ports.ts";
import type { ToolResult } from "../core/tool.ts";
import { type ToolContext, shown } from "./tool-context.ts";
import { failed, refusal } from "./tool-results.ts";
/** What is read of a file in one piece. Larger ones are told apart by size and time, not by their content. */
export const WHOLE = 8 * 2 ** 20;
const NEVER = new AbortController().signal;

/** By which a later look knows this content again. */
export async function tokenOf(box: Box, path: string, { content, size }: FileContent): Promise<string> {
  if (size > WHOLE) return largeToken(box, path);
  const digest = await crypto.subtle.digest("SHA-256", content);
  return Buffer.from(digest).toString("hex");
}

/** Of what a link leads to, with the parts of a second that the port's `modified` has not. */
async function largeToken(box: Box, path: string): Promise<string> {
  const words = ["stat", "-L", "-c", "%s-%.9Y", "--", path];
  const { exit_code, stdout } = await box.exec(
    { words, timeoutMs: 10_000, keep: { head: 200, tail: 0 } },
    NEVER,
  );
  const said = Buffer.from(stdout.head).toString("utf8").trim();
  return exit_code === 0 && said !== "" ? said : `unknown-${crypto.randomUUID()}`;
}

/** A file that may be changed: the model knows it as it is now. */
export type Known =
  | { readonly kind: "known"; readonly content: Uint8Array }
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly result: ToolResult };

const refused = (result: ToolResult): Known => ({ kind: "refused", result });

export async function knownContent(context: ToolContext, box: Box, path: string): Promise<Known> {
  const read = await box.read(path);
  if (read.kind !== "ok")
    return read.code === "ENOENT" ? { kind: "absent" } : refused(refusal(context, read));
  const name = shown(context.workspace, path);
  const { content, size } = read.value;
  if (size > content.length) return refused(failed(`${name}: too large for this tool; change it with bash`));
  const seen = context.seen.hashOf(path);
  if (seen === undefined)
    return refused(failed(`${name}: read it with read_file first. Nothing was changed.`));
  return seen === (await tokenOf(box, path, read.value))
    ? { kind: "known", content }
    : refused(failed(`${name}: it has changed since you read it: read it again. Nothing was changed.`));
}

/** The model knows what it has just written. */
export async function wrote(
  context: ToolContext,
  box: Box,
  path: string,
  content: Uint8Array,
): Promise<void> {
  context.seen.saw(path, await tokenOf(box, path, { content, size: content.length }));
}
