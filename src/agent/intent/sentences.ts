import { ASKING, deedIn } from "./deeds.ts";
import { FILLER, GREETING, isSmallTalk, PLEASANTRY } from "./small-talk.ts";

/** What one sentence of a request is. A statement says how things are or should be. */
type Kind = "greeting" | "talk" | "task" | "question" | "reservation" | "look-up" | "statement";

export interface Sentence {
  readonly kind: Kind;
  /** Without greeting and politeness, as it was written but in lower case. */
  readonly text: string;
}

const FENCE = /```[\s\S]*?(?:```|$)/g;
const SPLIT = /(?<=[.!?;:。！？])\s+|(?<=[。！？])|\n+/u;
const MARKER = /^(?:[-*+>#]+|\d+[.)]|\[[^\]]*\])\s+/;
const PUNCTUATION = /^[\s,.!;:–—()¡~^…\p{Emoji_Presentation}-]+/u;
const CONDITION = /^if (?:so|not|yes|possible|needed|necessary)(?=[\s,])/;
/** What is not to be done is no task. */
const RESERVATION =
  /^(?:(?:i |we )?(?:don't|do not|dont|never|won't)(?: want| need)?(?: you to| to| any)? ?(?:chang|modif|edit|touch|writ|fix|creat|delet|commit|run|mak|alter)\w*|without (?:chang|modify|edit|touch|writ|runn|fix|mak|alter)\w*|no (?:changes|edits|code changes))\b[^,.;:!?]*/;
const LOOK_UP =
  /^(?:search|look|browse|find|google|check)\b.*(?:\b(?:the|on|search) (?:web|internet)\b|\bonline\b|\bon google\b)|^google (?:for|how|what|why|where|the)\b|^(?:(?:read|open|visit) )?(?:https?:\/\/|www\.)\S+(?: and (?:explain|summari[sz]e|describe|tell)\b[^,.;]*)?$/;
const QUESTION =
  /^(?:(?:what|why|how|where|which|who)(?:'s|s|'re)?|whose|whom|is|are|was|were|does|did|am|isn't|aren't|doesn't|didn't)\b(?! (?:i|we) (?:want|need|would))|^do (?:you|we|i|they)\b/;
const QUESTION_MARK = /[?？؟]["')\s]*$/u;
const ARITHMETIC = /^[\d\s+*/().^%-]*\d\s*[-+*/^]\s*\d[\d\s+*/().^%-]*=?$/;

export function sentencesOf(text: string): readonly Sentence[] {
  return text
    .replaceAll(FENCE, " `code` ")
    .replaceAll("’", "'")
    .split(SPLIT)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(sentence);
}

function sentence(written: string): Sentence {
  const { text, greeted } = opened(written.toLowerCase().replace(MARKER, ""));
  if (text === "") return { kind: greeted ? "greeting" : "statement", text };
  const deed = deedIn(text);
  const rest = deed.kind === "none" ? deed.rest : text;
  return { kind: before(text, rest) ?? (deed.kind === "task" ? "task" : saying(text, rest)), text: rest };
}

/** What is seen before anything is taken for a deed. */
function before(text: string, rest: string): Kind | undefined {
  if (isSmallTalk(text) || isSmallTalk(rest)) return "talk";
  if (RESERVATION.test(text)) return "reservation";
  return LOOK_UP.test(text) ? "look-up" : undefined;
}

function saying(text: string, rest: string): Kind {
  const asks = ASKING.test(rest) || QUESTION.test(text) || QUESTION_MARK.test(text) || ARITHMETIC.test(text);
  return asks ? "question" : "statement";
}

/** Without what is said before the thing itself. */
function opened(lower: string): { readonly text: string; readonly greeted: boolean } {
  let text = lower;
  let greeted = false;
  for (;;) {
    const before = text;
    text = text.replace(PUNCTUATION, "");
    if (GREETING.test(text)) {
      greeted = true;
      text = text.replace(GREETING, "").replace(PUNCTUATION, "");
      while (PLEASANTRY.test(text)) text = text.replace(PLEASANTRY, "").replace(PUNCTUATION, "");
    }
    text = text.replace(FILLER, "").replace(CONDITION, "");
    const rest = text.replace(RESERVATION, "");
    if (rest !== text && rest.startsWith(",")) text = rest.replace(/^,\s*(?:just|only|but)?/, "");
    text = text.trim();
    if (text === before) return { text, greeted };
  }
}
