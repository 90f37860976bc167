import { lastName } from "../core/file-names.ts";
import type { Chunk, Role } from "./search-store.ts";
import {
  DEFINABLE,
  formFor,
  IDENTIFIER,
  SEVERAL_WORDS,
  stem,
  STOP_WORDS,
  type Tokenizer,
  WORD_RUN,
} from "./tokens.ts";
import type { Weights } from "./weights.ts";

/** What a query asks for: words with their weights, files of some role, or a thing by its name or place. */

export interface QueryWord {
  /** The word as in the index. */
  readonly word: string;
  /** The word as in the query. */
  readonly original: string;
  readonly weight: number;
}

/** A parsed query. */
export interface Query {
  readonly words: readonly QueryWord[];
  /** The factor for files of each role. */
  readonly prior: Readonly<Record<Role, number>>;
}

/** Only this much of a query is read: a longer one is a text, not a question. */
const MAX_LETTERS = 4000;
const MAX_WORDS = 128;
const SENTENCE_END = /[.!?](?=\s)|\n/;
const NONE: ReadonlySet<string> = new Set();

/**
 * Roles that a query names: as the thing it looks for, or among other words. Neither pattern can match without one of
 * the texts in the second column, and compiling the patterns takes longer than all other work on a query.
 */
const ASKS: readonly (readonly [Role, says: readonly string[], pattern: RegExp, mentioned: RegExp])[] = [
  [
    "test",
    ["test", "spec", "fixture", "mock"],
    /\b(?:tests?|specs?|test cases?|fixtures?|mocks?) (?:for|of|that|which|covering|around|about)\b|\b(?:where|how|what|which)\b.*\b(?:tested|tests?|specs?)\b|^(?:unit |integration )?tests?\b/i,
    /\b(?:tests?|specs?|fixtures?|mocks?)\b/i,
  ],
  [
    "docs",
    ["doc", "guide", "tutorial", "changelog", "readme"],
    /\b(?:docs?|documentation|guide|tutorial|changelog|readme) (?:for|of|on|about|that)\b|\b(?:where|what|which)\b.*\b(?:documented|docs?|documentation)\b|^(?:docs?|documentation|readme|changelog)\b/i,
    /\b(?:docs?|documentation|readme|changelog|guide|tutorial)\b/i,
  ],
  [
    "example",
    ["example", "sample", "demo"],
    /\b(?:examples?|samples?|demos?) (?:for|of|that|which|using)\b/i,
    /\b(?:examples?|samples?|demos?)\b/i,
  ],
  [
    "config",
    [
      "json",
      "yaml",
      "toml",
      "tsconfig",
      "file",
      "pyproject",
      "go.mod",
      "workflow",
      "ci ",
      "locale",
      "translation",
    ],
    /\b(?:package\.json|tsconfig|dockerfile|makefile|cargo\.toml|pyproject|go\.mod|workflow file|ci (?:job|workflow|pipeline))\b/i,
    /\b(?:workflows?|yaml|json|toml|dockerfile|makefile|locale|translations?)\b/i,
  ],
];

export function parseQuery(text: string, tokenizer: Tokenizer, weights: Weights): Query {
  const read = text.slice(0, MAX_LETTERS);
  const end = SENTENCE_END.exec(read)?.index ?? read.length;
  const queryWords = new QueryWords(tokenizer, weights);
  const lookup = lookupIn(text);
  // A name may be a stop word: `get`.
  queryWords.take(read.slice(0, end), weights.firstSentence, lookup === null ? STOP_WORDS : NONE);
  queryWords.take(read.slice(end), 1);
  // Sentences after the first only explain, unless one of them is a question.
  const asking = read.includes("?") ? read : read.slice(0, end);
  return { words: queryWords.words.slice(0, MAX_WORDS), prior: priorOf(read, asking, lookup, weights) };
}

function priorOf(
  text: string,
  asking: string,
  lookup: Lookup | null,
  { role, mentioned, notAsked }: Weights,
): Readonly<Record<Role, number>> {
  const prior = { ...role };
  const path = lookup?.path ?? "";
  // An unknown extension may be a member name instead.
  const named = /[./]/.test(path) ? roleOf(path) : "config";
  if (named !== "config") prior[named] = 1;
  const lower = text.toLowerCase();
  for (const [name, says, pattern, mentions] of ASKS) {
    if (!says.some((word) => lower.includes(word))) continue;
    if (pattern.test(asking)) {
      prior[name] = 1;
      prior.source = notAsked;
    } else if (mentions.test(text)) prior[name] = Math.max(prior[name], mentioned);
  }
  return prior;
}

class QueryWords {
  readonly #tokenizer: Tokenizer;
  readonly #weights: Weights;
  readonly #found = new Map<string, QueryWord>();

  constructor(tokenizer: Tokenizer, weights: Weights) {
    this.#tokenizer = tokenizer;
    this.#weights = weights;
  }

  get words(): readonly QueryWord[] {
    return [...this.#found.values()];
  }

  take(text: string, weight: number, without: ReadonlySet<string> = STOP_WORDS): void {
    let before: { readonly word: string; readonly end: number } | undefined;
    for (const match of text.matchAll(formFor(text, WORD_RUN))) {
      const [run] = match;
      const word = run.toLowerCase();
      if (without.has(word)) {
        before = undefined;
        continue;
      }
      const parts = this.#tokenizer.of(run);
      const worth = this.#worthOf(parts, match.index === 0);
      for (const part of parts) this.#add(part, run, weight * worth);
      if (before !== undefined && match.index - before.end === 1)
        this.#add(before.word + word, `${before.word} ${word}`, weight * this.#weights.joined);
      before = { word, end: match.index + run.length };
    }
  }

  /** The weight of a run of letters by its usual meaning in queries; `addHandler` is a name. */
  #worthOf(parts: readonly string[], opens: boolean): number {
    const [word] = parts;
    if (word === undefined || parts.length > 1) return 1;
    if (opens && OPENING_WORDS.has(word)) return this.#weights.opening;
    return CHANGE_WORDS.has(word) ? this.#weights.change : 1;
  }

  #add(word: string, original: string, weight: number): void {
    const known = this.#found.get(word);
    const [more, less] = [Math.max(known?.weight ?? 0, weight), Math.min(known?.weight ?? 0, weight)];
    this.#found.set(word, {
      word,
      original: known?.original ?? original,
      weight: more + less * this.#weights.again,
    });
  }
}

const EMPTY = "add added allow ensure fix handle implement improve support update";
const VERBS =
  "adjust avoid change cleanup correct deprecate disable drop enable introduce move prevent provide refactor remove " +
  "rename replace report";

const stems = (words: string): ReadonlySet<string> => new Set(words.split(" ").map(stem));

/** Words that describe a change more often than its place, in all inflections: `added support`, `fixes`. */
export const CHANGE_WORDS = stems(EMPTY);

/** Words that say what to do when a query begins with them. Later in a query, `remove` may well be a name. */
export const OPENING_WORDS = stems(`${EMPTY} ${VERBS}`);

/** What a query says beyond its single words. */
export interface RequestWords {
  /** The words before the colon in `trie-router: count every slash`. */
  readonly scope: readonly string[];
  /** Adjacent words, each as the prefix that all its inflections share. */
  readonly pairs: readonly Pair[];
  /** Names that prose does not contain: of several words, called, or in backquotes. As spelled. */
  readonly spelled: readonly string[];
}

export type Pair = readonly [one: string, other: string];

const MAX_PAIRS = 64;
const MAX_SPELLED = 32;
const SCOPE = /^([^:\n]{2,40}?):\s/;
const QUOTED = /`([^`\n]+)`/g;
const hasSeveralWords = (name: string): boolean => formFor(name, SEVERAL_WORDS).test(name);

export function restOfRequest(text: string, tokenizer: Tokenizer): RequestWords {
  const read = text.slice(0, MAX_LETTERS);
  const scope = tokenizer.count(SCOPE.exec(read)?.[1] ?? "");
  return {
    scope: [...scope.keys()].filter((word) => !STOP_WORDS.has(word)),
    pairs: pairsOf(read, tokenizer),
    spelled: spelledOut(read),
  };
}

function pairsOf(text: string, tokenizer: Tokenizer): readonly Pair[] {
  const pairs: Pair[] = [];
  let before: string | undefined;
  for (const [run] of text.matchAll(formFor(text, WORD_RUN))) {
    const words = STOP_WORDS.has(run.toLowerCase()) ? [] : tokenizer.of(run);
    const [first] = words;
    if (first !== undefined && before !== undefined) pairs.push([before, beginning(first)]);
    // The last word of several is all of them joined.
    const last = words.length > 1 ? words.at(-2) : first;
    before = last === undefined ? undefined : beginning(last);
  }
  return pairs.slice(0, MAX_PAIRS);
}

/** A stem may end in a letter that the word does not have: `directori`. */
const beginning = (stem: string): string => (stem.length > 3 ? stem.replace(/[iy]$/, "") : stem);

function spelledOut(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [, quoted = ""] of text.matchAll(QUOTED))
    for (const [run] of quoted.matchAll(formFor(quoted, WORD_RUN))) if (run.length > 2) found.add(run);
  for (const match of text.matchAll(formFor(text, WORD_RUN)))
    if (hasSeveralWords(match[0]) || text.startsWith("(", match.index + match[0].length)) found.add(match[0]);
  return [...found].slice(0, MAX_SPELLED);
}

/** A query that is nothing but a name: `JsonReader.peek()`, `fn parse_url`, `src/dict.c:452`. */
interface Lookup {
  /** Path of a file, with the folders given in the query. */
  readonly path: string;
  readonly line: number | null;
  /** Names of a definition, the outermost first; empty if it can be none. */
  readonly names: readonly string[];
}

const MAX_NAME_LENGTH = 200;
const QUOTES = /^[`'"]+|[`'";,]+$/g;
const KEYWORD =
  /^(?:class|def|defn?|enum|fn|func|function|impl|interface|method|module|struct|sub|trait|type) +(?=\S+$)/;
const PLACE = /^(?:\.\/)?([^:]+?)(?::(\d+)(?::\d+)?)?$/;
const BETWEEN = /\.|::|->|#|\\/;

export function lookupIn(text: string): Lookup | null {
  if (text.length > MAX_NAME_LENGTH) return null;
  const query = text.trim().replaceAll(QUOTES, "").replace(KEYWORD, "");
  if (query === "" || /\s/.test(query)) return null;
  const [, path = query, line] = PLACE.exec(query) ?? [];
  const names = query.replace(/\(.*\)$/, "").split(BETWEEN);
  return {
    path,
    line: line === undefined ? null : Number(line),
    names: names.every((name) => formFor(name, DEFINABLE).test(name)) ? names : [],
  };
}

/** Puts the definition that is meant first, then others with the same name; within each group the order stays. */
export function foundByName(placed: readonly Placed[], lookup: Lookup): readonly Placed[] {
  const place = placeIn(placed, lookup);
  const ranks = new Map(placed.map(({ chunk }) => [chunk, chunk === place ? 2 : rankOf(chunk, lookup)]));
  const having = (rank: number): readonly Placed[] => placed.filter(({ chunk }) => ranks.get(chunk) === rank);
  const [meant, called, others] = [asWritten(having(2)), having(1), having(0)];
  if (others.length === placed.length) return placed;
  // Each group gets a third of the score range, so that scores still reflect the order.
  return [meant, called, others].flatMap((each, after) =>
    each.map(({ chunk, score }) => ({ chunk, score: (2 - after + score) / 3 })),
  );
}

/** Within a file, the first chunk gets the best score: a class begins there. */
function asWritten(placed: readonly Placed[]): readonly Placed[] {
  const chunks = placed.map(({ chunk }) => chunk).toSorted((a, b) => a.start - b.start);
  const byPath = Map.groupBy(chunks, ({ path }) => path);
  return placed.map(({ chunk, score }) => ({ chunk: byPath.get(chunk.path)?.shift() ?? chunk, score }));
}

/** The first chunk of a named file, or the one nearest to the requested line. */
function placeIn(placed: readonly Placed[], { path, line }: Lookup): Chunk | undefined {
  const away = ({ start, end }: Chunk): number =>
    line === null ? start : Math.max(0, start - line, line - end);
  return placed
    .map(({ chunk }) => chunk)
    .filter((chunk) => pathRank(chunk.path, path) > 0)
    .toSorted((a, b) => pathRank(b.path, path) - pathRank(a.path, path) || away(a) - away(b))[0];
}

/** 3 for the path itself, 2 for the end of a path, 1 for the end in other letter case. */
function pathRank(path: string, query: string): 0 | 1 | 2 | 3 {
  if (path === query) return 3;
  if (path.endsWith(`/${query}`)) return 2;
  return `/${path}`.toLowerCase().endsWith(`/${query}`.toLowerCase()) ? 1 : 0;
}

function rankOf({ path, symbol, kind }: Chunk, lookup: Lookup): 0 | 1 | 2 {
  if (lookup.line === null && pathRank(path, lookup.path) > 1) return 1;
  if (lookup.names.length === 0 || symbol === null || kind === "section") return 0;
  const { folder, name } = namedBy(path);
  const around = [...folder.split("/"), name];
  const ranks = symbol.split(", ").map((each) => nameRank([...around, ...each.split(BETWEEN)], lookup.names));
  return Math.max(...ranks) as 0 | 1 | 2;
}

/** Compares the full name of a definition, including folders and file, with the name in the query. */
function nameRank(whole: readonly string[], query: readonly string[]): 0 | 1 | 2 {
  if (hasNamesInOrder(whole, query)) return 2;
  const low = query.map((name) => name.toLowerCase());
  const lowWhole = whole.map((name) => name.toLowerCase());
  if (lowWhole.at(-1) !== low.at(-1)) return 0;
  // A query of several names in lower case ignores letter case.
  return query.length > 1 && low.join() === query.join() && hasNamesInOrder(lowWhole, low) ? 2 : 1;
}

/** Whether the last names are equal and the earlier ones occur in this order, possibly with others in between. */
function hasNamesInOrder(whole: readonly string[], query: readonly string[]): boolean {
  let met = 0;
  for (const name of whole) if (name === query[met]) met += 1;
  return met === query.length && whole.at(-1) === query.at(-1);
}

/** Names that say nothing: such a file is named after its folder. */
const NAMELESS = new Set(["index", "mod", "__init__", "main", "lib", "init"]);

/** The folder of a file, and the file's name without its extension. */
export function namedBy(path: string): { readonly folder: string; readonly name: string } {
  const cut = path.lastIndexOf("/");
  const folder = path.slice(0, Math.max(0, cut));
  const name = path.slice(cut + 1).replace(/(.)\.[^.]*$/, "$1");
  return {
    folder,
    name: NAMELESS.has(name) && folder !== "" ? lastName(folder) : name,
  };
}

export interface Placed {
  readonly chunk: Chunk;
  readonly score: number;
}

/**
 * Gives a file's best score to the chunk that defines an identifier in the query, else to any chunk but imports, else
 * to the better one. The positions of files do not change.
 */
export function bestRegions(placed: readonly Placed[], text: string): readonly Placed[] {
  const query = new Set(text.match(formFor(text, IDENTIFIER)));
  const byPath = Map.groupBy(placed, ({ chunk }) => chunk.path);
  return [...byPath.values()].flatMap((ofFile) => {
    const ranks = new Map(ofFile.map(({ chunk }) => [chunk, fitness(chunk, query)]));
    const chunks = ofFile
      .map(({ chunk }) => chunk)
      .toSorted((a, b) => (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0));
    return ofFile.map(({ score }, place) => ({ chunk: chunks[place] as Chunk, score }));
  });
}

function fitness(chunk: Chunk, query: ReadonlySet<string>): number {
  if (chunk.kind === "imports") return 0;
  return namesOf(chunk).some((name) => query.has(name)) ? 2 : 1;
}

/** Names of more than one word: `Cache` may just begin a sentence. */
const namesOf = ({ symbol }: Chunk): readonly string[] =>
  (symbol ?? "").split(/, |\.|::|#/).filter(hasSeveralWords);

/** The first match counts: a test in a vendored folder is vendored, an example among tests is a test. */
const BY_PATH: readonly (readonly [Role, RegExp])[] = [
  [
    "vendored",
    /(^|\/)(vendor|vendored|node_modules|third[-_]?party|thirdparty|deps|extern|externals|bower_components|Godeps|_vendor)\/|[.-]min\.(js|css)$/i,
  ],
  [
    "test",
    /(^|\/)(tests?|specs?|__tests__|__mocks__|testdata|test[-_]?data|test[-_]?fixtures|fixtures?|e2e|integration|testutils?|[\w.-]*[-_.]tests?|tests?[-_][\w.-]+|src\/androidTest|snapshots|__snapshots__)\//i,
  ],
  [
    "test",
    /(^|[/_.-])(tests?|specs?)\.[A-Za-z]+$|(^|\/)(test_|tests?-|conftest\.|setup[-.]?tests?\.)[^/]*$|[a-z0-9](Tests?|Spec|TestCase)\.[A-Za-z]+$|\.(bats|snap)$|\.(test|spec|test-d|e2e|cy)\.[\w.]+$/,
  ],
  ["example", /(^|\/)(examples?|samples?|demos?|playgrounds?|benchmarks?|bench|benches|perf|tutorials?)\//i],
  [
    "docs",
    /(^|\/)(docs?|documentation|docs?[-_][\w-]+|guides|website|man)\/|\.(md|mdx|markdown|rst|adoc|asciidoc|rdoc|txt|tex|po|pot)$|(^|\/)(LICEN[CS]E|NOTICE|AUTHORS|CHANGELOG|CHANGES|HISTORY|README|CONTRIBUTING|COPYING|THANKS|TODO|NEWS)(\.|$|-)/i,
  ],
  ["docs", /(^|\/)(?!(?:BUILD|WORKSPACE)$)[A-Z]{2,}([-_][A-Z]+)*$/],
  [
    "config",
    /\.(json|jsonc|json5|ya?ml|toml|ini|cfg|conf|lock|xml|properties|csproj|sln|gradle|cmake|editorconfig|env|plist|mod|sum|gemspec|props|targets|iml|pem|crt|csv|tsv|svg)$|(^|\/)(\.[^/]+|Makefile|GNUmakefile|Dockerfile|Rakefile|Gemfile|CMakeLists\.txt|Jenkinsfile|Procfile|Vagrantfile|Justfile|justfile|Earthfile|Brewfile|gradlew|BUILD|WORKSPACE|meson\.build)$|(^|\/)(\.github|\.circleci|\.vscode|\.idea|\.devcontainer|\.gitlab)\/|\.config\.[cm]?[jt]s$/,
  ],
];

/** Extensions of source code. A file with another extension is data for some program. */
const CODE = new Set(
  (
    "ts mts cts tsx js mjs cjs jsx py pyi pyx go rs java c h cc cpp cxx hh hpp hxx inl ipp tpp cu cuh ino cs csx rb rake ru " +
    "php phtml inc sh bash zsh ksh fish bats vue svelte astro kt kts swift scala sc lua proto graphql gql html htm erb " +
    "haml slim hbs ejs twig liquid cshtml razor css scss sass less sql dart ex exs erl hrl hs ml mli clj cljs cljc fs fsx " +
    "pl pm r jl zig nim groovy ps1 psm1 m mm s asm tf hcl nix sol vim bat cmd tcl y l v sv vhd cr d pas f90 f lisp el scm " +
    "rkt elm purs res gleam odin coffee awk wgsl glsl hlsl metal applescript"
  ).split(" "),
);
const EXTENSION = /[^/]\.([^./]+)$/;

/** The role of a file by its path; its content may tell more. */
export function roleOf(path: string): Role {
  if (path.endsWith("CMakeLists.txt")) return "config";
  const known = BY_PATH.find(([, pattern]) => pattern.test(path))?.[0];
  if (known !== undefined) return known;
  const extension = EXTENSION.exec(path)?.[1]?.toLowerCase();
  return extension === undefined || CODE.has(extension) ? "source" : "config";
}
