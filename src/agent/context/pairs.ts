import type { Message, ToolCall } from "../../core/messages.ts";

/** The calls of the last reply that wait for their results. */
export function openCalls(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.findLastIndex(({ role }) => role !== "tool");
  const reply = messages[last];
  if (reply?.role !== "assistant") return [];
  const answered = new Set(
    messages.slice(last + 1).map((result) => (result.role === "tool" ? result.call : "")),
  );
  return reply.calls.filter(({ id }) => !answered.has(id));
}

/** The nearest place at or before this one that parts no result from its call, now or when it comes. */
export function borderBefore(messages: readonly Message[], at: number): number {
  let border = at >= messages.length && openCalls(messages).length > 0 ? messages.length - 1 : at;
  while (border > 0 && messages[border]?.role === "tool") border -= 1;
  return border;
}
