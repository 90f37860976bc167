import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { headWithin } from "../core/bytes.ts";
import { count, forgiving } from "./forgiving-input.ts";
import type { Spawn } from "./tool-context.ts";

const TURNS = { usual: 10, most: 40 } as const;
const MAX_BYTES = 8192;
const CUT = "\n[the rest was left out]";

const input = forgiving(z.strictObject({ prompt: z.string().min(1), max_turns: count.optional() }));
type Input = z.infer<typeof input>;

/** Delegates a part of the task to a subagent. Only the parent has this tool. */
export function taskTool(spawn: Spawn): AnyTool {
  return anyTool<Input>({
    name: "task",
    description:
      "Give a self-contained part of the work to a subagent with a fresh memory and the same tools; its report comes back.",
    input,
    where: "session",
    beside: true,
    facts: () => NO_FACTS,
    run: async ({ prompt, max_turns: maxTurns = TURNS.usual }, signal) => {
      const result = await spawn(
        { prompt, maxTurns: Math.min(Math.max(Math.floor(maxTurns), 1), TURNS.most) },
        signal,
      );
      const head = headWithin(result.text, MAX_BYTES - CUT.length);
      const text = headWithin(result.text, MAX_BYTES) === result.text ? result.text : head + CUT;
      return { ...result, text };
    },
  });
}
