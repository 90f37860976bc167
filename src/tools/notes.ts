import * as z from "zod";
import type { Note } from "../core/session.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import type { ToolContext } from "./tool-context.ts";
import { forgiving } from "./forgiving-input.ts";

const MAX_NOTES = 10;
const MAX_CHARACTERS = 8000;

const input = forgiving(z.strictObject({ query: z.string().optional() }));
type Input = z.infer<typeof input>;

/** The notes about the workspace, newest first. */
export function notesTool({ notes }: Pick<ToolContext, "notes">): AnyTool {
  return anyTool<Input>({
    name: "notes",
    description: "Read saved notes, newest first; query: a word in them.",
    input,
    where: "session",
    concurrent: true,
    facts: () => NO_FACTS,
    run: ({ query = "" }) => Promise.resolve(listed(notes.find(query, MAX_NOTES + 1), query)),
  });
}

function listed(found: readonly Note[], query: string): ToolResult {
  if (found.length === 0)
    return { kind: "ok", text: query === "" ? "no notes yet" : `no note has ${JSON.stringify(query)}` };
  const shown = within(found.slice(0, MAX_NOTES).map(noteText));
  const more = found.length > shown.length ? ["[there are more: give a query]"] : [];
  return { kind: "ok", text: [...shown, ...more].join("\n\n") };
}

function noteText({ title, body, tags, written }: Note): string {
  const day = new Date(written).toISOString().slice(0, 10);
  return `# ${title} (${[day, ...tags].join(", ")})\n${body}`;
}

/** As many whole notes as fit; if not even the first fits, its beginning. */
function within(texts: readonly string[]): readonly string[] {
  let left = MAX_CHARACTERS;
  const shown: string[] = [];
  for (const text of texts) {
    left -= text.length;
    if (left < 0) break;
    shown.push(text);
  }
  const [first = ""] = texts;
  return shown.length > 0 ? shown : [`${first.slice(0, MAX_CHARACTERS).toWellFormed()}…`];
}
