import type { Reply } from "./ask.ts";
import { mayEscalate } from "./intent/offers.ts";
import type { Seat } from "./seat.ts";

/** A guess of the intent that was too small shows in a call of a tool that was not offered: then all are, once. */
export function escalated(seat: Seat, reply: Reply): Reply {
  if (reply.kind === "failed" || seat.offer.fixed) return reply;
  const { message, malformed } = reply;
  const meant = malformed.filter(({ name }) => mayEscalate(seat.offer.intent, name, seat.tools));
  if (meant.length === 0) return reply;
  seat.offer.widen("change", seat.tools);
  seat.emit({ type: "intent", intent: "change", by: "escalated" });
  seat.warm();
  const calls = meant.flatMap(({ id, name, args }) => (args === undefined ? [] : [{ id, name, args }]));
  return {
    ...reply,
    message: { ...message, calls: [...message.calls, ...calls] },
    malformed: malformed.filter(({ id }) => !calls.some((call) => call.id === id)),
  };
}
