import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { headWithin } from "../core/raw-data.ts";
import { count, flag, lenientInput, isGiven, type Subagents } from "./tool-context.ts";

const TURNS = { usual: 10, most: 40 } as const;
const MAX_WAIT_S = 600;
const MAX_BYTES = 8192;
const CUT = "\n[the rest was left out]";

const input = lenientInput(
  z
    .strictObject({
      prompt: z.string().optional(),
      max_turns: count.optional(),
      background: flag.optional(),
      task: z.string().optional(),
      timeout: count.optional(),
      cancel: flag.optional(),
    })
    .refine(({ prompt, task }) => [prompt, task].filter(isGiven).length === 1, {
      error: 'give one of "prompt" and "task"',
    }),
);
type Input = z.infer<typeof input>;

/** Delegates a part of the task to a subagent. Only the parent has this tool. */
export function taskTool(subagents: Subagents): AnyTool {
  return anyTool<Input>({
    name: "task",
    description:
      "Give a self-contained part of the work to a subagent with a fresh memory and the same tools; its report comes back. " +
      "background: true gives a task (t1…) that runs beside you. With task instead of prompt: its report, waiting timeout seconds; cancel: true ends it.",
    input,
    where: "session",
    concurrent: true,
    facts: () => NO_FACTS,
    run: (input, signal) => run(subagents, input, signal),
  });
}

async function run(subagents: Subagents, input: Input, signal: AbortSignal): Promise<ToolResult> {
  const { prompt, task, background, timeout = 0, cancel = false, max_turns: turns = TURNS.usual } = input;
  if (isGiven(task)) {
    const waitMs = Math.min(timeout, MAX_WAIT_S) * 1000;
    return subagents.look({ id: task, waitMs, cancel }, signal);
  }
  const maxTurns = Math.min(Math.max(Math.floor(turns), 1), TURNS.most);
  const part = { prompt: prompt ?? "", maxTurns };
  return background === true ? subagents.begin(part, signal) : reported(await subagents.run(part, signal));
}

/** Cuts a report to the length that its reader gets. */
export function reported(result: ToolResult): ToolResult {
  const head = headWithin(result.text, MAX_BYTES - CUT.length);
  const text = headWithin(result.text, MAX_BYTES) === result.text ? result.text : head + CUT;
  return { ...result, text };
}
