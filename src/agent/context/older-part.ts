import type { Message } from "../../core/messages.ts";
import { ARTIFACT_REQUEST } from "./artifact.ts";
import { excerpt } from "./excerpt.ts";
import type { History } from "./history.ts";

/** Of what is to be left after a compaction, the part that stays word for word. */
const KEPT = 0.4;
const LEFT = 0.6;
/** Part of the window below which a summary is not worth its price. */
const WORTH = 0.05;
/** Characters of a message when the older part alone does not fit. */
const SHORT = 1000;

interface Weighing {
  tokens(messages: readonly Message[]): number;
}

interface Aim {
  readonly window: number;
  readonly forced: boolean;
}

export interface OlderPart {
  readonly keepFrom: number;
  /** What is asked: the messages as the model knows them, byte for byte where they fit, and the request. */
  readonly messages: readonly Message[];
}

/** What a summary would stand for; undefined when there is nothing, or not enough. */
export function olderPart(history: History, means: Weighing, { window, forced }: Aim): OlderPart | undefined {
  const view = history.view();
  /** Behind it the view has the messages one for one. */
  const shift = view.length - history.count;
  const nothing = means.tokens([]);
  const weight = (messages: readonly Message[]): number => means.tokens(messages) - nothing;
  const start = history.compaction?.keepFrom ?? 0;
  const borders = [...history.messages.keys()].filter(
    (at) => at > start && history.messages[at]?.role !== "tool",
  );
  const shown = view.slice(start + shift);
  const keep = KEPT * Math.min(LEFT * window - nothing, weight(shown));
  const cut = borders.find((at) => weight(shown.slice(at - start)) <= keep) ?? borders.at(-1);
  if (cut === undefined || (!forced && weight(shown.slice(0, cut - start)) < WORTH * window))
    return undefined;
  for (const keepFrom of borders.filter((at) => at <= cut).toReversed()) {
    const asked = asking(view.slice(0, keepFrom + shift), (messages) => means.tokens(messages) <= window);
    if (asked !== undefined) return { keepFrom, messages: asked };
  }
  return undefined;
}

function asking(
  older: readonly Message[],
  fits: (messages: readonly Message[]) => boolean,
): Message[] | undefined {
  const request: Message = { role: "user", text: ARTIFACT_REQUEST };
  const whole = [...older, request];
  if (fits(whole)) return whole;
  const short = [...older.map(shortened), request];
  return fits(short) ? short : undefined;
}

function shortened(message: Message): Message {
  if (message.role === "system") return message;
  const text = excerpt(message.text, SHORT);
  if (message.role !== "assistant") return { ...message, text };
  return {
    role: "assistant",
    text,
    calls: message.calls.map((call) => ({ ...call, args: shortArgs(call.args) })),
  };
}

function shortArgs(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const json = JSON.stringify(args);
  return json.length <= SHORT ? args : { shortened: excerpt(json, SHORT) };
}
