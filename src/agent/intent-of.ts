import type { EventBody, Intent } from "../core/events.ts";
import type { AnyTool } from "../core/tool.ts";
import { toolsOf } from "./intent/tools.ts";
import type { Seat } from "./seat.ts";
interface Chosen {
  readonly told: Omit<Extract<EventBody, { readonly type: "intent" }>, "type">;
  readonly tools: readonly AnyTool[];
}
export async function intentOf(
  seat: Seat,
  prompt: string,
  given: Intent | undefined,
  signal: AbortSignal,
): Promise<Chosen> {
  void prompt;
  void signal;
  const told = { intent: given ?? ("change" as const), by: "flag" as const };
  return { told, tools: toolsOf(told.intent, seat.tools) };
}
