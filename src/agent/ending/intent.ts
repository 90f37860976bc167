import type { Mode } from "../../core/decision.ts";
import type { Intent } from "../../core/model-provider.ts";

/*
 * What a request is about, by its words alone; no model is asked. The intent decides whether the box starts at once,
 * and whether a write is questioned once because only a question was asked. It never decides which tools are offered:
 * those are the same in every request of a session, so that servers can keep their prompt cache. A wrong guess costs a
 * start or one turn.
 */

/** A longer text describes a task, whatever questions it contains. */
const MAX_CHARACTERS = 1200;

const wordsOf = (list: string): string =>
  list
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll("_", " "))
    .join("|");

const begins = (list: string): RegExp => new RegExp(`^(?:${wordsOf(list)})(?![\\w-])`);

/** Said before the request itself, or instead of it. */
const GREETING =
  begins(`hi hello hey heya hiya howdy yo greetings welcome thanks thank_you thx ty cheers bye goodbye
  see_you good_morning good_afternoon good_evening good_night good_day cool nice great perfect awesome excellent wonderful
  lol haha wow well_done good_job nice_work happy_new_year merry_christmas have_a_(?:nice|good|great)_\\w+`);
const AFTER_GREETING =
  begins(`there world all everyone everybody again team folks friend buddy mate dude bot assistant later
  soon tomorrow so_much very_much a_lot a_million a_bunch one job work stuff you to_you too for_(?:the|your)_help
  that_was_great that_help(?:s|ed) that_worked`);
const FILLER =
  begins(`ok okay alright right so well now then and but also just please pls kindly actually btw by_the_way hmm um
  first next finally quick_question question one_more_thing`);

/** About the assistant itself, or small talk. */
const SMALL_TALK =
  /^(?:how (?:are (?:you|things)|is it going|is life)|how's (?:it going|life)|who (?:are|made) you|what (?:are you|can you do|do you do)|what's (?:up|new|your)|what is your|which (?:model|llm)|nice to meet you|tell me about yourself|you there|do you (?:like|speak|feel|have|dream|sleep)|are you (?!able|sure|certain|done|finished|ready)|tell me an?(?:other)? (?:\w+ )?(?:joke|story|riddle|fact|poem)|(?:can|could) you (?:hear|speak|talk|help(?: me| us)?\W*$)|help(?: me)?\W*$)/;

const SMALL_TALK_OR_GREETING = new RegExp(`${SMALL_TALK.source}|\\b${GREETING.source.slice(1)}`);

/** Verbs that a task begins with. */
const DEED =
  begins(`add adjust allow analy[sz]e append apply assert audit avoid backport benchmark bring build bump bundle cache
  calculate change check clean clear clone close combine commit compile complete configure connect continue convert copy
  correct count create cut debug declare decrease delete deploy deprecate detect diagnose disable discard document
  double-check download draft draw drop dump edit eliminate enable enforce ensure evaluate execute export expose extend
  extract fetch fill filter find finish fix follow force fork format generate get give go handle hide implement improve
  include increase initialize inline insert inspect install integrate introduce investigate join keep kill limit link lint
  list load locate log look lower make mark measure merge migrate minify mock modernize modify move normalize open optimi[sz]e
  order organi[sz]e output overwrite parse patch pin polish port prepare prevent print produce profile provide publish pull
  push put raise read rebase rebuild record recreate reduce refactor reformat regenerate release reload remove rename reorder
  reorgani[sz]e repair replace report reproduce rerun reset resolve restart restore restrict restructure retry reuse
  revert review rewrite run save scan search secure select send separate set show shorten simplify skip solve sort speed
  split squash stage start stop store strip swap switch sync take test track transform translate trim try turn undo unify
  uninstall update upgrade use validate verify wire wrap write let's let_us (?:how|what)_about_(?:we|you|\\w+ing) why_not why_don't_(?:we|you)`);
/** Asks somebody for a deed; the rest may still ask for words. */
const REQUEST =
  /^(?:(?:can|could|would|will|won't) (?:you|someone|we)|would you mind|do you mind|are you able to|i(?:'d| would) like you to|is it possible(?: for you)? to|shall we),? (?:please |kindly |also |just |maybe )*/;
const DEMAND =
  /^(?:i|we) (?:want|need|would like|expect)\b(?! to (?:know|understand))|\bplease (?:fix|add|change|update|remove|write|make|run|create)\b|(?:\b(?:and|then)|,) (?:then |please |also |(?:can|could|would) you )*(?:fix|repair|correct|change|update|add|remove|write|save|implement|rewrite|refactor|put|store) (?:it|that|them|this|the|an?|tests?|its)\b/;
/** Only running a program can tell. */
const NEEDS_A_RUN =
  /^(?:do|does|did|will|are|is) (?:all |the |our |my |unit )*(?:tests?|suite|build|code|project|it|linter|lint|types?)\b(?: still| now| all)* (?:pass|compile|build|succeed|passing|green|compiling)\b|\b(?:last|latest|recent) commits?\b|\bgit (?:status|log|diff|blame|history)\b|\b(?:uncommitted|unstaged|staged)\b|^(?:how many|which|what|are) .*\b(?:tests?|checks) (?:are |currently )*fail(?:ing|ed)?\b|^who (?:changed|committed|last)\b|\bthe (?:output|result) of\b|\bwhen (?:you|i|we) run\b|\bup to date\b/;

/** Asks for words, not for deeds. */
const ASKING =
  /^(?:explain|describe|define|compare|summari[sz]e|outline|recommend|elaborate|tell (?:me|us)|say (?:what|why|how)|walk (?:me|us) through|teach me|remind me|help me(?: to)? understand|i(?:'d| would)? (?:like|want) to (?:know|understand)|i wonder|i'm (?:wondering|curious)|any idea|differences? between|pros and cons|(?:give|show) (?:me|us) (?:an?|the|some) (?:[\w-]+ )?(?:overview|summary|explanation|description|idea|tour|example of))\b/;
/** The words are to be put into a file. */
const INTO_FILE =
  /^\w+ (?:in|into) |\bdocstrings?\b|\b(?:in|into|to) (?:a |the )?(?:new )?(?:file\b|[\w/-]+\.(?:md|txt|json|html)\b)/;
const QUESTION =
  /^(?:what|why|how|where|which|who|whose|when|is|are|was|were|does|did|do (?:you|we|i|they)|am|isn't|aren't|doesn't|didn't|should|has|have)(?:'s|'re)?\b|\?["')\s]*$|^[\d\s+*/().^%-]*\d\s*[-+*/^]\s*\d[\d\s+*/().^%-]*=?$/;
const RESERVATION =
  /^(?:(?:i |we )?(?:don't|do not|never)(?: want| need)?(?: you to| to| any)? ?|without |no )(?:chang|modif|edit|touch|writ|fix|creat|delet|commit|run|mak|code)\w*[^,.;:!?]*,?\s*(?:just|only|but)?/;

/** Words of somebody working on a project, paths, names from code, and things that projects have. */
const HERE =
  /\b(?:this|these)\b(?! (?:year|week|month|day|time|morning|century))|\b(?:our|my|here|codebase)\b|\bwe\b|\bline \d+\b|\bin (?:src|lib|tests?|docs)\b|^(?:(?:how|what|why) )?(?:does|do|is|can|did|will) it\b|\b(?:did|have) you\b|\byou (?:did|changed|made|wrote|said)\b|^are you (?:sure|done)|^why am i\b|(?:^|\b(?:and|or|,) )where(?:'s| (?:is|are|does|do|can i find|in))\b|\b(?:may|can|must) (?:an? |the )?(?:users?|clients?|customers?|visitors?|callers?)\b/;
const NAMED =
  /`[^`]+`|\b\w+\(\)|\b[A-Za-z]\w*_\w+|\b[a-z]+[A-Z]\w*\b|(?:^|\s)\.{0,2}\/?(?:[\w.-]+\/)+[\w.-]*|\b[\w-]+\.(?:[cm]?[jt]sx?|py|rb|rs|go|java|kt|c|cc|cpp|h|cs|php|sh|sql|html|css|json|ya?ml|toml|md|txt|lock|ini|cfg|env|log)\b(?!\w)|\b(?:README|Makefile|Dockerfile|LICENSE|CHANGELOG)\b/;
const NO_NAMES =
  /\b(?:JavaScript|TypeScript|GitHub|GitLab|PostgreSQL|MySQL|NoSQL|SQLite|MongoDB|GraphQL|OpenAI|ChatGPT|DevOps|YouTube|iPhone|macOS|WebAssembly|WebSockets?|PyTorch|TensorFlow|OAuth|HashMap|(?:node|next|vue|react|three|express|asp)\.(?:js|ts|net)|(?:tcp|ci|client|input|and|async|read|either|pros|yes)\/\w+)\b/gi;
const THINGS =
  /\b(?:the|a|any|some|all|each|every|which|what|how many|of|no|two|three) (?:[\w-]+ ){0,2}(?:repo|repository|project|code|source|files?|folders?|director(?:y|ies)|modules?|packages?|class(?:es)?|functions?|methods?|tests?|bugs?|builds?|scripts?|config(?:uration)?|settings|app|library|components?|endpoints?|server|client|services?|api|cli|ui|parser|handlers?|controllers?|routes?|router|middleware|database|schema|migrations?|pipeline|workflow|dependenc(?:y|ies)|todos?|docs|logger|worker|queue|cache|commands?|flags?|options?|architecture|entry ?point|errors?|tools?|prompts?)(?![\w-])/;
const WEB =
  /https?:\/\/|\bwww\.|\b(?:latest|newest|current) (?:stable |lts )?(?:version|release)s? of\b|\b(?:on|search|from) the (?:web|internet)\b|\bonline\b|\bweather (?:in|today|tomorrow)\b|\bnews today\b|\b(?:stock|current) price\b|\bexchange rate\b/;
const LOOK_UP =
  /^(?:search|look|browse|find|google|check|read|open|visit)\b.*(?:\bthe (?:web|internet)\b|\bonline\b|https?:\/\/)/;
/** Asks for general knowledge, if nothing in it points at a project. */
const GENERAL =
  /^(?=.*\d)[\d\s+*/().^%x=?-]+$|^(?:what(?:'s| is)|how much is|calculate)? ?\d+(?:\.\d+)? ?[-+*/^x%]|\b(?:stand|short) for\b|\bmean(?:ing)?\b|\bdifferences? between\b|\bpros and cons\b|\b(?:dis)?advantages of\b|\bversus\b|\bvs\b|^(?:what|who)(?:'s| is| are|'re) (?!the |it\b|wrong|missing)[^?]{1,40}\??$|^(?:what|which)(?:'s| is| are)? the (?:best|fastest|most|easiest|biggest|largest|oldest|first|capital|population|boiling|speed|plural|tallest|longest|square root|time complexity) |^(?:who|when) (?:\w+ed|wrote|made|was|were|is|did|won)\b|^how (?:to|do you|far|old|tall)\b|\w+er than\b|^which is \w+er\b|^what does (?!it\b|the |this |that )\S+(?: \S+)? do\b|^(?:explain|describe|define|compare|tell me|teach me|give me|what|how|why|when|should i)\b.* an? |^(?:explain|describe|define|compare) (?!how|why|where|the )/;

interface Sentence {
  readonly text: string;
  readonly written: string;
}

/** The sentences without greetings and fillers; empty ones are left out. */
function sentencesOf(text: string): readonly Sentence[] {
  return text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, " `code` ")
    .replaceAll("’", "'")
    .split(/(?<=[.!?;:])\s+|\n+/)
    .map((part) => ({ text: withoutOpening(part.trim().toLowerCase()), written: part.trim() }))
    .filter(({ text }) => text !== "");
}

function withoutOpening(sentence: string): string {
  let text = sentence.replace(/^(?:[-*+>#]+|\d+[.)])\s+/, "");
  for (;;) {
    const before = text;
    text = text.replace(/^[\s,.!;:–—()~^…\p{Emoji_Presentation}-]+/u, "");
    if (GREETING.test(text)) {
      text = text.replace(GREETING, "").replace(/^[\s,.!]+/, "");
      while (AFTER_GREETING.test(text)) text = text.replace(AFTER_GREETING, "").replace(/^[\s,.!]+/, "");
    }
    text = text
      .replace(FILLER, "")
      .replace(/^if (?:so|not|yes|possible|needed)[,\s]+/, "")
      .replace(RESERVATION, "")
      .trim();
    if (text === before) return text;
  }
}

function isDeed({ text }: Sentence): boolean {
  const request = text.replace(REQUEST, "");
  if (DEMAND.test(request))
    return !/^(?:how|what|why|should|does|is)\b/.test(request) || /\bplease\b/.test(request);
  if (ASKING.test(request)) return INTO_FILE.test(request);
  if (request !== text) return !/^(?:see|know|think|believe)\b/.test(request);
  return DEED.test(text) || NEEDS_A_RUN.test(text);
}

/** Code, paths and file names: their words are not words of the request. */
const QUOTED = /`[^`]*`|\S*[\w*][./]\S+/g;
const CLAUSES = /\s*[,;]\s*|\s+(?:and|then|but|also)\s+/;
/** Asks to run something that exists. `execute the plan` and `run an audit` are tasks like any other. */
const RUNS =
  /^(?:re-?run|run|execute|invoke|launch)\b(?! an? )|^(?:lint|type-?check|benchmark|profile) |^(?:build|compile|test|check|start|lint)(?: (?:it|this|that|the|my|our|all|whole|entire|of|everything|projects?|codebase|code|repo(?:sitory)?|app(?:lication)?|programs?|packages?|library|tests?|suite|build|types?|server|again|now))*\W*$|^(?:check|see|verify|confirm|find out)(?: that| if| whether)? (?:(?:all|the|our|my|this|unit|projects?|project's) )*(?:tests?|suite|build|code|project|it|linter|lint|types?)(?: (?:still|now|all))* (?:pass(?:es)?|compiles?|builds?|succeeds?|runs?|works?|(?:is|are) (?:green|passing))\b/;
const RESULT_OF_A_RUN =
  /^(?:do|does|did|will|are|is) (?:all |the |our |my |unit )*(?:tests?|suite|build|linter|lint|types?)\b(?: still| now| all)* (?:pass|compile|build|succeed|passing|green|compiling)\b|^(?:how many|which|what) (?:of the )?(?:unit )?tests? (?:are |currently )*(?:fail|pass)(?:ing|ed)?\b/;
/** Wants files to change, or more to be done than is named. */
const MORE_THAN_A_RUN =
  /\b(?:fix(?:es|ed)?|repair|mend|correct|resolve|solve|until|make (?:it|them|sure|all|the tests)|implement|add|write|create|update|edit|change|modify|refactor|remove|delete|replace|rename|improve|optimi[sz]e|ensure|commit|push|save|store|plan|steps|tasks?|instructions?|to-?dos?|turn|upgrade|migrate|port)\b/;

/**
 * Whether the request only wants something to be run and its outcome: "run the tests", "build it and show me the
 * errors". No file has to change for it, and an answer that the tests fail is valid. In doubt it is a task like any
 * other.
 */
export const asksToRun = (request: string): boolean => asksOnly(request, isRun);

/** The same for information about the repository: "what changed in the last commit?", "list all TODOs". */
export const asksToLook = (request: string): boolean => asksOnly(request, isLook);

function asksOnly(request: string, isThis: (clause: string) => boolean): boolean {
  if (request.length > MAX_CHARACTERS) return false;
  const clauses = sentencesOf(request.replaceAll(QUOTED, "x")).flatMap(({ text }) =>
    text.replace(REQUEST, "").split(CLAUSES).map(withoutOpening),
  );
  if (clauses.some((clause) => MORE_THAN_A_RUN.test(clause) && !isLook(clause))) return false;
  return (
    clauses.some(isThis) &&
    clauses.every((clause) => isThis(clause) || !DEED.test(clause) || TELLS.test(clause))
  );
}

const OF_GIT =
  /\b(?:last|latest|recent) (?:\d+ )?commits?\b|\bgit (?:status|log|diff|blame|history)\b|\b(?:uncommitted|unstaged|staged)\b|^who (?:changed|committed|last)\b/;
const ASKS_FOR_WORDS =
  /^(?:show|tell|list|print|what|which|who|when|why|where|how|is|are|was|were|do|does|did)\b/;
const LOOKS =
  /^(?:show|tell) (?:me|us)\b(?! how to| an? )|^give (?:me|us) (?:the (?:list|names?|number|size|version|output)|all)\b|^count\b|^(?:list|print|display|output|show) (?:all|every|each|the (?:names?|contents?|versions?|sizes?|number|output|first|last|largest|smallest|biggest|files?|todos?))\b/;
/** A program should show it from now on. */
const FOR_USERS =
  /\b(?:when|if|whenever|while|users?|pages?|screen|header|footer|button|dialog|menu|instead|by default|before|after|on (?:start|exit)|at the (?:start|end)|in the (?:ui|app|cli|logs?|output|console|terminal)|in (?:red|green|bold|colou?r))\b/;

const isLook = (clause: string): boolean =>
  (LOOKS.test(clause) && !FOR_USERS.test(clause)) || isOfGit(clause);

/** Needs a verb after the question word: `where the config is read, also …` asks nothing. */
const OPEN_QUESTION =
  /^(?:(?:how|why|what|where|when|which|who|whose)\b(?! about\b)(?:'s|'re)?(?: [\w-]+)+|(?:is|are|was|were|does|did|do (?:we|they|users?)|has|have|isn't|aren't|doesn't|can (?!you\b|we\b|i\b)[\w-]+)(?: [\w-]+){2,}).*\?["')\s]*$/;

/**
 * A question whose words do not tell whether it is about the project. Either way it wants an answer and no change. A
 * question of two words refers to what was said before.
 */
const isOpenQuestion = ({ text }: Sentence): boolean =>
  OPEN_QUESTION.test(text) &&
  text.split(" ").length > 2 &&
  ![DEED, NEEDS_A_RUN, MORE_THAN_A_RUN, DEMAND, /\b(?:can|could|would|will) you\b/].some((wanted) =>
    wanted.test(text),
  );

const isOfGit = (clause: string): boolean => OF_GIT.test(clause) && ASKS_FOR_WORDS.test(clause);

const isRun = (clause: string): boolean => RUNS.test(clause) || RESULT_OF_A_RUN.test(clause);

/** Asks for the result. */
const TELLS = /^(?:give|list|load|look|output|print|report|say|show|wait)\b/;

const looksUp = ({ text }: Sentence): boolean => LOOK_UP.test(text) && !DEMAND.test(text);

/**
 * The intent that the words express. A question that may be about anything counts as one about the repository. If the
 * words say nothing, the intent is a change; in read-only mode, such a question.
 */
export function guessIntent(text: string, mode: Mode): Intent {
  const otherwise = mode === "read-only" ? "repo" : "change";
  if (text.length > MAX_CHARACTERS || !/[\p{L}\p{N}]/u.test(text)) return otherwise;
  const matter = sentencesOf(text).filter(
    ({ text: sentence }) => !SMALL_TALK.test(sentence) || sentence.length > 60 || DEMAND.test(sentence),
  );
  if (matter.length === 0)
    return SMALL_TALK_OR_GREETING.test(text.trim().toLowerCase().replaceAll("’", "'")) ? "direct" : otherwise;
  if (matter.some((each) => !looksUp(each) && isDeed(each))) return "change";
  const lower = text.toLowerCase();
  if (matter.some(looksUp) || (WEB.test(lower) && (lower.includes("://") || !HERE.test(lower)))) return "web";
  return topicOf(matter) ?? (matter.every(isOpenQuestion) ? "repo" : otherwise);
}

/** What the questions and the text around them are about; undefined when they do not say, or there are none. */
function topicOf(matter: readonly Sentence[]): Intent | undefined {
  const questions = matter
    .map(({ text }) => ({ text, bare: text.replace(REQUEST, "") }))
    .filter(({ text, bare }) => QUESTION.test(text) || ASKING.test(bare));
  if (questions.length === 0) return undefined;
  const whole = matter.map(({ text }) => text).join(" ");
  const names = matter.map(({ written }) => written.replaceAll(NO_NAMES, " ")).join(" ");
  if (HERE.test(whole) || questions.some(({ text }) => HERE.test(text)) || NAMED.test(names)) return "repo";
  if (THINGS.test(whole)) return "repo";
  return questions.every(({ bare }) => GENERAL.test(bare)) ? "direct" : undefined;
}

/** The intent of one request while it is worked on, shared by its subagents. */
export class RunIntent {
  #intent: Intent = "change";
  #onlyLooks = false;
  #questionedAt: number | undefined;

  get intent(): Intent {
    return this.#intent;
  }

  /** `onlyLooks`: the request is a question, whatever is needed to answer it. */
  begin(intent: Intent, onlyLooks = false): void {
    this.#intent = intent;
    this.#onlyLooks = onlyLooks;
    this.#questionedAt = undefined;
  }

  /** For a question, the writes of the first reply that has any are questioned; later ones run. */
  write(turn: number): "runs" | "questioned" | "escalated" {
    if (this.#intent !== "repo" && !this.#onlyLooks) return "runs";
    this.#questionedAt ??= turn;
    if (this.#questionedAt === turn) return "questioned";
    this.#intent = "change";
    this.#onlyLooks = false;
    return "escalated";
  }
}
