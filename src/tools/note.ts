import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import type { Desk } from "./tool-context.ts";
import { forgiving, listOf } from "./forgiving-input.ts";

const MOST = { title: 200, body: 10_000, tags: 10, tag: 50 } as const;

const input = forgiving(
  z.strictObject({
    title: z.string().min(1).max(MOST.title),
    body: z.string().max(MOST.body),
    tags: listOf(z.string().max(MOST.tag)).optional(),
  }),
);
type Input = z.infer<typeof input>;

/** Remembers something of the workspace beyond the session. */
export function noteTool({ notes }: Pick<Desk, "notes">): AnyTool {
  return anyTool<Input>({
    name: "note",
    description: "Save a note about this project for later sessions.",
    input,
    where: "session",
    beside: false,
    facts: () => NO_FACTS,
    run: ({ title, body, tags = [] }) => {
      notes.write({ title, body, tags: tags.slice(0, MOST.tags) });
      return Promise.resolve({ kind: "ok", text: `noted: ${title}` });
    },
  });
}
