import { anyOf, type ExpressionTable } from "../../core/text/expression-table.ts";
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

const begins = (...lists: readonly string[]): ExpressionTable =>
  anyOf(lists, { before: "^", after: "(?![\\w-])" });

const GREETINGS = [
  "hi hello hey heya hiya howdy yo greetings welcome see_you cheers bye goodbye",
  "thanks thank_you thx ty good_morning good_afternoon good_evening good_night good_day",
  "cool nice great perfect awesome excellent wonderful lol haha wow well_done good_job nice_work",
  "happy_new_year merry_christmas have_a_(?:nice|good|great)_\\w+",
];
/** Said before the request itself, or instead of it. */
const GREETING = begins(...GREETINGS);
const AFTER_GREETING =
  begins(`there world all everyone everybody again team folks friend buddy mate dude bot assistant later
  soon tomorrow so_much very_much a_lot a_million a_bunch one job work stuff you to_you too for_(?:the|your)_help
  that_was_great that_help(?:s|ed) that_worked`);
const FILLER =
  begins(`ok okay alright right so well now then and but also just please pls kindly actually btw by_the_way hmm um
  first next finally quick_question question one_more_thing`);

/** About the assistant itself, or small talk. */
const SMALL_TALK = anyOf(
  [
    // Greetings.
    /how (?:are (?:you|things)|is it going|is life)|how's (?:it going|life)|nice to meet you|what's (?:up|new|your)/,
    // About the assistant.
    /who (?:are|made) you|what (?:are you|can you do|do you do)|what is your|which (?:model|llm)/,
    /tell me about yourself|you there|do you (?:like|speak|feel|have|dream|sleep)/,
    /are you (?!able|sure|certain|done|finished|ready)/,
    // Entertainment, or help with nothing in particular.
    /tell me an?(?:other)? (?:\w+ )?(?:joke|story|riddle|fact|poem)/,
    /(?:can|could) you (?:hear|speak|talk|help(?: me| us)?\W*$)|help(?: me)?\W*$/,
  ],
  { before: "^" },
);

const SMALL_TALK_OR_GREETING = anyOf([SMALL_TALK, anyOf(GREETINGS, { before: "\\b", after: "(?![\\w-])" })]);

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
const REQUEST = anyOf(
  [
    /(?:can|could|would|will|won't) (?:you|someone|we)|shall we/,
    /would you mind|do you mind|are you able to|is it possible(?: for you)? to|i(?:'d| would) like you to/,
  ],
  { before: "^", after: ",? (?:please |kindly |also |just |maybe )*" },
);
const DEMAND = anyOf([
  /^(?:i|we) (?:want|need|would like|expect)\b(?! to (?:know|understand))/,
  /\bplease (?:fix|add|change|update|remove|write|make|run|create)\b/,
  // "… and then fix it".
  anyOf(["fix repair correct change update add remove write save implement rewrite refactor put store"], {
    before: "(?:\\b(?:and|then)|,) (?:then |please |also |(?:can|could|would) you )*",
    after: " (?:it|that|them|this|the|an?|tests?|its)\\b",
  }),
]);
/** Only running a program can tell. */
const NEEDS_A_RUN = anyOf([
  // "Do the tests pass?", "which tests fail?"
  /^(?:do|does|did|will|are|is) (?:all |the |our |my |unit )*(?:tests?|suite|build|code|project|it|linter|lint|types?)\b(?: still| now| all)* (?:pass|compile|build|succeed|passing|green|compiling)\b/,
  /^(?:how many|which|what|are) .*\b(?:tests?|checks) (?:are |currently )*fail(?:ing|ed)?\b/,
  // Git's knowledge.
  "(?:last|latest|recent)_commits? git_(?:status|log|diff|blame|history) uncommitted unstaged staged",
  /^who (?:changed|committed|last)\b/,
  // Any other output.
  "the_(?:output|result)_of when_(?:you|i|we)_run up_to_date",
]);

/** Asks for words, not for deeds. */
const ASKING = anyOf(
  [
    "explain describe define compare summari[sz]e outline recommend elaborate say_(?:what|why|how)",
    "tell_(?:me|us) walk_(?:me|us)_through teach_me remind_me help_me(?:_to)?_understand",
    "i(?:'d|_would)?_(?:like|want)_to_(?:know|understand) i_wonder i'm_(?:wondering|curious) any_idea",
    "differences?_between pros_and_cons",
    /(?:give|show) (?:me|us) (?:an?|the|some) (?:[\w-]+ )?(?:overview|summary|explanation|description|idea|tour|example of)/,
  ],
  { before: "^", after: "\\b" },
);
/** The words are to be put into a file. */
const INTO_FILE =
  /^\w+ (?:in|into) |\bdocstrings?\b|\b(?:in|into|to) (?:a |the )?(?:new )?(?:file\b|[\w/-]+\.(?:md|txt|json|html)\b)/;
const QUESTION = anyOf([
  /^(?:what|why|how|where|which|who|whose|when)(?:'s|'re)?\b/,
  /^(?:is|are|was|were|does|did|do (?:you|we|i|they)|am|isn't|aren't|doesn't|didn't|should|has|have)(?:'s|'re)?\b/,
  /\?["')\s]*$/,
  // A sum.
  /^[\d\s+*/().^%-]*\d\s*[-+*/^]\s*\d[\d\s+*/().^%-]*=?$/,
]);
const RESERVATION = anyOf(
  [/(?:i |we )?(?:don't|do not|never)(?: want| need)?(?: you to| to| any)? ?/, /without |no /],
  {
    before: "^",
    after:
      "(?:chang|modif|edit|touch|writ|fix|creat|delet|commit|run|mak|code)\\w*[^,.;:!?]*,?\\s*(?:just|only|but)?",
  },
);

/** Words of somebody working on a project, paths, names from code, and things that projects have. */
const HERE = anyOf([
  // The project that people work on.
  "our my here codebase we in_(?:src|lib|tests?|docs) line_\\d+",
  /\b(?:this|these)\b(?! (?:year|week|month|day|time|morning|century))/,
  /(?:^|\b(?:and|or|,) )where(?:'s| (?:is|are|does|do|can i find|in))\b/,
  // What was done before.
  "(?:did|have)_you you_(?:did|changed|made|wrote|said)",
  /^are you (?:sure|done)|^why am i\b/,
  // The program and the people who use it.
  /^(?:(?:how|what|why) )?(?:does|do|is|can|did|will) it\b/,
  /\b(?:may|can|must) (?:an? |the )?(?:users?|clients?|customers?|visitors?|callers?)\b/,
]);
const NAMED = anyOf([
  // Code and identifiers.
  /`[^`]+`|\b\w+\(\)|\b[A-Za-z]\w*_\w+|\b[a-z]+[A-Z]\w*\b/,
  // Paths, and names of files.
  /(?:^|\s)\.{0,2}\/?(?:[\w.-]+\/)+[\w.-]*/,
  /\b[\w-]+\.(?:[cm]?[jt]sx?|py|rb|rs|go|java|kt|c|cc|cpp|h|cs|php|sh|sql|html|css|json|ya?ml|toml|md|txt|lock|ini|cfg|env|log)\b(?!\w)/,
  "README Makefile Dockerfile LICENSE CHANGELOG",
]);
const NO_NAMES = anyOf(
  [
    "JavaScript TypeScript WebAssembly WebSockets? GraphQL OAuth HashMap",
    "GitHub GitLab OpenAI ChatGPT DevOps YouTube iPhone macOS",
    "PostgreSQL MySQL NoSQL SQLite MongoDB PyTorch TensorFlow",
    /(?:node|next|vue|react|three|express|asp)\.(?:js|ts|net)/,
    // "client/server", "and/or".
    /(?:tcp|ci|client|input|and|async|read|either|pros|yes)\/\w+/,
  ],
  { before: "\\b", after: "\\b", flags: "gi" },
);
const THINGS = anyOf(
  [
    "repo repository project code source files? folders? director(?:y|ies) modules? packages? library",
    "class(?:es)? functions? methods? components? handlers? controllers? routes? router middleware parser",
    "app server client services? api cli ui endpoints? database schema migrations? logger worker queue cache",
    "tests? bugs? errors? builds? scripts? config(?:uration)? settings pipeline workflow dependenc(?:y|ies)",
    "commands? flags? options? tools? prompts? todos? docs architecture entry_?point",
  ],
  {
    before: "\\b(?:the|a|any|some|all|each|every|which|what|how many|of|no|two|three) (?:[\\w-]+ ){0,2}",
    after: "(?![\\w-])",
  },
);
const WEB = anyOf([
  /https?:\/\/|\bwww\./,
  "online (?:on|search|from)_the_(?:web|internet)",
  // What changes from day to day.
  "(?:latest|newest|current)_(?:stable_|lts_)?(?:version|release)s?_of",
  "weather_(?:in|today|tomorrow) news_today (?:stock|current)_price exchange_rate",
]);
const LOOK_UP =
  /^(?:search|look|browse|find|google|check|read|open|visit)\b.*(?:\bthe (?:web|internet)\b|\bonline\b|https?:\/\/)/;
/** Asks for general knowledge, if nothing in it points at a project. */
const GENERAL = anyOf([
  // Sums.
  /^(?=.*\d)[\d\s+*/().^%x=?-]+$/,
  /^(?:what(?:'s| is)|how much is|calculate)? ?\d+(?:\.\d+)? ?[-+*/^x%]/,
  // Words and comparisons.
  "(?:stand|short)_for mean(?:ing)? differences?_between pros_and_cons (?:dis)?advantages_of versus vs",
  /\w+er than\b|^which is \w+er\b/,
  // Facts about the world.
  /^(?:what|who)(?:'s| is| are|'re) (?!the |it\b|wrong|missing)[^?]{1,40}\??$/,
  /^(?:what|which)(?:'s| is| are)? the (?:best|fastest|most|easiest|biggest|largest|oldest|first|capital|population|boiling|speed|plural|tallest|longest|square root|time complexity) /,
  /^(?:who|when) (?:\w+ed|wrote|made|was|were|is|did|won)\b/,
  /^how (?:to|do you|far|old|tall)\b/,
  /^what does (?!it\b|the |this |that )\S+(?: \S+)? do\b/,
  // Explanations of anything.
  /^(?:explain|describe|define|compare|tell me|teach me|give me|what|how|why|when|should i)\b.* an? /,
  /^(?:explain|describe|define|compare) (?!how|why|where|the )/,
]);

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
      text = text.replace(GREETING.expression, "").replace(/^[\s,.!]+/, "");
      while (AFTER_GREETING.test(text))
        text = text.replace(AFTER_GREETING.expression, "").replace(/^[\s,.!]+/, "");
    }
    text = text
      .replace(FILLER.expression, "")
      .replace(/^if (?:so|not|yes|possible|needed)[,\s]+/, "")
      .replace(RESERVATION.expression, "")
      .trim();
    if (text === before) return text;
  }
}

function isDeed({ text }: Sentence): boolean {
  const request = text.replace(REQUEST.expression, "");
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
const RUNS = anyOf([
  /^(?:re-?run|run|execute|invoke|launch)\b(?! an? )/,
  /^(?:lint|type-?check|benchmark|profile) /,
  // "build it", "test the whole project".
  /^(?:build|compile|test|check|start|lint)(?: (?:it|this|that|the|my|our|all|whole|entire|of|everything|projects?|codebase|code|repo(?:sitory)?|app(?:lication)?|programs?|packages?|library|tests?|suite|build|types?|server|again|now))*\W*$/,
  // "check that all tests pass".
  /^(?:check|see|verify|confirm|find out)(?: that| if| whether)? (?:(?:all|the|our|my|this|unit|projects?|project's) )*(?:tests?|suite|build|code|project|it|linter|lint|types?)(?: (?:still|now|all))* (?:pass(?:es)?|compiles?|builds?|succeeds?|runs?|works?|(?:is|are) (?:green|passing))\b/,
]);
const RESULT_OF_A_RUN = anyOf([
  /^(?:do|does|did|will|are|is) (?:all |the |our |my |unit )*(?:tests?|suite|build|linter|lint|types?)\b(?: still| now| all)* (?:pass|compile|build|succeed|passing|green|compiling)\b/,
  /^(?:how many|which|what) (?:of the )?(?:unit )?tests? (?:are |currently )*(?:fail|pass)(?:ing|ed)?\b/,
]);
/** Wants files to change, or more to be done than is named. */
const MORE_THAN_A_RUN = anyOf([
  // Repairs.
  "fix(?:es|ed)? repair mend correct resolve solve until ensure make_(?:it|them|sure|all|the_tests)",
  // Changes of files.
  "implement add write create update edit change modify refactor remove delete replace rename improve optimi[sz]e",
  "turn upgrade migrate port commit push save store",
  // Work that is described elsewhere.
  "plan steps tasks? instructions? to-?dos?",
]);

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
    text.replace(REQUEST.expression, "").split(CLAUSES).map(withoutOpening),
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
const LOOKS = anyOf([
  /^(?:show|tell) (?:me|us)\b(?! how to| an? )/,
  /^give (?:me|us) (?:the (?:list|names?|number|size|version|output)|all)\b|^count\b/,
  /^(?:list|print|display|output|show) (?:all|every|each|the (?:names?|contents?|versions?|sizes?|number|output|first|last|largest|smallest|biggest|files?|todos?))\b/,
]);
/** A program should show it from now on. */
const FOR_USERS = anyOf([
  "when if whenever while before after instead by_default on_(?:start|exit) at_the_(?:start|end)",
  "users? pages? screen header footer button dialog menu in_(?:red|green|bold|colou?r)",
  "in_the_(?:ui|app|cli|logs?|output|console|terminal)",
]);

const isLook = (clause: string): boolean =>
  (LOOKS.test(clause) && !FOR_USERS.test(clause)) || isOfGit(clause);

/** Needs a verb after the question word: `where the config is read, also …` asks nothing. */
const OPEN_QUESTION = anyOf(
  [
    /(?:how|why|what|where|when|which|who|whose)\b(?! about\b)(?:'s|'re)?(?: [\w-]+)+/,
    /(?:is|are|was|were|does|did|do (?:we|they|users?)|has|have|isn't|aren't|doesn't|can (?!you\b|we\b|i\b)[\w-]+)(?: [\w-]+){2,}/,
  ],
  { before: "^", after: ".*\\?[\"')\\s]*$" },
);

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
    .map(({ text }) => ({ text, bare: text.replace(REQUEST.expression, "") }))
    .filter(({ text, bare }) => QUESTION.test(text) || ASKING.test(bare));
  if (questions.length === 0) return undefined;
  const whole = matter.map(({ text }) => text).join(" ");
  const names = matter.map(({ written }) => written.replaceAll(NO_NAMES.expression, " ")).join(" ");
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
