import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS, notRun, type ToolResult } from "../core/tool.ts";
import { count, lenientInput, type ToolContext } from "./tool-context.ts";

const PAGE_LENGTH = 20_000;
/** Bytes of UTF-8, including the line below the page: the limit for any result for the model. */
const PAGE_BYTES = 29_500;

const input = lenientInput(z.strictObject({ id: z.string(), offset: count.optional() }));
type Input = z.infer<typeof input>;

/** Pages through the full output of a tool. */
export function showFullTool({ outputs }: Pick<ToolContext, "outputs">): AnyTool {
  return anyTool<Input>({
    name: "show_full",
    description: "Show the left out part of an earlier result by its id, a page from offset on.",
    input,
    where: "session",
    concurrent: true,
    bounded: true,
    facts: () => NO_FACTS,
    run: ({ id, offset = 0 }) => Promise.resolve(page(outputs, id, Math.floor(offset))),
  });
}

function page(outputs: ToolContext["outputs"], id: string, offset: number): ToolResult {
  const found = pageWithin(outputs, id, offset);
  if (found === undefined) return notRun(`there is no output ${JSON.stringify(id)} in this session`);
  const { text, end, total } = found;
  if (offset > 0 && offset >= total)
    return notRun(`offset ${offset} is past the end: ${id} has ${total} characters`);
  const next = end < total ? `next: ${JSON.stringify({ id, offset: end })}` : "this is the end";
  return { kind: "ok", text: `${text}\n[characters ${found.offset} to ${end} of ${total}; ${next}]` };
}

/** A page with wide characters is shortened, so that it fits without being cut. */
function pageWithin(
  outputs: ToolContext["outputs"],
  id: string,
  offset: number,
): ReturnType<ToolContext["outputs"]["page"]> {
  const whole = outputs.page(id, offset, PAGE_LENGTH);
  if (whole === undefined) return undefined;
  const bytes = new TextEncoder().encode(whole.text).length;
  return bytes <= PAGE_BYTES ? whole : outputs.page(id, offset, Math.floor(PAGE_BYTES / 3));
}
