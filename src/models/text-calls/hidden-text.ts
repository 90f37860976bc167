import { anyOf } from "../../core/text/expression-table.ts";
import { CLOSERS, ENDS, INVENTED, OPENERS, SHOWN, THINKING, tokenAt } from "./notations.ts";

interface Place {
  readonly edge: number;
  readonly final: boolean;
  /** A call came before. */
  readonly called: boolean;
}

interface Hidden {
  /** `thought`: everything before it is a thought too. `shown`: prose in which nothing counts as a call. */
  readonly kind: "hidden" | "thought" | "more" | "shown";
  readonly end: number;
}

/** Finds thinking, tokens that end a turn, invented answers, and HTML that is only shown. */
export function findHidden(text: string, at: number, place: Place): Hidden | undefined {
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

/** After a call, a closer without an opener also ends the turn. */
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
const HEAD = anyOf(
  [
    /<\/?(?:function|invoke|antml:|｜DSML｜|parameter)[^>\n]{0,130}/,
    /Action:\s*`{0,3}(?:j(?:s(?:on?)?)?)?\s?|call:[\w.-]{0,80}\s?/,
    /(?:assistant)?commentary to=functions\.[\w.:-]{0,90}\s*(?:json)?/,
  ],
  { before: "^", after: "$" },
);

/** Whether the rest of the text may be the beginning of a token. */
export function mayBeToken(text: string, at: number): boolean {
  if (text.length - at > 140) return false;
  const rest = text.slice(at);
  return LONG.some((token) => token.startsWith(rest)) || HEAD.test(rest);
}

const EXAMPLE = anyOf(
  [
    "examples? formats? sample syntax template illustrat\\w+ hypothetical\\w* instead_of",
    "such_as for_instance like_(?:so|this) looks?_like",
    /\be\.g\./,
    // What would be said, or somebody else said.
    "would_(?:be|look|write|send|have|call|run|use) if_you_(?:want|like|need|wish|prefer)",
    /\b(?:you|user|client|model|assistant|it|they|he|she) (?:wrote|writes|sent|sends|emits|emitted|produced|produces|answered|logged)\b/,
    "the_(?:log|transcript|fixture)_(?:shows?|says|contains)",
  ],
  { flags: "i" },
);
const REFUSED = anyOf(["run call send execute use write emit"], {
  before:
    "\\b(?:do not|don['’]t|never|won['’]t|will not|should not|shouldn['’]t|cannot|can['’]t|must not|would not) (?:ever )?",
  after: "\\b",
  flags: "i",
});
const ASKS_PERMISSION = /\b(?:would like to (?:run|call|do)|may I|shall I|should I|want me to)\b/i;
const INTENT = /^(?:I['’]ll|I will|Let me|Let['’]s|I am going|I['’]m going|First|Now|Next)\b/i;
const SHOWING = /\b(?:show|give|illustrate|demonstrate|explain|here is|here's|write|quote)\b/i;

/** A report, an instruction or a wish: the call is only shown, unless the same sentence announces the next step. */
const REPORTED = anyOf(
  [
    // Said or done before, or by others.
    "recorded previous(?:ly)? earlier last_time I_ran I_called was were was_called",
    "returned returns? replied received said says wrote writes sent sends means",
    // Where it stands.
    "contain(?:s|ed)? expected payload log(?:s|ged)? transcript fixture shows? shown",
    // What the reader should do with it.
    "should must add paste copy save yourself you_can your",
  ],
  { flags: "i" },
);
const NEXT_STEP = anyOf(
  [
    "I['’]ll I_will let_me let['’]s I_am_going I['’]m_going we['’]ll we_will",
    "I_need I_want_to I_have_to I_should I_must we_need we_should I_(?:open|check|look|list|search)",
    "first next now calling reading running checking searching looking",
  ],
  { flags: "i" },
);

/** Whether the line before, which begins at `from` at the earliest, says that the following text is only shown. */
export function announcedAsShown(text: string, at: number, weak: boolean, from: number): boolean {
  const line = lineBefore(text, at, from);
  const sentence = line.split(/(?<=[.!?])\s+(?=[A-Z])/).at(-1) ?? line;
  if (REFUSED.test(sentence)) return true;
  if (weak) return EXAMPLE.test(line) || ASKS_PERMISSION.test(sentence) || isReport(sentence);
  if (!/:\s*\**$|^#{1,6} |^\*\*[^*]+\*\*$/.test(line)) return false;
  if (INTENT.test(sentence) && !SHOWING.test(sentence)) return false;
  return EXAMPLE.test(sentence) || ASKS_PERMISSION.test(sentence);
}

const isReport = (sentence: string): boolean => REPORTED.test(sentence) && !NEXT_STEP.test(sentence);

/** Whether the preceding text announces that the following call is the writer's next step. */
export function announcesNextStep(before: string): boolean {
  const line = lineBefore(before, before.length);
  return NEXT_STEP.test(line) && !SHOWING.test(line) && !REPORTED.test(line);
}

/** How much text after a call is examined. */
export const LOOK_AFTER = 240;
const GOES_ON = /^(?:[,.;:)\]}'"`”’»|]|[a-z][a-z'’]*[\s,.])/;
const COMMENTED =
  /^(?:This|That|These|Those|The above|Above|It)\b[^.!?]{0,100}\b(?:example|format|syntax|how|would|sample|what|wrote|only|just|illustrat\w+)\b/;
const ASKS_CONFIRMATION =
  /\b(?:shall I|should I|may I|is (?:that|this) (?:ok|okay|all right|alright|fine)|do you want|ok to)\b[^.!]*\?/i;

/** Whether the text after a call continues the same sentence, or comments on the call. */
export function commentedAsShown(after: string): boolean {
  const text = after.trimStart().slice(0, LOOK_AFTER);
  return GOES_ON.test(text) || COMMENTED.test(text) || ASKS_CONFIRMATION.test(text);
}

const LOOK_BEFORE = 160;

/** Whether a call may begin here: at the start of a line, after another item, or after the end of a sentence. */
export function mayBegin(text: string, at: number, edge: number): boolean {
  const before = text.slice(Math.max(edge, at - LOOK_BEFORE), at).trimEnd();
  if (before === "") return at - edge < LOOK_BEFORE;
  if (at - before.length > edge && before.length === LOOK_BEFORE) return endsSentence(before);
  return endsSentence(before);
}

const SENTENCE = /(?:[.!?…。！？]["”’')*_]{0,2}|\p{Extended_Pictographic}\uFE0F?)$/u;
const NO_SENTENCE = /(?:^|\s)(?:e\.g|i\.e|etc|vs|cf|\d{1,3})\.$/i;
const ANNOUNCED =
  /(?:^|[.!?]\s+)(?:I'll|I will|I’ll|Let me|Let's|I am going to|I'm going to|First,|Now)\b[^.!?"`]*:$/;

const endsSentence = (before: string): boolean =>
  (SENTENCE.test(before) && !NO_SENTENCE.test(before)) || ANNOUNCED.test(before);

/** Nothing begins inside JSON or code that spans lines. */
export function insideCode(text: string, at: number, from: number): boolean {
  const before = text.slice(Math.max(from, at - LOOK_BEFORE), at).trimEnd();
  return /[[{(,=]$|["'\]]\s*:$/.test(before);
}

/** The last line before a place that is not blank, or what of it comes after `from`. */
function lineBefore(text: string, at: number, from = 0): string {
  const before = text.slice(Math.max(from, at - 400), at).trimEnd();
  return before.slice(before.lastIndexOf("\n") + 1);
}
