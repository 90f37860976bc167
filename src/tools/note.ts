import * as z from "zod";
import { NOTE_BOUNDS } from "../core/session.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import type { ToolContext } from "./tool-context.ts";
import { forgiving, listOf } from "./forgiving-input.ts";

const input = forgiving(
  z.strictObject({
    title: z.string().min(1).max(NOTE_BOUNDS.title),
    body: z.string().max(NOTE_BOUNDS.body),
    tags: listOf(z.string().max(NOTE_BOUNDS.tag)).optional(),
  }),
);
type Input = z.infer<typeof input>;

const ISSUE = "title: it is blank; say in one line what the note is about";
const UNTITLED: ToolResult = { kind: "invalid", issues: [ISSUE], text: ISSUE };

/** Stores a note about the workspace that outlasts the session. */
export function noteTool({ notes }: Pick<ToolContext, "notes">): AnyTool {
  return anyTool<Input>({
    name: "note",
    description: "Save a note about this project for later sessions.",
    input,
    where: "session",
    concurrent: false,
    facts: () => NO_FACTS,
    run: ({ title: given, body, tags = [] }) => {
      const title = given.replace(/\s+/g, " ").trim();
      if (title === "") return Promise.resolve(UNTITLED);
      notes.write({ title, body, tags: tags.slice(0, NOTE_BOUNDS.tags) });
      return Promise.resolve({ kind: "ok", text: `noted: ${title}` });
    },
  });
}
