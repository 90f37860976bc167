import * as z from "zod";
import { formatSize } from "../core/text/bounds.ts";
import type { Entry } from "../core/ports.ts";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { type ToolContext, absolute, nameShown, shown } from "./tool-context.ts";
import { missing, ok } from "./tool-results.ts";
import { forgiving } from "./forgiving-input.ts";
const MAX_COUNT = 500;
/** Most entries of one folder that a box lists. */
const LISTED = 10_000;

const BELOW = "glob with a pattern such as src/**/* lists what is below";

const input = forgiving(z.strictObject({ path: z.string().optional() }));

export const listDirTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "list_dir",
    instead: { recursive: BELOW, depth: BELOW, pattern: BELOW },
    description: "List a folder: folders end in /, links in @.",
    input,
    concurrent: true,
    where: "box",
    facts: ({ path = "." }) => ({ ...NO_FACTS, reads: [absolute(context.workspace, path)] }),
    run: async ({ path = "." }, box) => {
      const folder = absolute(context.workspace, path);
      const listed = await box.list(folder);
      if (listed.kind !== "ok") return missing(context, box, listed);
      const entries = listed.value.toSorted((one, other) => (one.name < other.name ? -1 : 1));
      const lines = entries.slice(0, MAX_COUNT).map(entryLine);
      return ok([...lines, `[${shown(context.workspace, folder)}: ${counted(entries.length)}]`].join("\n"));
    },
  });

function counted(entries: number): string {
  if (entries === 0) return "empty";
  const all = `${entries}${entries >= LISTED ? " or more" : ""} ${entries === 1 ? "entry" : "entries"}`;
  return entries > MAX_COUNT ? `${all}, the first ${MAX_COUNT} shown; use glob for the others` : all;
}

function entryLine({ name, kind, size }: Entry): string {
  const text = nameShown(name);
  switch (kind) {
    case "folder":
      return `${text}/`;
    case "link":
      return `${text}@`;
    case "odd":
      return `${text} (FIFO, socket or device)`;
    case "file":
      return `${text} ${formatSize(size)}`;
  }
}
