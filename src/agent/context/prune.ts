import type { Message } from "../../core/messages.ts";
import type { History } from "./history.ts";
import { isLong } from "./view.ts";

/** Part of the window whose newest results are never dropped for being old. */
const PROTECTED = 0.25;
/** Replies whose results the model is still working with. */
const REPLIES = 2;

interface Weighing {
  readonly window: number;
  tokens(messages: readonly Message[]): number;
}

/**
 * Places before which results could be shown as marks, from the first that matters on: one where only old results may
 * go, else one behind each that is still shown.
 */
export function pruneSteps(history: History, means: Weighing, which: "old" | "all"): readonly number[] {
  const { messages, compaction } = history;
  const from = Math.max(compaction?.pruneBefore ?? 0, compaction?.keepFrom ?? 0);
  const long = [...messages.entries()].flatMap(([at, message]) =>
    at >= from && isLong(message) ? [at] : [],
  );
  if (which === "all") return long.map((at) => at + 1);
  const border = protectedFrom(messages, means);
  return long.some((at) => at < border) ? [border] : [];
}

function protectedFrom(messages: readonly Message[], means: Weighing): number {
  const nothing = means.tokens([]);
  let left = PROTECTED * means.window;
  let replies = 0;
  let border = messages.length;
  for (const [at, message] of [...messages.entries()].toReversed()) {
    if (message.role === "tool") left -= means.tokens([message]) - nothing;
    if (message.role === "assistant" && message.calls.length > 0) replies += 1;
    if (left < 0 && replies >= REPLIES) return border;
    border = at;
  }
  return border;
}
