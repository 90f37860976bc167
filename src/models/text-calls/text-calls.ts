import { OfferedTools } from "./names.ts";
import type { OfferedTool, Reading, ReadingOptions } from "./reading.ts";
import { Scanner } from "./scanner.ts";
import { settle } from "./settle.ts";

/** Tools that change nothing: for them alone a notation is repaired. */
export const PURE_READERS: readonly string[] = [
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "notes",
  "show_full",
  "semantic_search",
];

/** Reads a whole reply. Never throws. */
export function readCalls(
  text: string,
  tools: readonly OfferedTool[],
  options: ReadingOptions = {},
): Reading {
  return readOffered(text, new OfferedTools(tools), new Set(options.readers ?? PURE_READERS));
}

export function readOffered(text: string, tools: OfferedTools, readers: ReadonlySet<string>): Reading {
  const scanner = new Scanner(tools);
  scanner.text = text;
  scanner.scan(true);
  return settle(scanner.items.list, text, { tools, readers });
}
