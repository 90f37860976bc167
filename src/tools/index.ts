import type { AnyTool } from "../core/tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import type { Desk } from "./desk.ts";
import { editFileTool } from "./edit-file.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { listDirTool } from "./list-dir.ts";
import { readFileTool } from "./read-file.ts";
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
    // bash, show_full, note, notes, semantic_search, task
  ];
}
