import { CLOSERS, ENDS, INVENTED, OPENERS, SHOWN, THINKING, tokenAt } from "./notations.ts";
import { mayBegin } from "./shown-calls.ts";

interface Place {
  readonly edge: number;
  readonly final: boolean;
  /** Some call came before. */
  readonly called: boolean;
}

interface Hidden {
  /** `thought`: with everything before it. `shown`: prose in which nothing is a call. */
  readonly kind: "hidden" | "thought" | "more" | "shown";
  readonly end: number;
}

/** Thinking, tokens that end a turn, invented answers, and shown HTML. */
export function hide(text: string, at: number, place: Place): Hidden | undefined {
  const char = text[at];
  if (char !== "<" && char !== "[" && char !== "◁" && char !== "O") return undefined;
  const begins = mayBegin(text, at, place.edge);
  return thinking(text, at, place, begins) ?? ending(text, at, place, begins) ?? shown(text, at, place);
}

function thinking(text: string, at: number, place: Place, begins: boolean): Hidden | undefined {
  for (const [opener, closer] of THINKING) {
    if (begins && text.startsWith(opener, at)) {
      const close = text.indexOf(closer, at + opener.length);
      if (close !== -1) return { kind: "hidden", end: close + closer.length };
      return place.final ? { kind: "hidden", end: text.length } : { kind: "more", end: at };
    }
    if (!text.startsWith(closer, at)) continue;
    const end = at + closer.length;
    if (!place.final && text.slice(end, end + 20).trim() === "" && text.length < end + 20)
      return { kind: "more", end: at };
    if (begins || /^(?:\s*$|\s*\n|[<[{])/.test(text.slice(end, end + 20))) return { kind: "thought", end };
  }
  return undefined;
}

/** Behind a call a closer without an opener ends it too. */
const endAt = (text: string, at: number, called: boolean): string | undefined =>
  tokenAt(ENDS, text, at) ?? (called ? tokenAt(CLOSERS, text, at) : undefined);

function ending(text: string, at: number, place: Place, begins: boolean): Hidden | undefined {
  if (begins && place.called && tokenAt(INVENTED, text, at) !== undefined) {
    return place.final ? { kind: "hidden", end: text.length } : { kind: "more", end: at };
  }
  const token = endAt(text, at, begins && place.called);
  if (token === undefined) return undefined;
  const end = at + token.length;
  if (!place.final && text.slice(end, end + 20).trim() === "" && text.length < end + 20)
    return { kind: "more", end: at };
  const over = /^[ \t\r]*(?:$|\n|<)/.test(text.slice(end, end + 20));
  return over || at === place.edge ? { kind: "hidden", end } : undefined;
}

function shown(text: string, at: number, place: Place): Hidden | undefined {
  for (const [opener, closer] of SHOWN) {
    if (!text.startsWith(opener, at)) continue;
    const end = text.indexOf(closer, at + opener.length);
    if (end === -1 && !place.final) return { kind: "more", end: at };
    return { kind: "shown", end: end === -1 ? text.length : end + closer.length };
  }
  return undefined;
}

const LONG = [
  ...OPENERS,
  ...CLOSERS,
  ...ENDS,
  ...INVENTED,
  ...[...THINKING, ...SHOWN].flat(),
  "functools[",
  "assistantcommentary to=functions.",
  "commentary to=functions.",
  "<|start|>assistant",
  "<|channel|>",
  "<function=",
  "call:",
  "<function name=",
  "<invoke name=",
  "<｜DSML｜invoke name=",
  "Action: ```json\n",
];
const HEAD =
  /^(?:<\/?(?:function|invoke|antml:|｜DSML｜|parameter)[^>\n]{0,130}|Action:\s*`{0,3}(?:j(?:s(?:on?)?)?)?\s?|call:[\w.-]{0,80}\s?|(?:assistant)?commentary to=functions\.[\w.:-]{0,90}\s*(?:json)?)$/;

/** Whether the rest of the text may be the beginning of a token. */
export function mayBeToken(text: string, at: number): boolean {
  if (text.length - at > 140) return false;
  const rest = text.slice(at);
  return LONG.some((token) => token.startsWith(rest)) || HEAD.test(rest);
}
