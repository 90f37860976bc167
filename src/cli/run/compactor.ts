import { askAside } from "../../agent/ask.ts";
import { ARTIFACT_SCHEMA } from "../../agent/context/artifact.ts";
import { Compactor } from "../../agent/context/compaction.ts";
import type { History } from "../../agent/context/history.ts";
import type { Seat } from "../../agent/seat.ts";
import type { Capabilities } from "../../core/provider.ts";

/** Of the window, for the reply: a quarter, and no more than this. */
const MOST_REPLY = 8192;

/** What the rest would have said is what the model would no longer know. */
const CUT = { kind: "cut", reason: "the summary was cut at its length limit", remedy: "" } as const;

/** Keeps a seat's history within its model's window. */
export function compactorFor(
  seat: () => Seat,
  history: History,
  { context, origin }: Capabilities,
): Compactor {
  return new Compactor(history, {
    window: context - Math.min(MOST_REPLY, Math.floor(context / 4)),
    known: origin.context !== "guess",
    tokens: (messages) => seat().size.tokens(messages),
    summarise: async (messages, signal) => {
      const reply = await askAside(seat(), messages, signal, ARTIFACT_SCHEMA);
      if (reply.kind === "failed") return reply.failure;
      return reply.stop === "length" ? CUT : reply.message.text;
    },
    emit: (event) => seat().emit(event),
  });
}
