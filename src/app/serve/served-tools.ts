import { Memory } from "../../agent/memory.ts";
import type { AnyTool } from "../../core/tool.ts";
import type { OfferedTool } from "../../extensions/mcp-server.ts";
import { toolsFor } from "../../tools/index.ts";

/**
 * The tools that other agents are offered: those that act on the workspace or look at it. They have models and notes of
 * their own; what they wrote into our notes would be read by our models later.
 */
const SERVED: ReadonlyMap<string, Pick<OfferedTool, "reads">> = new Map([
  ["bash", { reads: false }],
  ["read_file", { reads: true }],
  ["write_file", { reads: false }],
  ["edit_file", { reads: false }],
  ["apply_patch", { reads: false }],
  ["list_dir", { reads: true }],
  ["glob", { reads: true }],
  ["grep", { reads: true }],
  ["semantic_search", { reads: true }],
  ["show_full", { reads: true }],
]);

export const servedOf = (tools: readonly AnyTool[]): readonly AnyTool[] =>
  tools.filter(({ name }) => SERVED.has(name));

/** The descriptions of the tools, needed before there is a session that they could work for. */
export function offeredTools(workspace: string, timeoutMs: number): readonly OfferedTool[] {
  const { seen, shell } = new Memory(workspace, [], () => undefined);
  const tools = toolsFor({
    agent: "none",
    workspace,
    seen,
    shell,
    outputs: { keep: () => "", page: () => undefined },
    notes: { write: () => undefined, find: () => [] },
    timeoutMs,
    index: { search: () => Promise.resolve({ hits: [], caveat: "" }) },
  });
  return servedOf(tools).map(({ name, description, schema }) => ({
    name,
    description,
    schema,
    reads: SERVED.get(name)?.reads === true,
  }));
}
