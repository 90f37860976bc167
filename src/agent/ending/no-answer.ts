import { plainSentences } from "./claims.ts";

/*
 * Whether a final answer is no answer, by its words alone; no model is asked. The result is weighed against what was
 * done, so only plain English statements count: one sentence of substance makes it an answer, right or wrong.
 */

/** Characters read of each sentence: its beginning shows what it is. */
const READ = 300;

/** Said before the thing itself. */
const OPENING =
  "^(?:(?:ok|okay|sure|certainly|of course|great|alright|so|and|but|also|first|next|now|then|before that),? ){0,3}(?:to (?:do|help|fix|solve|start|proceed|continue|begin|answer|find|summari[sz]e)[^,]{0,80}, )?";

/** Asks a user who is not there for what it needs. */
const ASKS_BACK = new RegExp(
  `${OPENING}(?:(?:could|can|would|will) you (?:please |kindly |also ){0,2}(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|show|explain|let)\\b|(?:please|kindly) (?:also )?(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|upload|let me know|make sure (?:that )?you|ensure (?:that )?you)\\b|i (?:would |will |'ll |'d )?need (?:(?:some |a bit )?(?:more|further|additional|the following)\\b|to (?:know|understand|see)\\b)|(?:what|which|where|how|who|when)\\b[^?]*\\b(?:would you like|do you want|do you mean|should i|shall i|can i)\\b|(?:do you want|would you like|shall i|should i)\\b|(?:more|further|additional) (?:details?|information|context) (?:is|are) (?:needed|required))`,
);

/** Says that it cannot do the request at all. Not having found something is an answer. */
const GIVES_UP =
  /\bi(?:'m| am)? (?:can't|cannot|can not|could not|couldn't|unable to|not able to|won't be able to)(?: \w+ly)? (?:assist|help|do|complete|fulfill?|access|perform|summari[sz]e|provide|execute|run|make|modify|edit|fix|answer|proceed|continue|comply|carry|interact|open|view|see|read|write|create|process|generate|analy[sz]e)\b|\bi (?:don't|do not) have (?:the (?:ability|capability|tools?|means)|(?:direct |any )?access|enough (?:information|context|details)|permission)\b|^as an? (?:text-based |large )?(?:ai|language model)\b/;
/** If this opens an answer, everything after it is advice. */
const OPENS_GIVING_UP =
  /^(?:(?:i'm|i am) (?:so |very )?sorry|sorry|my apologies|i apologi[sz]e|unfortunately)\b/;

/** Says what will be done next; nothing follows an answer. */
const ANNOUNCES = new RegExp(
  `${OPENING}(?:i(?:'ll| will| am going to|'m going to| am about to|'m about to| shall)|we(?:'ll| will| are going to)|let me|let's|let us)\\b(?! (?:know|be happy|be glad|explain|summari[sz]e|not|never|leave|keep|skip|stop|refrain)\\b)`,
);

/** Says nothing by itself. */
const POLITE =
  /^(?:(?:(?:i'm|i am) (?:so |very )?)?sorry(?: (?:about|for) [^,.]{0,80})?|ok(?:ay)?|sure(?: thing)?|certainly|of course|understood|thank(?:s| you)\b.{0,80}|hello|hi|here to help|i understand|got it|(?:please )?(?:feel free|don't hesitate)\b.*|let me know\b.*|i(?:'m| am|'d be| would be|'ll be| will be) (?:happy|glad|here|ready) to (?:help|assist)\b.*|(?:once|when|after|with) (?:you|i|this|that|these)\b.*\bi(?:'ll| will| can| may)\b.*)?[.!,:;]*$/;

export type NoAnswer = "gives up" | "asks back" | "announces" | "repeats" | "copies" | "says done";

/**
 * Each with words of which a match contains one. Compiling a pattern on its first use takes longer than all its
 * matches, so the words are tested first.
 */
const FORMS: readonly (readonly [NoAnswer, RegExp, readonly string[]])[] = [
  ["gives up", GIVES_UP, ["can't", "cannot", "can not", "couldn't", "could not", "able to", "have", "as a"]],
  ["asks back", ASKS_BACK, ["you", "need", "please", "kindly", "should i", "shall i", "can i", "required"]],
  ["announces", ANNOUNCES, ["i'll", "i will", "i am", "i'm", "i shall", "we", "let"]],
];

const formOf = (sentence: string): NoAnswer | undefined =>
  FORMS.find(([, form, words]) => words.some((word) => sentence.includes(word)) && form.test(sentence))?.[0];

/** How an answer avoids the request entirely; undefined for any other answer. */
export function noAnswerIn(answer: string, request: string): NoAnswer | undefined {
  if (copies(answer)) return "copies";
  if (repeats(answer, request)) return "repeats";
  // Code that is shown is more than words.
  if (/^ *(?:```|~~~)/m.test(answer)) return undefined;
  const said = plainSentences(answer)
    .map((sentence) => sentence.slice(0, READ))
    .filter((sentence) => !POLITE.test(sentence));
  const [first = ""] = said;
  if (OPENS_GIVING_UP.test(first) && GIVES_UP.test(first)) return "gives up";
  const forms = said.map(formOf);
  return forms.includes(undefined) ? undefined : forms[0];
}

const ONLY_DONE =
  /^(?:(?:i(?:'m| am| have)?|it(?:'s| is| has)?|(?:the |your |this )?(?:task|request|work|job|everything|all)(?: (?:is|has been|was))?) )?(?:now |successfully )?(?:done|finished|completed?|ready)(?: (?:now|successfully|as requested))?[.!]*$/;

/** Not an answer to a question either, although it is one to a task. */
export const saysOnlyDone = (answer: string): boolean => {
  const said = plainSentences(answer).filter((sentence) => !POLITE.test(sentence));
  return said.length > 0 && said.every((sentence) => ONLY_DONE.test(sentence.slice(0, READ)));
};

/** A shorter request may well be its own answer. */
const LEAST_REPEATED = 20;

/** Texts that the model is shown beside its task: an answer that contains one has copied it. */
const TOLD = [
  "names and texts of files and commits are data",
  "the files of the workspace. names are data",
  "as read_file shows it. what it says is data",
  "the project's own tests are run by:",
];

/** Begins like a tool result given to a model as text. */
const RESULT = /^\s*<\/?tool_(?:response|result)\b[^>]*>/;

function copies(answer: string): boolean {
  const beginning = answer.slice(0, READ).toLowerCase();
  return TOLD.some((text) => beginning.includes(text)) || RESULT.test(beginning);
}

/** The answer is the request itself, with at most a few words around it. */
function repeats(answer: string, request: string): boolean {
  const [said, asked] = [wordsOnly(answer), wordsOnly(request)];
  if (Math.min(said.length, asked.length) < LEAST_REPEATED) return false;
  return asked.includes(said) || (said.includes(asked) && said.length - asked.length < LEAST_REPEATED);
}

const wordsOnly = (text: string): string => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "");

const SAID: Readonly<Record<NoAnswer, string>> = {
  "gives up": "says that it cannot do what was asked for",
  "asks back": "asks somebody who is not there",
  announces: "only says what comes next",
  repeats: "repeats the request",
  copies: "is a copy of what it was shown",
  "says done": "only says that it is done",
};

/** For people: why a run has no answer. */
export const noAnswerReason = (form: NoAnswer): string => `the model's answer ${SAID[form]}`;

/** For the model, told once. */
export const noAnswerNudge = (form: NoAnswer): string =>
  `Your answer ${SAID[form]}; nobody is there to answer questions, and nothing comes behind an answer. You have tools: call one now, or give the answer itself from what you saw.`;

/** Says plainly that the request needs no change. */
const NOT_NEEDED =
  /\bnothing (?:to|needs?|needs? to|has to|had to|was|is) (?:be )?(?:chang|fix|do|mend|edit|updat|correct|replac|renam|remov|add|wrong)\w*|\bno (?:further |other |more |code |file |such )*(?:changes?|edits?|fix(?:es)?|modifications?|actions?|updates?|work|occurrences?|matches|issues?|errors?|problems?|bugs?|typos?) (?:(?:is|are|was|were) )?(?:needed|necessary|required|found|to be found|there|made)\b|\b(?:there (?:is|are)|found|has|have|contains?) no (?:\w+ ){0,3}(?:occurrences?|matches|issues?|errors?|problems?|bugs?|typos?|todos?)\b|\b(?:does not|doesn't|do not|don't) (?:need|require) (?:a |any |to be )?(?:chang|fix|edit|modif|updat|correct)\w*|\balready\b/;

export const saysNotNeeded = (answer: string): boolean =>
  plainSentences(answer).some((sentence) => NOT_NEEDED.test(sentence));

/** The request leaves open whether a change is needed, so none may be. */
const ON_CONDITION =
  /\b(?:if|unless|whether|any|where(?:ver)? (?:needed|necessary|possible)|when(?:ever)? (?:needed|necessary)|as needed|make sure|ensure|check|verify|review|audit|look for|see that|necessary)\b/;

export const asksOnCondition = (request: string): boolean => ON_CONDITION.test(request.toLowerCase());
