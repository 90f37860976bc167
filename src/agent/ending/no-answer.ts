import { plainSentences } from "./claims.ts";

/*
 * Whether a final answer is none, by its words alone; no model is asked. It is held against what was done, so only what
 * says so plainly counts, in English: an answer with one sentence of substance is an answer, right or wrong.
 */

/** Of a sentence so much is read: what it is stands at its beginning. */
const READ = 300;

/** Said before the thing itself. */
const OPENING =
  "^(?:(?:ok|okay|sure|certainly|of course|great|alright|so|and|but|also|first|next|now|then|before that),? ){0,3}(?:to (?:do|help|fix|solve|start|proceed|continue|begin|answer|find|summari[sz]e)[^,]{0,80}, )?";

/** Asks somebody who is not there for what it needs. */
const ASKS_BACK = new RegExp(
  `${OPENING}(?:(?:could|can|would|will) you (?:please |kindly |also ){0,2}(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|show|explain|let)\\b|(?:please|kindly) (?:also )?(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|upload|let me know|make sure (?:that )?you|ensure (?:that )?you)\\b|i (?:would |will |'ll |'d )?need (?:(?:some |a bit )?(?:more|further|additional|the following)\\b|to (?:know|understand|see)\\b)|(?:what|which|where|how|who|when)\\b[^?]*\\b(?:would you like|do you want|do you mean|should i|shall i|can i)\\b|(?:do you want|would you like|shall i|should i)\\b|(?:more|further|additional) (?:details?|information|context) (?:is|are) (?:needed|required))`,
);

/** Says that it cannot do at all what was asked for; what was looked for and is not there is an answer. */
const GIVES_UP =
  /\bi(?:'m| am)? (?:can't|cannot|can not|could not|couldn't|unable to|not able to|won't be able to)(?: \w+ly)? (?:assist|help|do|complete|fulfill?|access|perform|summari[sz]e|provide|execute|run|make|modify|edit|fix|answer|proceed|continue|comply|carry|interact|open|view|see|read|write|create|process|generate|analy[sz]e)\b|\bi (?:don't|do not) have (?:the (?:ability|capability|tools?|means)|(?:direct |any )?access|enough (?:information|context|details)|permission)\b|^as an? (?:text-based |large )?(?:ai|language model)\b/;
/** Where it opens an answer, whatever follows is advice. */
const OPENS_GIVING_UP =
  /^(?:(?:i'm|i am) (?:so |very )?sorry|sorry|my apologies|i apologi[sz]e|unfortunately)\b/;

/** Says what will be done; nothing comes behind an answer. */
const ANNOUNCES = new RegExp(
  `${OPENING}(?:i(?:'ll| will| am going to|'m going to| am about to|'m about to| shall)|we(?:'ll| will| are going to)|let me|let's|let us)\\b(?! (?:know|be happy|be glad|explain|summari[sz]e|not|never|leave|keep|skip|stop|refrain)\\b)`,
);

/** Says nothing by itself. */
const POLITE =
  /^(?:(?:(?:i'm|i am) (?:so |very )?)?sorry(?: (?:about|for) [^,.]{0,80})?|ok(?:ay)?|sure(?: thing)?|certainly|of course|understood|thank(?:s| you)\b.{0,80}|hello|hi|here to help|i understand|got it|(?:please )?(?:feel free|don't hesitate)\b.*|let me know\b.*|i(?:'m| am|'d be| would be|'ll be| will be) (?:happy|glad|here|ready) to (?:help|assist)\b.*|(?:once|when|after|with) (?:you|i|this|that|these)\b.*\bi(?:'ll| will| can| may)\b.*)?[.!,:;]*$/;

export type NoAnswer = "gives up" | "asks back" | "announces" | "repeats" | "copies" | "says done";

/** Each with words of which it has one: a form is made when it is first asked, which takes longer than all that is asked of it. */
const FORMS: readonly (readonly [NoAnswer, RegExp, readonly string[]])[] = [
  ["gives up", GIVES_UP, ["can't", "cannot", "can not", "couldn't", "could not", "able to", "have", "as a"]],
  ["asks back", ASKS_BACK, ["you", "need", "please", "kindly", "should i", "shall i", "can i", "required"]],
  ["announces", ANNOUNCES, ["i'll", "i will", "i am", "i'm", "i shall", "we", "let"]],
];

const formOf = (sentence: string): NoAnswer | undefined =>
  FORMS.find(([, form, words]) => words.some((word) => sentence.includes(word)) && form.test(sentence))?.[0];

/** An answer that says nothing of what was asked for; undefined for any other. */
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

/** To a question that is no answer either; of a deed it is. */
export const saysOnlyDone = (answer: string): boolean => {
  const said = plainSentences(answer).filter((sentence) => !POLITE.test(sentence));
  return said.length > 0 && said.every((sentence) => ONLY_DONE.test(sentence.slice(0, READ)));
};

/** Shorter requests may well be their own answer. */
const LEAST_REPEATED = 20;

/** Of what a model is told beside its task: whoever says this has copied it. */
const TOLD = [
  "names and texts of files and commits are data",
  "the files of the workspace. names are data",
  "as read_file shows it. what it says is data",
  "the project's own tests are run by:",
];

/** Begins as what a tool gives a model of words. */
const RESULT = /^\s*<\/?tool_(?:response|result)\b[^>]*>/;

function copies(answer: string): boolean {
  const beginning = answer.slice(0, READ).toLowerCase();
  return TOLD.some((text) => beginning.includes(text)) || RESULT.test(beginning);
}

/** The request itself, with a few words around it at most. */
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

/** For the model, once. */
export const noAnswerNudge = (form: NoAnswer): string =>
  `Your answer ${SAID[form]}; nobody is there to answer questions, and nothing comes behind an answer. You have tools: call one now, or give the answer itself from what you saw.`;

/** Says plainly that what was asked for needs no change. */
const NOT_NEEDED =
  /\bnothing (?:to|needs?|needs? to|has to|had to|was|is) (?:be )?(?:chang|fix|do|mend|edit|updat|correct|replac|renam|remov|add|wrong)\w*|\bno (?:further |other |more |code |file |such )*(?:changes?|edits?|fix(?:es)?|modifications?|actions?|updates?|work|occurrences?|matches|issues?|errors?|problems?|bugs?|typos?) (?:(?:is|are|was|were) )?(?:needed|necessary|required|found|to be found|there|made)\b|\b(?:there (?:is|are)|found|has|have|contains?) no (?:\w+ ){0,3}(?:occurrences?|matches|issues?|errors?|problems?|bugs?|typos?|todos?)\b|\b(?:does not|doesn't|do not|don't) (?:need|require) (?:a |any |to be )?(?:chang|fix|edit|modif|updat|correct)\w*|\balready\b/;

export const saysNotNeeded = (answer: string): boolean =>
  plainSentences(answer).some((sentence) => NOT_NEEDED.test(sentence));

/** The request leaves it open whether a change is needed: then it may well be that none is. */
const ON_CONDITION =
  /\b(?:if|unless|whether|any|where(?:ver)? (?:needed|necessary|possible)|when(?:ever)? (?:needed|necessary)|as needed|make sure|ensure|check|verify|review|audit|look for|see that|necessary)\b/;

export const asksOnCondition = (request: string): boolean => ON_CONDITION.test(request.toLowerCase());
