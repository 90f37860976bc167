/** What is asked about as such, and not as a part of some project. */

const TECHNOLOGIES = `python javascript typescript java c c++ c# rust go golang ruby php perl swift kotlin scala haskell
  elixir erlang clojure lisp scheme ocaml f# lua julia sql nosql html css sass react vue vue.js angular svelte next.js
  node node.js nodejs deno bun django flask fastapi rails spring laravel postgres postgresql mysql sqlite mongodb redis
  kafka rabbitmq elasticsearch git vim emacs vscode bash zsh linux unix posix macos windows docker kubernetes terraform
  ansible aws azure gcp nginx apache npm yarn pnpm pip cargo webpack vite json yaml toml xml csv regex regular_expressions
  rest graphql grpc http https tls ssl ssh dns tcp udp tcp/ip oauth oauth2 jwt cors utf-8 unicode ascii markdown latex
  chmod chown sudo grep awk sed curl wget tar cron systemd ls numpy pandas pytorch tensorflow assembly wasm webassembly`;

const CONCEPTS = `closure closures recursion monad monads mutex mutexes semaphore deadlock deadlocks hash_map hash_maps
  hash_table hash_tables quicksort mergesort binary_search linked_list linked_lists polymorphism inheritance encapsulation
  idempotent idempotency garbage_collection concurrency parallelism coroutine coroutines generics pattern_matching
  static_typing dynamic_typing functional_programming object-oriented_programming design_patterns machine_learning
  blockchain big_o observer_pattern singleton_pattern dependency_injection eventual_consistency two-phase_commit
  cap_theorem solid_principles time_complexity public-key_cryptography`;

const EVERYDAY = `capital population president king queen country countries city cities planet planets moon sun sky
  earth mars weather universe galaxy ocean oceans mountain river speed_of_light year today century war cat cats dog dogs
  bird birds animal animals human humans people life love food recipe bread pizza coffee music song movie film book
  books kilobyte kilobytes miles kilometers celsius fahrenheit gravity atom atoms square_root hauptstadt capitale`;

/** One of the list is a word of the text. */
const has = (list: string): RegExp => new RegExp(`${NO_WORD_BEFORE}${oneOf(list)}${NO_WORD_BEHIND}`, "u");

/** Expressions out of plain lists: words stand between blanks, `_` is a blank within a phrase. */

const NO_WORD_BEFORE = "(?<![\\p{L}\\p{N}_./-])";
const NO_WORD_BEHIND = "(?![\\p{L}\\p{N}_/-]|\\.\\p{L})";

const OF_THE_WORLD = has(`${TECHNOLOGIES} ${CONCEPTS} ${EVERYDAY}`);

/** A language or a program is named as the place: the function that is asked about is one of its own. */
const IN_TECHNOLOGY = new RegExp(
  `\\b(?:in|with) (?:plain |modern |vanilla )?${oneOf(TECHNOLOGIES)}(?![\\p{L}\\p{N}_/-]|\\.\\p{L})`,
  "u",
);

const BARE = String.raw`(?!the |this |that |these |our |my |your |it\b|in |on |at |wrong |missing )[\p{L}\p{N}#+/&'.-]+(?: (?!does|do |is |are |work)[\p{L}\p{N}#+/&'.-]+){0,3}`;

/** Forms of questions that ask for general knowledge, once nothing in them points at a project. */
const FORMS: readonly RegExp[] = [
  /^[\d\s+*/().^%x-]*\d[\d\s+*/().^%x-]*[=?\s]*$/,
  /^(?:what(?:'s| is)|how much is|calculate)? ?\d+(?:\.\d+)? ?[-+*/^x%]/,
  /\b(?:stand|short) for\b|\bmean(?:ing)?(?: of)?\b/,
  /\bdifferences? between\b|\bpros and cons\b|\b(?:dis)?advantages of\b|\bversus\b|\bvs\b/,
  /\b(?:is|are) \w+ (?:faster|slower|better|safer|worse|easier|harder|older|bigger)\b|\bwhich (?:one )?is (?:better|faster)\b/,
  /^(?:what|what's|what is|which is) the (?:best|fastest|most|easiest|simplest|biggest|largest|oldest|first) /,
  /\b(?:what|how|why|when|should i)\b.* (?:use|learn|is|does|(?:purpose|point|role|definition|meaning) of|choose|prefer) an? /,
  /^(?:give|show) me an example of an? /,
  /\bwhat an? [\p{L} -]+ (?:is|does|means)\b/u,
  /\bthe [\w-]+ (?:pattern|principle|algorithm|theorem|paradigm|protocol|law)\b/,
  new RegExp(`^(?:what|who)(?: is|'s| are|'re) ${BARE}[?.!\\s]*$`, "u"),
  new RegExp(`^(?:what|who) ${BARE} (?:is|are|means?)[?.!\\s]*$`, "u"),
  new RegExp(
    `^(?:explain|describe|define|compare|outline|teach me) (?:me |to me |us )?(?!how|why|where|when|what)${BARE}[?.!\\s]*$`,
    "u",
  ),
  /\b(?:was ist|wer ist|was sind) (?:eine? |[\p{L}-]+\?)|\b(?:unterschied zwischen|différence entre|diferencia entre|diferença entre|differenza (?:tra|fra))\b/u,
  /qu'est-ce qu(?:e |'une? )|qu[eé] es una? |cos'è una? |o que é uma? |что такое|什么是|とは何/u,
];

/** Forms that say so only where no thing is named that projects have. */
const WEAK_FORMS: readonly RegExp[] = [
  /^(?:who|when) (?:\w+ed|wrote|made|was|were|is|did|won)\b/,
  /^(?:what|what's|what is|what are) the [\p{L} -]+ (?:of|in|for) [\p{L} ]+[?.!\s]*$/u,
  /^how to\b|\bhow (?:do you|does one) /,
];

/** Asks for what can be answered without a look at any project, whatever else is in it. */
export const isGeneral = (question: string): boolean => FORMS.some((form) => form.test(question));

/** The same, where nothing in the question belongs to a project. */
export const isOfTheWorld = (question: string): boolean =>
  OF_THE_WORLD.test(question) || isGeneral(question) || WEAK_FORMS.some((form) => form.test(question));

/** What points at the project that is at hand. */

const NOUNS =
  oneOf(`repo repos repository project codebase code source sources file files folder folders directory
  directories module modules package packages class classes function functions method methods test tests testsuite spec
  specs bug bugs build builds script scripts readme changelog license config configs configuration settings app apps
  application program library component components endpoint endpoints server client service services api apis cli ui
  parser lexer compiler interpreter handler handlers controller controllers router route routes routing middleware
  database schema migration migrations pipeline ci workflow workflows makefile dockerfile container containers loop
  variable variables constant constants interface interfaces struct structs enum hook hooks plugin plugins import
  imports export exports dependency dependencies todo todos comment comments docs documentation logger scheduler worker
  workers queue cache job jobs command commands flag flags option options architecture structure design layout flow
  logic setup entrypoint entry_point implementation validation page pages form button view views template templates
  state store reducer backend frontend error errors exception exceptions warning warnings stack_trace crash tool tools
  prompt prompts wrapper adapter adapters session sessions lines`);

const EXTENSIONS =
  oneOf(`ts tsx js jsx mjs cjs py pyi rb rs go java kt kts c cc cpp cxx h hh hpp cs php pl lua swift scala
  clj ex exs erl hs ml fs r jl sh bash zsh fish ps1 bat sql html htm css scss sass less vue svelte json jsonl yaml yml
  toml ini cfg conf env xml csv tsv md mdx rst txt log lock gradle proto graphql tf dockerfile mk cmake ipynb diff patch`);

/** Names that look like files and are none. */
const NO_FILES =
  /\b(?:node|next|vue|react|three|d3|express|nuxt|ember|backbone|moment|chart|discord|p5|socket)\.(?:js|ts|io)\b|\basp\.net\b|\b(?:tcp|ci|client|input|and|read|either|he|async|try|pros|yes|true|i|a|n|on)\/\w+/giu;

const PATH = new RegExp(
  `(?<![\\w:/])(?:\\.{0,2}/)?(?:[\\w.@-]+/)*[\\w@-][\\w.@-]*\\.${EXTENSIONS}(?![\\w/])|(?:^|\\s)\\.{0,2}/?(?:[\\w.-]+/){1,}[\\w.-]*(?=[\\s?.,!]|$)`,
  "i",
);
const KNOWN_FILES =
  /\b(?:README|Makefile|Dockerfile|LICENSE|CHANGELOG|CONTRIBUTING|AGENTS|Gemfile|Rakefile|Jenkinsfile)\b|(?:^|\s)\.(?:git|env|docker|eslint|npm|editor|prettier)\w*/i;
const IDENTIFIER =
  /`[^`]+`|\b[\w.]+\(\)|\b[A-Za-z]\w*_\w+|\b_\w+|\b[a-z]+[a-z0-9]*[A-Z]\w*\b|\b[A-Z][a-z]+[A-Z][a-z]\w*\b|(?<!\w)@\w+\.\w+|\b\w+(?:::|#)\w{2,}|\b[a-z]\w+\.[a-z]\w+\.[a-z]\w+\b/;
const NO_IDENTIFIERS =
  /\b(?:JavaScript|TypeScript|GitHub|GitLab|BitBucket|PostgreSQL|MySQL|NoSQL|SQLite|MongoDB|GraphQL|OpenAI|ChatGPT|LaTeX|DevOps|YouTube|LinkedIn|iPhone|iPad|iOS|macOS|eBay|PowerShell|WebAssembly|WebSocket|WebSockets|RabbitMQ|CoffeeScript|FastAPI|PyTorch|TensorFlow|OAuth|VSCode|IntelliJ|PyCharm|HashMap|McDonald\w*|UTF_8)\b/g;

/** Words that only whoever sits before the project, or goes on with a conversation, would use. */
const HERE: readonly RegExp[] = [
  /\b(?:this|these)\b(?! (?:year|week|month|day|time|morning|century|evening))|\b(?:our|my|here|we|codebase)\b/,
  /\bline \d+\b|\bin (?:src|lib|tests?|docs|bin|dist)\b|\b(?:the|whole|entire) (?:repo|repository|project)\b/,
  /^(?:(?:how|what|why|when|where) )?(?:does|do|is|can|did|will|should) it\b(?! (?:called|possible))|\bit (?:works?|does|uses?)\b/,
  /^(?:where|where's) (?:is|are|does|do|can i find|in|the)\b|^(?:why|where) (?:do|am) i (?:get|getting|see|seeing)\b/,
  /\b(?:would|do|should) i (?:need|have) to (?:change|edit|modify|install)\b/,
  /\b(?:did|have|had) you\b|\byou (?:did|changed|made|wrote|said)\b|^are you (?:sure|certain|done|finished|ready)\b/,
];
const NAMED = new RegExp(
  `\\b(?:ci|unit tests|test suite|test coverage|changelog)\\b|\\b(?:the|a|any|some|all|each|every|which|what|how many|of|no|two|three|several|both) (?:[\\p{L}-]+ ){0,2}${NOUNS}(?![\\p{L}\\p{N}_-])`,
  "u",
);

/** In other languages: what stands beside them is not looked at. */
const FOREIGN =
  has(`projekt projekts projektes projekte datei dateien quelltext quellcode funktion funktionen klasse
  klassen methode ordner repository repo code konfiguration tests test skript fehlermeldung
  projet fichier fichiers dépôt fonction fonctions classe classes dossier méthode
  proyecto archivo archivos fichero ficheros repositorio función funciones clase clases código carpeta prueba pruebas
  progetto file funzione funzioni classi codice cartella metodo projeto arquivo arquivos função funções código pasta`);
const FOREIGN_PIECES =
  /проект|файл|функци|класс(?!ик)|код(?!екс)|репозитор|тест|项目|專案|文件|函数|代码|仓库|测试|目录|プロジェクト|ファイル|関数|コード|テスト|リポジトリ|프로젝트|파일|함수|코드|테스트|저장소/u;

type Marks = "here" | "names" | "nouns" | "none";

/**
 * How much a question points at the project. `here`: at a path, or at what is around whoever asks; `names`: at an
 * identifier, which a language may know too; `nouns`: at a thing that projects have.
 */
export function marksOf(text: string): Marks {
  const lower = text.toLowerCase();
  const plain = text.replaceAll(NO_FILES, " ");
  if (HERE.some((form) => form.test(lower)) || PATH.test(plain) || KNOWN_FILES.test(plain)) return "here";
  const named = IDENTIFIER.test(text.replaceAll(NO_IDENTIFIERS, "X"));
  if (named) return IN_TECHNOLOGY.test(lower) ? "none" : "names";
  return NAMED.test(lower) && !IN_TECHNOLOGY.test(lower) ? "nouns" : "none";
}

export function foreignMarks(text: string): boolean {
  return FOREIGN.test(text.toLowerCase()) || FOREIGN_PIECES.test(text);
}

export function wordsOf(list: string): readonly string[] {
  return list.trim().split(/\s+/);
}

/** One of the list, as a piece of an expression. */
function oneOf(list: string): string {
  const escaped = wordsOf(list).map((word) =>
    word.replaceAll(/[+.*?()]/g, String.raw`\$&`).replaceAll("_", " "),
  );
  return `(?:${escaped.toSorted((a, b) => b.length - a.length).join("|")})`;
}

/** The text begins with one of the list. */
export const begins = (list: string): RegExp => new RegExp(`^${oneOf(list)}${NO_WORD_BEHIND}`, "u");
