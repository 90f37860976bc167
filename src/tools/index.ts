import type { AnyTool } from "../core/tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { askUserTool } from "./ask-user.ts";
import { bashTool } from "./bash.ts";
import type { ToolContext } from "./tool-context.ts";
import { editFileTool, writeFileTool } from "./edit-file.ts";
import { globTool, grepTool, listDirTool, semanticSearchTool } from "./search-tools.ts";
import { notesTool, noteTool } from "./notes.ts";
import { planTool } from "./plan.ts";
import { readFileTool } from "./read-file.ts";
import { showFullTool } from "./show-full.ts";
import { taskTool } from "./task.ts";

/** Reserved names: nothing else may use them, whether these tools are offered or not. */
export const BUILT_IN: ReadonlySet<string> = new Set([
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "edit_file",
  "write_file",
  "apply_patch",
  "bash",
  "show_full",
  "note",
  "notes",
  "semantic_search",
  "task",
  "plan",
  "ask_user",
  "skill",
  "web_search",
  "web_fetch",
]);

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
    ...(context.plan === undefined ? [] : [planTool(context.plan)]),
    ...(context.subagents === undefined ? [] : [taskTool(context.subagents)]),
    ...(context.person === undefined ? [] : [askUserTool(context.person)]),
  ];
}
