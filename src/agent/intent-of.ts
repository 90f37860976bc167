import type { EventBody, Intent } from "../core/events.ts";
import type { AnyTool } from "../core/tool.ts";
import { askAside } from "./ask.ts";
import { decideIntent } from "./intent/decide.ts";
import { toolsOf } from "./intent/tools.ts";
import type { Seat } from "./seat.ts";

interface Chosen {
  readonly told: Omit<Extract<EventBody, { readonly type: "intent" }>, "type">;
  readonly tools: readonly AnyTool[];
}

/** What is wanted, and the tools for it: as given, by the words, or by asking the model once. */
export async function intentOf(
  seat: Seat,
  prompt: string,
  given: Intent | undefined,
  signal: AbortSignal,
): Promise<Chosen> {
  const told =
    given === undefined
      ? await decideIntent(prompt, (question) => answerTo(seat, question, signal))
      : { intent: given, by: "flag" as const };
  return { told, tools: toolsOf(told.intent, seat.tools) };
}
