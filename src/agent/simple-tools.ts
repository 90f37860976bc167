/** What a small model is offered: the tools that it uses well, with the arguments that matter. */

import type { JsonSchema, ToolOffer } from "../core/model-provider.ts";
import { isFields } from "../core/raw-data.ts";

/** Tools that a small model misuses if it may call them. */
export const COMPLEX_TOOLS: ReadonlySet<string> = new Set(["apply_patch", "plan", "task", "note", "notes"]);

/**
 * Arguments that a small model is offered. It fills in whatever a schema lists: an edit as `old` and `new` and again in
 * `edits`, which is then refused.
 */
export const SIMPLE_ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  bash: ["command"],
  edit_file: ["path", "old", "new"],
  write_file: ["path", "content"],
  read_file: ["path"],
  list_dir: ["path"],
  glob: ["pattern"],
  grep: ["pattern"],
};

/** Of tools whose usual description is about arguments that are left out. */
const SIMPLE_DESCRIPTIONS: Readonly<Record<string, string>> = {
  bash: "Run a bash command. The working directory and exported variables persist.",
  edit_file: "Replace exact text in a file you have read. old must be there once, spaces included.",
  read_file: "Read a text file, lines numbered. At most 2000 lines.",
};

/** The offers of these tools to a model. The rest of a tool's arguments still work if the model gives them. */
export function offersOf(tools: readonly ToolOffer[], isWeak: boolean): readonly ToolOffer[] {
  const offered = isWeak ? tools.filter(({ name }) => !COMPLEX_TOOLS.has(name)) : tools;
  return offered.map(({ name, description, schema }) => {
    const kept = isWeak ? SIMPLE_ARGUMENTS[name] : undefined;
    if (kept === undefined) return { name, description, schema };
    return { name, description: SIMPLE_DESCRIPTIONS[name] ?? description, schema: only(schema, kept) };
  });
}

/** An object's schema with these properties alone, all of them required. */
function only(schema: JsonSchema, kept: readonly string[]): JsonSchema {
  const properties = schema["properties"];
  if (!isFields(properties)) return schema;
  const left = kept.filter((name) => name in properties);
  return {
    ...schema,
    properties: Object.fromEntries(left.map((name) => [name, properties[name]])),
    required: left,
  };
}
