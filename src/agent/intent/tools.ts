import type { Intent } from "../../core/events.ts";
import type { AnyTool } from "../../core/tool.ts";
export const toolsOf = (intent: Intent, tools: readonly AnyTool[]): readonly AnyTool[] =>
  intent === "direct" ? [] : tools;
export const mayEscalate = (intent: Intent, called: string, all: readonly AnyTool[]): boolean =>
  intent !== "change" && all.some(({ name }) => name === called);
