import type { AnyTool } from "../core/tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { bashTool } from "./bash.ts";
import type { Desk } from "./tool-context.ts";
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

/** In an order that never changes: the list is part of the prefix that servers keep. */
export function toolsFor(desk: Desk): readonly AnyTool[] {
  return [
    readFileTool(desk),
    listDirTool(desk),
    globTool(desk),
    grepTool(desk),
    editFileTool(desk),
    writeFileTool(desk),
    applyPatchTool(desk),
    bashTool(desk),
    showFullTool(desk),
    noteTool(desk),
    notesTool(desk),
    ...(desk.index === undefined ? [] : [semanticSearchTool(desk.index)]),
    ...(desk.spawn === undefined ? [] : [taskTool(desk.spawn)]),
  ];
}
