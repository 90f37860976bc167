import type { AnyTool } from "../core/tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { bashTool } from "./bash.ts";
import type { ToolContext } from "./tool-context.ts";
import { editFileTool } from "./edit-file.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { listDirTool } from "./list-dir.ts";
import { noteTool } from "./note.ts";
import { notesTool } from "./notes.ts";
import { readFileTool } from "./read-file.ts";
import { semanticSearchTool } from "./semantic-search.ts";
import { showFullTool } from "./show-full.ts";
import { taskTool } from "./task.ts";
import { writeFileTool } from "./write-file.ts";

/** The order is fixed: the list is part of the prompt prefix that servers cache. */
export function toolsFor(context: ToolContext): readonly AnyTool[] {
  return [
    readFileTool(context),
    listDirTool(context),
    globTool(context),
    grepTool(context),
    editFileTool(context),
    writeFileTool(context),
    applyPatchTool(context),
    bashTool(context),
    showFullTool(context),
    noteTool(context),
    notesTool(context),
    ...(context.index === undefined ? [] : [semanticSearchTool(context.index)]),
    ...(context.spawn === undefined ? [] : [taskTool(context.spawn)]),
  ];
}
