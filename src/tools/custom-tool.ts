import * as z from "zod";
import type { CustomToolDefinition } from "../core/added-programs.ts";
import { type Box, type ExecResult, inputOf } from "../core/ports.ts";
import type { JsonSchema } from "../core/model-provider.ts";
import { asFields } from "../core/raw-data.ts";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { adviseOnce, asResult, BASH_ADVICE, joinOutputs, endingOf, KEEP, wordsOf } from "./shell-command.ts";

/** Definition of an added tool. */
export interface CustomTool {
  readonly name: string;
  readonly definition: CustomToolDefinition;
  /** The command as a shell text, for the policy. */
  readonly commandText: string;
  /** The folder where the command starts. */
  readonly folder: string;
  readonly timeoutMs: number;
  /** What is wrong with these arguments; empty when nothing is. */
  readonly issuesOf: (args: unknown) => readonly string[];
  /** The tool's stored values, if it asked for them. */
  readonly values?: {
    readonly read: () => Readonly<Record<string, unknown>>;
    readonly change: (changes: Readonly<Record<string, unknown>>) => Promise<string | undefined>;
  };
}

/** Most bytes of arguments. */
const MAX_INPUT = 256 * 1024;
const MAX_STATE = 64 * 1024;
const ANY_OBJECT: JsonSchema = { type: "object" };

/**
 * A command of the box that reads its arguments as JSON and prints its result. The policy judges the command like one
 * of the shell, and also as a program whose work is unknown, unless the user said that it only reads.
 */
export function customTool(tool: CustomTool): AnyTool {
  const { name, definition } = tool;
  const input = z.record(z.string(), z.unknown()).superRefine((args, context) => {
    const long = Buffer.byteLength(JSON.stringify(args)) > MAX_INPUT;
    const issues = long ? [`the arguments have more than ${MAX_INPUT} bytes`] : tool.issuesOf(args);
    for (const message of issues) context.addIssue({ code: "custom", message });
  });
  const reads = definition.reads === true;
  const made = anyTool<z.infer<typeof input>>({
    name,
    description: definition.description,
    input,
    where: "box",
    concurrent: reads,
    facts: () => ({
      ...NO_FACTS,
      commands: [tool.commandText],
      folder: tool.folder,
      ...(reads ? {} : { program: "box" as const }),
    }),
    run: (args, box, signal) => run(tool, args, box, signal),
  });
  return { ...made, schema: definition.schema ?? ANY_OBJECT };
}

async function run(
  tool: CustomTool,
  args: Readonly<Record<string, unknown>>,
  box: Box,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { definition, folder, timeoutMs, values } = tool;
  const words =
    typeof definition.command === "string" ? ["bash", "-c", definition.command] : definition.command;
  const file = `/tmp/.harness-state-${crypto.randomUUID()}.json`;
  const kept =
    values === undefined
      ? {}
      : {
          env: { HARNESS_STATE: JSON.stringify(values.read()), HARNESS_STATE_FILE: file },
          keepFile: { path: file, limit: MAX_STATE },
        };
  const input = inputOf(Buffer.from(`${JSON.stringify(args)}\n`));
  const result = await box.exec({ words, folder, timeoutMs, keep: KEEP, input, ...kept }, signal);
  const notes = values === undefined ? [] : await storeValues(values, result.keptFile);
  const output = wordsOf(result);
  const ending = endingOf(result, output);
  // stderr of a success is chatter; stderr of a failure is the reason.
  const text = ending.kind === "ok" ? joinOutputs(wordsOf({ ...result, stderr: NOTHING }), "") : output;
  const lines = [
    text === "" ? "(no output)" : text,
    ...notes,
    ...adviseOnce(BASH_ADVICE)(ending.advice),
    ...ending.lines,
  ];
  return asResult(ending, lines.join("\n"));
}

const NOTHING: ExecResult["stderr"] = {
  head: new Uint8Array(),
  tail: new Uint8Array(),
  total: 0,
  lost: 0,
};

/** Stores what the command left in its file; returns why nothing was stored. */
async function storeValues(
  values: NonNullable<CustomTool["values"]>,
  left: ExecResult["keptFile"],
): Promise<readonly string[]> {
  if (left === undefined || (left.kind !== "ok" && left.code === "ENOENT")) return [];
  const changes = left.kind === "ok" ? changesIn(left.value) : undefined;
  const why = changes === undefined ? "what it left is not a JSON object" : await values.change(changes);
  return why === undefined ? [] : [`[its values were not kept: ${why}]`];
}

function changesIn(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    return asFields(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return undefined;
  }
}
