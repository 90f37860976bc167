import type { Intent } from "../../core/events.ts";
import { begins, foreignMarks, isGeneral, isOfTheWorld, marksOf, wordsOf } from "./subjects.ts";

export type Guess = Intent | "unsure";

/** Whoever writes more describes a task, whatever questions are in it. */
const MOST_WORDS = 120;
const MOST_CHARACTERS = 1200;

const ON_THE_WEB =
  /https?:\/\/|\bwww\.|\b(?:latest|newest|current|most recent) (?:stable |lts )?(?:version|release)s? of\b|\bnewer (?:version|release) of\b|\b(?:on|search|from) the (?:web|internet)\b|\bonline\b|\bweather (?:in|today|tomorrow|like)\b|\bin the news\b|\bnews today\b|\b(?:current|today's) (?:stock )?(?:price|rate|score)\b|\bstock price\b|\bexchange rate\b/;

/** A statement behind a question that belongs to it; any other may be what is wanted. */
const CIRCUMSTANCE = /^`|^(?:i|i'm|i've|it|it's|the|this|that|we|my|there|they|he|she)\b/;
const DEMAND = /\b(?:want|need|needs|like|rather|should|must|ought|has to|have to|expect|expected)\b/;

/**
 * What a request is about, by its words alone. Whatever is neither a greeting nor shaped as a question is a task: to read
 * a task as a question leaves it undone, the reverse only costs.
 */
export function guessIntent(text: string): Guess {
  if (text.length > MOST_CHARACTERS || text.split(/\s+/).length > MOST_WORDS) return "change";
  const sentences = sentencesOf(text);
  const matter = sentences.filter(({ kind }) => kind !== "greeting" && kind !== "talk");
  if (matter.length === 0) return sentences.length === 0 ? "change" : "direct";
  if (matter.some(isTask)) return "change";
  const foreign = guessForeign(matter.map((each) => each.text).join(" "), text);
  if (foreign !== undefined) return foreign;
  if (matter.some(({ kind }) => kind === "look-up")) return "web";
  return ofQuestions(
    text,
    matter.filter(({ kind }) => kind !== "reservation"),
  );
}

/** In whatever language it asks for it. */
function isTask({ kind, text }: Sentence): boolean {
  return kind === "task" || (kind === "question" && guessForeign(text, text) === "change");
}

/** Questions with what is said around them. */
function ofQuestions(text: string, said: readonly Sentence[]): Guess {
  const asked = said.filter(({ kind }) => kind === "question");
  const last = said.at(-1);
  if (last === undefined || asked.length === 0) return "change";
  const more = last.kind === "statement";
  if (more && (!CIRCUMSTANCE.test(last.text) || DEMAND.test(last.text))) return "change";
  if (more && asked.every((each) => marksOf(each.text) === "none" && isOfTheWorld(each.text)))
    return "change";
  const topic = topicOf(text, asked);
  return topic === "unsure" && said.length > asked.length ? "repo" : topic;
}

function topicOf(text: string, asked: readonly Sentence[]): Guess {
  const marks = marksOf(text);
  const questions = asked.map((each) => each.text);
  if (questions.some((question) => ON_THE_WEB.test(question)) && (marks === "none" || /https?:/.test(text)))
    return "web";
  const pointed = questions.map((question) => marksOf(question));
  if (marks === "here" || marks === "names" || pointed.includes("here")) return "repo";
  if (questions.every(isGeneral)) return "direct";
  if (marks === "nouns") return "repo";
  return questions.every(isOfTheWorld) ? "direct" : "unsure";
}

/** What one sentence of a request is. A statement says how things are or should be. */
type Kind = "greeting" | "talk" | "task" | "question" | "reservation" | "look-up" | "statement";

interface Sentence {
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

function sentencesOf(text: string): readonly Sentence[] {
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
  const asks =
    ASKING_WORDS.test(rest) || QUESTION.test(text) || QUESTION_MARK.test(text) || ARITHMETIC.test(text);
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

/** In whatever language; what follows is looked at by itself. */
const GREETING = begins(`hi hello hey heya hiya howdy yo greetings welcome thanks thank_you thx ty cheers bye
  goodbye good_bye see_you good_morning good_afternoon good_evening good_day good_night cool nice great perfect awesome
  excellent wonderful lol haha wow nice_work good_job well_done have_a_nice_day
  happy_new_year merry_christmas have_a_good_day have_a_nice_weekend have_a_good_one have_a_great_day
  hallo moin servus guten_morgen guten_tag guten_abend grüß_gott danke vielen_dank tschüss
  bonjour bonsoir salut coucou merci au_revoir
  hola buenos_días buenos_dias buenas_tardes buenas_noches gracias muchas_gracias adiós adios
  ciao buongiorno buonasera salve grazie olá oi bom_dia boa_tarde boa_noite obrigado obrigada muito_obrigado
  hej hoi hei bedankt dank_je merhaba selam teşekkürler cześć dzięki ahoj shalom namaste
  привет здравствуй здравствуйте доброе_утро добрый_день добрый_вечер спасибо מרחבא שלום مرحبا नमस्ते
  你好 您好 早上好 谢谢 谢谢你 こんにちは おはよう おはようございます こんばんは ありがとう ありがとうございます
  안녕 안녕하세요 감사합니다 고마워요`);

/** What may follow a greeting and says nothing more. */
const PLEASANTRY = begins(`there world all everyone everybody again team folks friend buddy mate dude bot
  assistant harness later soon tomorrow so_much very_much a_lot a_million a_bunch one job work stuff you to_you too
  for_the_help for_your_help pour_ton_aide pour_votre_aide für_die_hilfe für_deine_hilfe por_tu_ayuda por_la_ayuda that_was_great that_helps that_helped that_worked beaucoup mille schön sehr muito`);

/** Before the thing itself. */
const FILLER = begins(`ok okay alright right so well now then and but also just please pls kindly actually btw
  by_the_way hmm um first next finally quick_question a_question question one_more_thing another_question`);

const ABOUT_YOU =
  begins(`how_are_you how_are_things how_is_it_going how's_it_going how_is_life how's_life who_are_you
  who_made_you what_are_you what_can_you_do what_do_you_do what's_up what_is_up what's_your what_is_your which_model
  which_llm what_model what_llm nice_to_meet_you tell_me_about_yourself you_there
  ça_va comment_ça_va comment_vas-tu comment_allez-vous wie_geht wer_bist_du wer_sind_sie cómo_estás como_estas qué_tal
  que_tal quién_eres come_stai come_va chi_sei como_vai tudo_bem quem_é_você как_дела кто_ты`);
const OTHER_TALK: readonly RegExp[] = [
  /^are you\b(?! (?:able|sure|certain|done|finished|ready))/,
  /^do you (?:like|speak|feel|have|dream|sleep|remember|know me)\b/,
  /^(?:can|could) you (?:(?:hear|speak|talk|think)\b|help(?: me| us)?\W*$)/,
  /^help(?: me)?\W*$/,
  /^tell me (?:an?|another) (?:\w+ )?(?:joke|story|riddle|fact|poem|tale)\b/,
];

/** Whoever says more says something. */
const MAX_GREETING_WORDS = 8;

/** About the one who is asked, or nothing at all. */
const isSmallTalk = (text: string): boolean =>
  text.split(" ").length <= MAX_GREETING_WORDS &&
  marksOf(text) === "none" &&
  (ABOUT_YOU.test(text.replace(/^¿\s*/u, "")) || OTHER_TALK.some((form) => form.test(text)));

/** The commonest questions of other languages. What is not seen to be one is a task, as in English. */

const SCRIPT =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Devanagari}\p{Script=Thai}]/u;

const QUESTION_WORDS =
  begins(`was_ist was_sind was_macht was_machen was_bedeutet was_passiert was_tut was_kann was_soll
  was_heißt was_bewirkt was_steht wie warum wieso weshalb wozu woher wo wer wann welche welcher welches welchen welchem
  gibt_es wofür
  que quel quelle quels quelles comment_fonctionne comment_est comment_sont comment_on comment_je comment_puis-je
  comment_faire comment_ça comment_marche comment_se pourquoi où qui quand combien est-ce
  qué cuál cuáles cual cómo como por_qué por_que porque dónde donde quién cuándo cuánto cuánta cuántos cuántas hay
  che cosa cos'è qual quale quali come_funziona come_si come_posso come_è come_sono come_mai perché perche dove_si dove_è
  dove_sono dove_viene dove_vengono dove_sta chi quando quanto quanta quanti quante
  o_que onde quem quais por_quê
  что как почему зачем где кто когда какой какая какие сколько`);
const ELIDED = /^¿|^qu'/;
const PARTICLES =
  /(?:吗|呢|什么|怎么|为什么|哪里|哪个|如何|ですか|ますか|でしょうか|どこ|なぜ|까|나요|인가요)[。.\s]*$|[?？؟]["')»\s]*$/u;
const ASKING =
  /^(?:bitte )?(?:erklär|erläuter|beschreib|explique|expliquez|décris|décrivez|résume|explica|explícame|explicame|(?:describe|resume) (?:el|la|los|las|est[ea]|l.)(?= )|spiega|descriv|riassum|expliqu|descrev|объясни|опиши|расскажи|解释|解釈|说明|説明)|(?:kannst|könntest|können|könnten) (?:du|sie) (?:mir |uns )?(?:bitte )?(?:erklären|sagen|beschreiben|erläutern)|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous) (?:m'|me |nous )?(?:expliquer|dire|décrire)|(?:puedes|podrías|puede) (?:explicar|decir|describir)|(?:puoi|potresti) (?:spiegar|dir|descriver)|pode(?:ria)? (?:me )?(?:explicar|dizer|descrever)/u;
const POLITE =
  /(?:kannst|könntest|können|könnten|würdest|würden) (?:du|sie)\b|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous)|^¿?(?:puedes|podrías|podrias|puede usted|podría)|^(?:puoi|potresti|può)\b|^(?:você pode|você poderia|pode |poderia |podes )|^(?:можешь|можете|мог бы|могли бы)|^请|てください|てくれ|주세요|해줘/u;
const ENGLISH = /^(?:what|why|how|where|which|who|is|are|does|do|can|could|explain)\b/;

/** Of a request in lower case and without its greeting, and as it was written. Undefined when it is to be read as English. */
function guessForeign(lower: string, text: string): Intent | "unsure" | undefined {
  const bare = lower.replace(/^[¿¡]\s*/u, "");
  if (ENGLISH.test(lower)) return undefined;
  const asked = ELIDED.test(lower) || QUESTION_WORDS.test(bare);
  if (ASKING.test(bare)) return foreignTopicOf(text, bare);
  if (POLITE.test(bare)) return "change";
  if (SCRIPT.test(lower)) return PARTICLES.test(lower) ? foreignTopicOf(text, bare) : "change";
  if (!asked) return undefined;
  return PARTICLES.test(lower) || isShort(lower) ? foreignTopicOf(text, bare) : "change";
}

function foreignTopicOf(text: string, bare: string): Intent | "unsure" {
  const marks = marksOf(text);
  if (marks === "here" || marks === "names" || foreignMarks(text)) return "repo";
  return isOfTheWorld(bare) ? "direct" : "unsure";
}

/** A question without its mark; a longer text that begins like one may be anything. */
const isShort = (text: string): boolean => text.length < 100 && !/[.!?]\s+\S/.test(text);

/** What asks for something to be done. Only looked for beside a question: all that is no question is a task anyway. */

const VERBS: ReadonlySet<string> = new Set(
  wordsOf(`add adjust allow analyse analyze append apply assert assign audit avoid backport benchmark bring build bump
  bundle cache calculate call change check clean clear clone close code combine commit compile complete compute
  configure connect continue convert copy correct count create cut debug declare decrease delete deploy deprecate detect
  diagnose disable discard document double-check download draft draw drop dump edit eliminate emit enable encode enforce
  ensure evaluate execute expand expose extend extract fetch fill filter finalize find finish fix follow force fork
  format generate get give go group guard handle hide implement improve include increase initialize inline insert inspect
  install integrate introduce invert investigate iterate join keep kill limit link lint list load locate log look lower
  make mark measure merge migrate minify mock modernize modify monitor mount move normalize open optimise optimize order
  organise organize output overwrite pack parallelize parse patch pin plan polish port prepare prevent print produce
  profile prove provide prune publish pull push put raise read rebase rebuild record recreate redo reduce refactor
  reformat regenerate reject release reload remove rename reorder reorganize repair replace reply report reproduce rerun
  reset resolve respond restart restore restrict restructure retry reuse revert review rewrite run sanitize save scan
  search secure select send separate serialize set show shorten simplify skip solve sort speed split squash stage start
  stash stop store strip swap switch sync take throw tidy track transform translate trigger trim try tweak turn undo
  unify uninstall unpack unzip update upgrade use validate verify wire wrap write`),
);

/** Asks for words, not for deeds. */
const ASKING_WORDS = new RegExp(
  `${
    begins(`explain describe define compare summarize summarise outline elaborate recommend tell_me tell_us say_what
    say_why say_how say_where walk_me_through walk_us_through teach_me help_me_understand help_me_to_understand remind_me
    i'd_like_to_know i_would_like_to_know i_want_to_know i'd_like_to_understand i_want_to_understand i'm_wondering
    i_wonder i'm_curious do_you_know does_anyone_know difference_between differences_between pros_and_cons any_idea`)
      .source
  }|^(?:give|show) (?:me|us) (?:an?|the|some) (?:[\\w-]+ )?(?:overview|summary|explanation|description|idea|introduction|tour|example of)\\b`,
  "u",
);

const REQUEST =
  /^(?:(?:can|could|would|will|won't|can't) (?:you|u|someone|somebody)|would you mind|are you able to|i(?:'d| would) like you to|do you mind|mind|would it be possible(?: for you)? to|is it possible for you to)\b,? ?(?:please |kindly |also |just |maybe |perhaps |possibly |quickly )*(.*)$/su;
const PERCEIVING = /^(?:see|know|think|believe)\b/;
const JOINT_REQUEST = /^(?:can|could|shall) we (?:please |also |just |maybe )*([a-z-]+)/;
const PROPOSAL =
  /^(?:(?:how|what) about (?:we |you )?[a-z]+(?:ing\b| it\b| the\b)|how about (?:we|you)\b|why (?:not|don't (?:we|you)|dont (?:we|you))\b|let'?s\b|let us\b)/;
/** Behind a question, in the same sentence. */
const AND_DO =
  /(?:\b(?:and|then)|,) (?:then |please |also )*(?:fix|repair|correct|solve|change|update|add|remove|write|save|apply|implement|rewrite|refactor|put|store) (?:it|that|them|this|the|an?|tests?|its)\b/;
const AND_REQUEST =
  /(?:\band|,|;) (?:can|could|would|will) you (?!please (?:explain|tell)|explain|tell|describe|say|think)/;
const YOU_COULD = /\byou (?:could|can|would|might)(?: please)? ([a-z-]+)/;
const THEN_DO = /,(?: also| please| then| just)* ([a-z-]+)[^,?]*$/;
const PLEASE_DO =
  /\bplease (?:fix|add|change|update|remove|write|make|implement|repair|correct|run|create)\b/;
const INTO_FILE =
  /^\w+ (?:in|into) |\bdocstrings?\b|\bwith (?:a )?comments?\b|\b(?:in|into|to) (?:a|an|the|its own)? ?(?:new )?(?:file\b|[\w/-]+\.(?:md|txt|json|html|rst|csv)\b)/;
/** Only a program can tell: no tool that reads would. */
const OF_THE_SHELL: readonly RegExp[] = [
  /^(?:do|does|did|will|are|is) (?:all |any |the |our |my |these |this |unit |integration )*(?:tests?|suite|test suite|build|code|it|project|program|ci|linter|lint|types?)\b(?: still| now| even| all)*\s+(?:pass|compile|build|succeed|passing|green|typecheck|compiling|building)\b/,
  /\b(?:last|latest|recent|previous|newest) commits?\b|\bgit (?:status|log|diff|blame|history)\b|\b(?:current|which|what) branch\b|\b(?:uncommitted|unstaged|staged)\b|\bwhat(?:'s| has|'ve| is| did)? (?:i |we |they )?changed\b|^who (?:changed|committed|last)\b/,
  /^(?:is|are|which|what) .*\b(?:installed|up and running)\b|^(?:is|are) the (?:\w+ )*running\b/,
  /^(?:how many|which|what|are) .*\b(?:tests?|checks) (?:are |currently )*(?:fail|pass)(?:ing|ed)?\b|^what (?:does|do) .*\b(?:print|output|say)\b.*\bwhen (?:you|i|we) run\b/,
  /^what(?:'s| is) the (?:output|result) of (?:running\b|`|(?:node|python3?|npm|make|go|cargo) )/,
  /^(?:are|is|which) .*dependenc(?:y|ies) .*(?:up to date|outdated)\b/,
  /^how (?:long|fast) (?:do|does) .*(?:tests?|build|suite|it take to (?:run|build|compile|start)|run)\b|^what time is it\b/,
];

type Deed = { readonly kind: "task" } | { readonly kind: "none"; readonly rest: string };

const TASK: Deed = { kind: "task" };

/** Whether a sentence, in lower case and without its greeting, asks for a deed; else what is left of its politeness. */
function deedIn(sentence: string): Deed {
  const request = REQUEST.exec(sentence)?.[1];
  const rest = request ?? sentence;
  if (PROPOSAL.test(rest)) return TASK;
  if (ASKING_WORDS.test(rest)) return alsoDoes(rest) || INTO_FILE.test(rest) ? TASK : { kind: "none", rest };
  if (request !== undefined) return PERCEIVING.test(rest) ? { kind: "none", rest: sentence } : TASK;
  return beginsWithDeed(sentence) || alsoDoes(sentence) || needsShell(sentence)
    ? TASK
    : { kind: "none", rest };
}

function beginsWithDeed(sentence: string): boolean {
  const [first = ""] = /^[a-z-]+/.exec(sentence) ?? [];
  return VERBS.has(first) || VERBS.has(JOINT_REQUEST.exec(sentence)?.[1] ?? "");
}

function needsShell(sentence: string): boolean {
  return !/^how (?:to|do|can|would)\b/.test(sentence) && OF_THE_SHELL.some((form) => form.test(sentence));
}

function alsoDoes(sentence: string): boolean {
  if (AND_REQUEST.test(sentence) || PLEASE_DO.test(sentence)) return true;
  const could = YOU_COULD.exec(sentence)?.[1] ?? "";
  const then = sentence.endsWith("?") ? "" : (THEN_DO.exec(sentence)?.[1] ?? "");
  if (VERBS.has(could) || VERBS.has(then)) return true;
  return (
    AND_DO.test(sentence) && !/^(?:how|what (?:happens|would)|why|should|can i|does|is it)\b/.test(sentence)
  );
}
