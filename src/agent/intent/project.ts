import { has, oneOf } from "./lexicon.ts";
import { IN_TECHNOLOGY } from "./world.ts";

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

export type Marks = "here" | "names" | "nouns" | "none";

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
