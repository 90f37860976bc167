import { anyOf, type ExpressionTable } from "../../core/text/expression-table.ts";

/*
 * Whether a final answer says that a change was made or that tests pass, and whether it is an answer at all. Judged by
 * its words alone, without a model. The result is weighed against what was changed and run, so only plain statements
 * count. Statements that are hedged, conditional, taken back, about somebody else or an earlier time, or in a language
 * not listed here, are believed, and one sentence of substance makes an answer, right or wrong.
 */

const CHANGED =
  "fixed|changed|edited|updated|modified|added|removed|replaced|renamed|created|implemented|corrected|repaired|rewritten|rewrote|refactored|patched|adjusted|deleted|inserted|mended|converted";
/** Deeds that have other meanings, too; each needs an object that settles it. */
const DONE_TO = "resolved|solved|addressed|applied|made|implemented|completed";
const OBJECTS =
  "(?:the |this |that |your |all |both )?(?:\\w+ ){0,3}?(?:bugs?|issues?|problems?|errors?|failures?|fix(?:es)?|changes?|patch(?:es)?|edits?|corrections?|modifications?|updates?)\\b";

/**
 * A pattern, and words of which every matching sentence contains one. Compiling the pattern on its first use takes
 * longer than all its matches, so the words are tested first.
 */
interface Form {
  readonly words: readonly string[];
  readonly form: RegExp | ExpressionTable;
}

const formOf = (words: string, form: string | Form["form"]): Form => ({
  words: words.split("|"),
  form: typeof form === "string" ? new RegExp(form, "u") : form,
});

const matchesForm = (sentence: string, { words, form }: Form): boolean =>
  words.some((word) => sentence.includes(word)) && form.test(sentence);

const ADVERBS =
  "(?:just|now|also|then|successfully|carefully|finally|gone ahead and|went ahead and|been able to)";
/** Words that rule out a change: nothing at all, sums, or a list, which is not a file. */
const NO_OBJECT =
  "(?! (?:nothing|no|none|neither|sure|up|together|to (?:my|the) (?:understanding|list|notes?))\\b)(?! (?:\\w+ ){0,3}(?:plan|list|summary|report|overview|table|analysis|comparison|review|notes?|mind|understanding|search|question|branch|commit|tag|folder|directory|copy|backup)\\b)";

const I_HAVE = String.raw`\bi(?:'ve| have)?(?: ${ADVERBS})* `;

const GERMAN = "behoben|geändert|korrigiert|repariert|hinzugefügt|angepasst|entfernt|ersetzt";
const FRENCH = "corrigé|modifié|ajouté|réparé|remplacé|supprimé|changé|renommé|implémenté|mis à jour";
const SPANISH =
  "corregido|arreglado|modificado|cambiado|añadido|agregado|reemplazado|eliminado|actualizado|implementado|solucionado";
const PORTUGUESE = "corrigi|consertei|modifiquei|alterei|adicionei|removi|substituí|atualizei|implementei";
const ITALIAN = "corretto|modificato|cambiato|aggiunto|rimosso|sostituito|aggiornato|implementato|risolto";
const RUSSIAN = "исправил|изменил|добавил|удалил|заменил|обновил|переименовал";
const RUSSIAN_I = "я";
const RUSSIAN_SHE = "а";
const DASHES = "–—";
const GERMAN_GREEN = "grün";
const TESTS_PASS =
  "все тесты (?:проходят|пройдены)|所有测试(?:都|均)?(?:已)?通过|テストは(?:すべて|全て)?(?:成功|通り|パス)";

/** The model says that it did something itself. */
const MINE: readonly Form[] = [
  formOf(CHANGED, String.raw`${I_HAVE}(?:${CHANGED})\b${NO_OBJECT}`),
  formOf(DONE_TO, `${I_HAVE}(?:${DONE_TO}) ${OBJECTS}${NO_OBJECT}`),
  formOf(
    CHANGED,
    String.raw`^(?:(?:done|ok|okay|great|sure|all set|all done)[\s.,!:;${DASHES}-]+)?(?:${ADVERBS} )*(?:${CHANGED})${NO_OBJECT}(?=$|[.!,]| (?:the|it|this|that|an?|all|both|x|them|your|two|one|line)\b)`,
  ),
  formOf("ich habe", String.raw`\bich habe\b[^.!?]*\b(?:${GERMAN}|umbenannt|implementiert|aktualisiert)\b`),
  formOf(FRENCH, String.raw`\bj'ai (?:\p{L}+ )?(?:${FRENCH})`),
  formOf(SPANISH, String.raw`(?:^|[^\p{L}])(?:he|hemos) (?:${SPANISH})`),
  formOf(PORTUGUESE, String.raw`(?:^|[^\p{L}])(?:${PORTUGUESE})(?:[^\p{L}]|$)`),
  formOf(ITALIAN, String.raw`(?:^|[^\p{L}])ho (?:${ITALIAN})`),
  formOf(RUSSIAN, String.raw`(?:^|[^\p{L}])${RUSSIAN_I} (?:${RUSSIAN})${RUSSIAN_SHE}?(?:[^\p{L}]|$)`),
  formOf(
    "我已|しました|습니다",
    "我已经?(?:成功)?(?:修复|修正|修改|更新|添加|更正|替换|删除|更改|解决|实现)|(?:修正|変更|追加|削除|更新|修復)しました|수정했습니다|변경했습니다|추가했습니다",
  ),
];

/** Says that the work was done just now. */
const DONE: readonly Form[] = [
  formOf(
    "been",
    String.raw`\b(?:has|have) (?:now |just |successfully )*been (?:now |just |successfully )*(?:${CHANGED}|made|resolved|applied)\b`,
  ),
  formOf("is now|are now", String.raw`\b(?:is|are) now (?:${CHANGED})\b`),
  formOf("successfully", String.raw`\b(?:was|were) successfully (?:${CHANGED}|made|resolved|applied)\b`),
  formOf(GERMAN, String.raw`\b(?:wurden?|ist|sind) (?:jetzt |nun |erfolgreich )*(?:${GERMAN})\b`),
];

/** The sentence says that it was done before, by somebody else, only in thought, or not at all. */
const ELSEWHEN = anyOf([
  // Another time.
  "already before earlier previous(?:ly)? last recent(?:ly)? once until yet",
  /\bin (?:commit|version|release|v?\d)/,
  // Somebody else, or by other means than the model's own change.
  "upstream history author someone somebody",
  /\bby (?!(?:adding|changing|removing|replacing|using|making|setting|moving)\b)/,
  // Not at all.
  "not never cannot",
  /n't\b/,
  // Only in thought.
  "if unless whether would could might may must should needs? seems? appears? looks?_like assum\\w+ imagine suppose",
  // The same in other languages.
  "bereits schon nicht nichts keine?n? wenn falls rien déjà pas si nada ya não non no",
  /не |没|未|ありません/,
]);

/** Anywhere in the answer: there is nothing to do, or a change was taken back. */
const BELIEVED = anyOf([
  // Nothing has to change.
  /\bnothing (?:to|needs?|was|has|had|else|is|i)\b/,
  /\bno (?:further |other |more |code |file )*(?:changes?|edits?|fix|modifications?|actions?|work) (?:is|are|was|were|needed|necessary|required)\b/,
  /\bno (?:changes?|edits?|files?)\b/,
  /\b(?:did|do|does|have|has|was|were|is|are|could|can)(?: not|n't) (?:\w+ )?(?:need|chang|edit|modif|fix|requir|necessary|touch|written|writ|able)/,
  // Taken back.
  "reverted undid undone restored rolled_back took_back taken_back put_(?:it|them|everything|that)_back",
  // Changes that no text of a file shows.
  "unchanged untouched timestamps? mtime empty_(?:folder|directory)",
]);

/** The tests as a whole pass now. */
const PASSES: readonly Form[] = [
  formOf(
    "pass|succe|green",
    String.raw`(?:^|\b(?:all|both|every|the|its|your|\d+|and|that|so)\s)(?:of )?(?:the |these |\d+ |unit |existing |project's |other )*(?:tests?|test suite|suite|specs?|checks?)(?: cases?)?(?: now| all| successfully| again)* (?:pass(?:es|ed)?|succeed(?:s|ed)?|(?:is|are) (?:now |all )?(?:passing|green|successful))\b`,
  ),
  formOf(
    "passes|green|passing",
    String.raw`\b(?:everything|all|it all) (?:now )?passes\b|\ball (?:is )?green\b|\b(?:with|has|have) all (?:\d+ )?tests passing\b`,
  ),
  formOf(
    "test|pruebas|тест|测试|テスト",
    String.raw`\balle tests? (?:laufen|bestehen|sind ${GERMAN_GREEN})|\btous les tests passent\b|\btodas? las pruebas pasan\b|\btodos los tests pasan\b|${TESTS_PASS}`,
  ),
];
/** Says which tests do not pass, or that the result is not known. */
const PARTLY = anyOf([
  "except apart_from besides but although though still some most fail(?:s|ed|ing|ures?)?",
  // Not known yet.
  "when to_make make_sure ensure so_that verify confirm check_(?:that|if) expect will can run",
]);

const FENCE = /^ *(```+|~~~+)[^\n]*\n([^]*?)(?:^ *\1 *$|(?![^]))/gm;

/** Sentences without code, markup, signs and quotations, in lower case. */
function sentencesIn(answer: string): readonly string[] {
  return answer
    .replaceAll(FENCE, "\n")
    .replaceAll(/`[^`\n]*`/g, "x")
    .replaceAll(/"[^"\n]{0,1000}"|“[^”\n]{0,1000}”|«[^»\n]{0,1000}»/g, "x")
    .replaceAll(/^ *>[^\n]*$/gm, "")
    .replaceAll("’", "'")
    .replaceAll(/[*_#]+/g, "")
    .toLowerCase()
    .split(/(?<=[.!?;:])\s+|(?<=[。！？])|\n+/)
    .map((sentence) => sentence.trim().replace(/^[^\p{L}]+/u, ""));
}

/** Characters that are read: an answer makes its claim at the beginning or the end. */
const MAX_ANSWER = 20_000;

/** The sentences that are read of an answer. */
const plainSentences = (answer: string): readonly string[] =>
  sentencesIn(
    answer.length <= MAX_ANSWER
      ? answer
      : `${answer.slice(0, MAX_ANSWER / 2)}\n${answer.slice(-MAX_ANSWER / 2)}`,
  );

/** Whether an answer says plainly that tests pass now. */
export const saysTestsPass = (answer: string): boolean =>
  plainSentences(answer).some(
    (sentence) =>
      PASSES.some((form) => matchesForm(sentence, form)) &&
      !ELSEWHEN.test(sentence) &&
      !PARTLY.test(sentence),
  );

const reportsDone = (sentence: string): boolean =>
  [...MINE, ...DONE].some((form) => matchesForm(sentence, form)) && !ELSEWHEN.test(sentence);

/** Whether an answer says plainly that it changed something. */
export function saysChanged(answer: string): boolean {
  const sentences = plainSentences(answer);
  return sentences.some(reportsDone) && !sentences.some((sentence) => BELIEVED.test(sentence));
}

/** Characters read of each sentence: its beginning shows what it is. */
const MAX_SENTENCE = 300;

/** Said before the thing itself. */
const OPENING =
  "^(?:(?:ok|okay|sure|certainly|of course|great|alright|so|and|but|also|first|next|now|then|before that),? ){0,3}(?:to (?:do|help|fix|solve|start|proceed|continue|begin|answer|find|summari[sz]e)[^,]{0,80}, )?";

/** Asks a user who is not there for what it needs. */
const ASKS_BACK = new RegExp(
  `${OPENING}(?:(?:could|can|would|will) you (?:please |kindly |also ){0,2}(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|show|explain|let)\\b|(?:please|kindly) (?:also )?(?:provide|share|clarify|specify|give|tell|confirm|describe|send|paste|upload|let me know|make sure (?:that )?you|ensure (?:that )?you)\\b|i (?:would |will |'ll |'d )?need (?:(?:some |a bit )?(?:more|further|additional|the following)\\b|to (?:know|understand|see)\\b)|(?:what|which|where|how|who|when)\\b[^?]*\\b(?:would you like|do you want|do you mean|should i|shall i|can i)\\b|(?:do you want|would you like|shall i|should i)\\b|(?:more|further|additional) (?:details?|information|context) (?:is|are) (?:needed|required))`,
);

/** Says that it cannot do the request at all. Not having found something is an answer. */
const GIVES_UP = anyOf([
  anyOf(
    [
      "assist help do complete fulfill? answer proceed continue comply carry",
      "access open view see read interact perform execute run",
      "provide summari[sz]e analy[sz]e make modify edit fix write create process generate",
    ],
    {
      before:
        "\\bi(?:'m| am)? (?:can't|cannot|can not|could not|couldn't|unable to|not able to|won't be able to)(?: \\w+ly)? ",
      after: "\\b",
    },
  ),
  /\bi (?:don't|do not) have (?:the (?:ability|capability|tools?|means)|(?:direct |any )?access|enough (?:information|context|details)|permission)\b/,
  /^as an? (?:text-based |large )?(?:ai|language model)\b/,
]);
/** If this opens an answer, everything after it is advice. */
const OPENS_GIVING_UP =
  /^(?:(?:i'm|i am) (?:so |very )?sorry|sorry|my apologies|i apologi[sz]e|unfortunately)\b/;

/** Says what will be done next; nothing follows an answer. */
const ANNOUNCES = new RegExp(
  `${OPENING}(?:i(?:'ll| will| am going to|'m going to| am about to|'m about to| shall)|we(?:'ll| will| are going to)|let me|let's|let us)\\b(?! (?:know|be happy|be glad|explain|summari[sz]e|not|never|leave|keep|skip|stop|refrain)\\b)`,
);

/** Says nothing by itself. */
const POLITE = anyOf(
  [
    // Regrets and greetings.
    /(?:(?:i'm|i am) (?:so |very )?)?sorry(?: (?:about|for) [^,.]{0,80})?/,
    /thank(?:s| you)\b.{0,80}|hello|hi|here to help/,
    // Agreement.
    /ok(?:ay)?|sure(?: thing)?|certainly|of course|understood|i understand|got it/,
    // Offers.
    /(?:please )?(?:feel free|don't hesitate)\b.*|let me know\b.*/,
    /i(?:'m| am|'d be| would be|'ll be| will be) (?:happy|glad|here|ready) to (?:help|assist)\b.*/,
    /(?:once|when|after|with) (?:you|i|this|that|these)\b.*\bi(?:'ll| will| can| may)\b.*/,
  ],
  { before: "^", after: "?[.!,:;]*$" },
);

export type NoAnswer = "gives up" | "asks back" | "announces" | "repeats" | "copies" | "says done";

const EVASIONS: readonly (readonly [NoAnswer, Form])[] = [
  ["gives up", formOf("can't|cannot|can not|couldn't|could not|able to|have|as a", GIVES_UP)],
  ["asks back", formOf("you|need|please|kindly|should i|shall i|can i|required", ASKS_BACK)],
  ["announces", formOf("i'll|i will|i am|i'm|i shall|we|let", ANNOUNCES)],
];

const evasionIn = (sentence: string): NoAnswer | undefined =>
  EVASIONS.find(([, form]) => matchesForm(sentence, form))?.[0];

/** How an answer avoids the request entirely; undefined for any other answer. */
export function noAnswerIn(answer: string, request: string): NoAnswer | undefined {
  if (copies(answer)) return "copies";
  if (repeats(answer, request)) return "repeats";
  // Code that is shown is more than words.
  if (/^ *(?:```|~~~)/m.test(answer)) return undefined;
  const sentences = plainSentences(answer)
    .map((sentence) => sentence.slice(0, MAX_SENTENCE))
    .filter((sentence) => !POLITE.test(sentence));
  const [first = ""] = sentences;
  if (OPENS_GIVING_UP.test(first) && GIVES_UP.test(first)) return "gives up";
  const forms = sentences.map(evasionIn);
  return forms.includes(undefined) ? undefined : forms[0];
}

const ONLY_DONE = anyOf(["done finished completed? ready"], {
  before:
    "^(?:(?:i(?:'m| am| have)?|it(?:'s| is| has)?|(?:the |your |this )?(?:task|request|work|job|everything|all)(?: (?:is|has been|was))?) )?(?:now |successfully )?",
  after: "(?: (?:now|successfully|as requested))?[.!]*$",
});

/** Not an answer to a question either, although it is one to a task. */
export const saysOnlyDone = (answer: string): boolean => {
  const sentences = plainSentences(answer).filter((sentence) => !POLITE.test(sentence));
  return (
    sentences.length > 0 && sentences.every((sentence) => ONLY_DONE.test(sentence.slice(0, MAX_SENTENCE)))
  );
};

/** A shorter request may well be its own answer. */
const MIN_REPEATED = 20;

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
  const beginning = answer.slice(0, MAX_SENTENCE).toLowerCase();
  return TOLD.some((text) => beginning.includes(text)) || RESULT.test(beginning);
}

/** The answer is the request itself, with at most a few words around it. */
function repeats(answer: string, request: string): boolean {
  const [answered, requested] = [wordsOnly(answer), wordsOnly(request)];
  if (Math.min(answered.length, requested.length) < MIN_REPEATED) return false;
  return (
    requested.includes(answered) ||
    (answered.includes(requested) && answered.length - requested.length < MIN_REPEATED)
  );
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
const NOT_NEEDED = anyOf([
  "already",
  /\bnothing (?:to|needs?|needs? to|has to|had to|was|is) (?:be )?(?:chang|fix|do|mend|edit|updat|correct|replac|renam|remov|add|wrong)\w*/,
  /\bno (?:further |other |more |code |file |such )*(?:changes?|edits?|fix(?:es)?|modifications?|actions?|updates?|work|occurrences?|matches|issues?|errors?|problems?|bugs?|typos?) (?:(?:is|are|was|were) )?(?:needed|necessary|required|found|to be found|there|made)\b/,
  /\b(?:there (?:is|are)|found|has|have|contains?) no (?:\w+ ){0,3}(?:occurrences?|matches|issues?|errors?|problems?|bugs?|typos?|todos?)\b/,
  /\b(?:does not|doesn't|do not|don't) (?:need|require) (?:a |any |to be )?(?:chang|fix|edit|modif|updat|correct)\w*/,
]);

export const saysNotNeeded = (answer: string): boolean =>
  plainSentences(answer).some((sentence) => NOT_NEEDED.test(sentence));

/** The request leaves open whether a change is needed, so none may be. */
const ON_CONDITION = anyOf([
  "if unless whether any where(?:ver)?_(?:needed|necessary|possible) when(?:ever)?_(?:needed|necessary) as_needed necessary",
  "make_sure ensure check verify review audit look_for see_that",
]);

export const asksOnCondition = (request: string): boolean => ON_CONDITION.test(request.toLowerCase());
