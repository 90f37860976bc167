import assert from "node:assert/strict";
import type { AnyTool, Facts, ToolResult } from "../../../src/core/tool.ts";

/** Calls a tool that needs no box. */
export async function called(
  tool: AnyTool,
  args: unknown,
  signal = new AbortController().signal,
): Promise<{ readonly facts: Facts; readonly result: ToolResult }> {
  const prepared = tool.prepare(args);
  assert.ok(prepared.kind === "prepared", JSON.stringify(prepared));
  const { facts, run } = prepared.state();
  return { facts, result: await run(() => Promise.reject(new Error("no box is asked for")), signal) };
}
