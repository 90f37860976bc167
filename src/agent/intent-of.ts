import type { EventBody, Intent } from "../core/events.ts";
import type { AnyTool } from "../core/tool.ts";
import { askFor } from "./ask.ts";
import { type AskIntent, decideIntent } from "./intent/decide.ts";
import { toolsOf } from "./intent/offers.ts";
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
  const ask: AskIntent = async ({ messages, schema }, limit) => {
    // A request of another prefix would push a conversation out of the server's cache; what is unsure there is a task.
    if (seat.history.count > 0) return "";
    const reply = await askFor(seat, { model: seat.model, messages, tools: [], format: schema }, limit);
    return reply.kind === "failed" || reply.stop === "length" ? "" : reply.message.text;
  };
  const told =
    given === undefined ? await decideIntent(prompt, ask, signal) : { intent: given, by: "flag" as const };
  return { told, tools: toolsOf(told.intent, seat.tools) };
}
