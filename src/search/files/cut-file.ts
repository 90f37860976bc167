import { isUtf8 } from "node:buffer";
import { lastName } from "../../core/file-names.ts";
import { type CutFile, HUGE_FILE_BYTES, type FilePiece, type Skip } from "../search-store.ts";
import {
  jointKind,
  jointNames,
  type Mark,
  MAX_COUNT,
  type DeclarationPart,
  partsOf,
  sectionMarks,
  shellMarks,
} from "./marks.ts";
import { Syntax } from "./syntax-marks.ts";
import { utf16Encoding } from "../../core/raw-data.ts";

/**
 * Cuts files into pieces. The pieces are consecutive and together make up the decoded text, without gap or overlap;
 * none is longer than `MAX_COUNT`. A longer line is cut inside, and its pieces share its line number. An empty file is
 * cut into no pieces. The same bytes at the same path give the same pieces. Never throws, whatever the bytes.
 *
 * A symbol names everything that a piece declares, separated by commas; a piece from the middle of a long function
 * carries the name of the function.
 */
export class Cutter implements Disposable {
  readonly #syntax = new Syntax();

  /** Loads the grammar for files like this, so that the first file is no slower than the others. */
  async ready(path: string): Promise<void> {
    await this.#syntax.load(languageOf(path));
  }

  async cut(path: string, bytes: Uint8Array): Promise<CutFile> {
    const named = skippedName(path);
    if (named !== undefined) return { kind: "skipped", why: named };
    if (bytes.length > HUGE_FILE_BYTES) return { kind: "skipped", why: "huge" };
    const text = decoded(bytes);
    if (text === undefined) return { kind: "skipped", why: "binary" };
    const language = languageOf(path, text.slice(0, text.indexOf("\n") >>> 0).slice(0, 200));
    const why = skippedText(text, language);
    if (why !== undefined) return { kind: "skipped", why };
    await this.#syntax.load(language);
    return { kind: "cut", language, pieces: this.#pieces(text, language) };
  }

  /** Grammars that could not be loaded: files in their languages are cut by lines, without symbols. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return this.#syntax.missing();
  }

  [Symbol.dispose](): void {
    this.#syntax[Symbol.dispose]();
  }

  #pieces(text: string, language: string): readonly FilePiece[] {
    const marks = this.#marks(text, language);
    return pack(text, marks === undefined || marks.length === 0 ? WHOLE : marks);
  }

  #marks(text: string, language: string): readonly Mark[] | undefined {
    if (language === "markdown") return sectionMarks(text);
    return language === "bash" ? shellMarks(text) : this.#syntax.marks(text, language);
  }
}

const WHOLE: readonly Mark[] = [{ at: 0, kind: "text", names: [], own: false, scope: "" }];

/** One replaced character in this many makes a file binary rather than a damaged text. */
const CHARACTERS_PER_DAMAGE = 10;

/**
 * The text of a file without its byte order mark; undefined for binary content: a NUL, or much invalid UTF-8. A few
 * invalid bytes become U+FFFD. UTF-16 is recognized by its byte order mark.
 */
export function decoded(bytes: Uint8Array): string | undefined {
  const wide = utf16Encoding(bytes);
  if (wide !== undefined) return textual(new TextDecoder(wide).decode(bytes), true);
  if (bytes.includes(0)) return undefined;
  return textual(new TextDecoder().decode(bytes), !isUtf8(bytes));
}

function textual(text: string, doubtful: boolean): string | undefined {
  if (!doubtful) return text;
  if (text.includes("\0")) return undefined;
  let damage = 0;
  for (let at = text.indexOf("\uFFFD"); at !== -1; at = text.indexOf("\uFFFD", at + 1)) damage += 1;
  return damage * CHARACTERS_PER_DAMAGE > text.length ? undefined : text;
}

const LOCKS = new Set(
  `package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock go.sum go.work.sum
  poetry.lock pdm.lock uv.lock pixi.lock pipfile.lock composer.lock gemfile.lock gems.locked podfile.lock pubspec.lock
  mix.lock rebar.lock flake.lock shard.lock paket.lock packages.lock.json project.assets.json gradle.lockfile
  package.resolved cartfile.resolved conan.lock .terraform.lock.hcl .pnp.cjs .pnp.loader.mjs`.split(/\s+/),
);

const GENERATED_NAME =
  /\.pb\.(?:go|cc|h|c|swift|dart)$|\.pb\.gw\.go$|_pb2(?:_grpc)?\.pyi?$|_pb\.(?:js|ts|d\.ts|rb)$|\.g(?:\.i)?\.(?:cs|dart)$|\.designer\.(?:cs|vb)$|\.generated\.[a-z]+$|[._](?:gen|generated)\.(?:go|rs|ts|js|py)$|\.freezed\.dart$|\.(?:js|mjs|cjs|css|ts)\.map$/;

const MINIFIED_NAME = /[.-]min\.(?:js|mjs|cjs|css)$/;

/** Languages in which long lines are normal. */
const PROSE = new Set(["markdown", "text", "restructuredtext", "asciidoc", "tex", "html"]);

/** The reason to skip a file, judged by its name alone. */
function skippedName(path: string): Skip | undefined {
  const name = lastName(path).toLowerCase();
  if (LOCKS.has(name)) return "lock";
  if (GENERATED_NAME.test(name)) return "generated";
  return MINIFIED_NAME.test(name) ? "minified" : undefined;
}

/** The reason to skip a file, judged by its text. */
export function skippedText(text: string, language: string): Skip | undefined {
  if (saysGenerated(text, language)) return "generated";
  return !PROSE.has(language) && minified(text) ? "minified" : undefined;
}

/** An average line length that only programs write. */
const MACHINE_LINE_LENGTH = 250;
const LONG_LINE = 500;
/** A file with this many ordinary lines counts as hand-written, despite its long ones. */
const MIN_ORDINARY_LINES = 100;

function minified(text: string): boolean {
  if (text.length < 2 * MACHINE_LINE_LENGTH) return false;
  let ordinary = 0;
  let long = 0;
  let at = 0;
  while (at < text.length) {
    const found = text.indexOf("\n", at);
    const end = found === -1 ? text.length : found;
    if (end - at > LONG_LINE && !text.slice(at, end - 1).includes("\r")) long += 1;
    else if (end - at > 1) ordinary += 1;
    at = end + 1;
  }
  return (
    long > 0 &&
    text.length / (ordinary + long) > MACHINE_LINE_LENGTH &&
    (ordinary < MIN_ORDINARY_LINES || long > ordinary)
  );
}

/** Generators sign in the comments within this many characters from the start of a file. */
const HEAD_LENGTH = 4096;
const COMMENT = /^\s*(?:\/\/|\/\*|\*|#|--|;|<!--|%|"""|'''|\(\*|@rem\b|rem\b)/i;
const BEFORE = /^\s*$|^\s*<\?(?:php|xml)|^#!|^\s*["']use \w+["'];?\s*$|^-\*-/;

const SIGNS: readonly RegExp[] = [
  /\bcode generated\b[^\n]{0,300}\bdo not edit\b/i,
  /^\W*@generated\b/m,
  /<auto-?generated/i,
  /^\W*(?:this (?:file|code|source|module|class|script)\b.{0,40}?\b)?(?:(?:is|was|has been) )?auto(?:matically)?[- ]?generated (?:by|from|using|with|file|code|on|at|via|-)/im,
  /\bthis (?:file|code|source|module|class|script) (?:is|was|has been) (?:auto(?:matically)?[- ]?)?generated\b/i,
  /\bgenerated\b[^]{0,160}\bdo not (?:edit|modify|change)\b/i,
  /\bdo not (?:edit|modify|change)\b[^]{0,160}\bgenerated\b/i,
];

/**
 * Whether the comments before the first line of code say that the file is generated. Later comments are about something
 * else.
 */
function saysGenerated(text: string, language: string): boolean {
  const head = text.slice(0, HEAD_LENGTH);
  if (!/generated/i.test(head)) return false;
  const comments: string[] = [];
  let inside = false;
  for (const line of head.split("\n")) {
    const opens = COMMENT.test(line) && !(language === "markdown" && !line.includes("<!--"));
    if (!inside && !opens && !BEFORE.test(line)) break;
    if (inside || opens) comments.push(line);
    if (/\/\*|<!--/.test(line)) inside = true;
    if (/\*\/|-->/.test(line)) inside = false;
  }
  const commentText = comments.join("\n");
  return SIGNS.some((sign) => sign.test(commentText));
}

/** Extensions by language. A file that no table names is text. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  typescript: "ts mts cts",
  tsx: "tsx",
  javascript: "js mjs cjs jsx es6",
  python: "py pyi pyw pyx",
  go: "go",
  rust: "rs",
  java: "java",
  c: "c h",
  cpp: "cc cpp cxx c++ hh hpp hxx h++ inl ipp tpp cu cuh ino",
  csharp: "cs csx",
  ruby: "rb rake gemspec ru podspec rbi jbuilder thor",
  php: "php phtml php5 php7 inc",
  bash: "sh bash zsh ksh bats ebuild",
  markdown: "md markdown mdx mkd mdown",
  yaml: "yaml yml",
  toml: "toml",
  json: "json jsonc json5 jsonl ndjson geojson webmanifest",
  sql: "sql psql ddl",
  vue: "vue",
  svelte: "svelte",
  astro: "astro",
  kotlin: "kt kts",
  swift: "swift",
  scala: "scala sc sbt",
  lua: "lua",
  protobuf: "proto",
  graphql: "graphql gql",
  html: "html htm xhtml erb haml slim hbs ejs twig liquid cshtml razor jinja j2",
  css: "css scss sass less styl",
  xml: "xml xsd xsl xslt svg csproj props targets resx plist pom",
  dart: "dart",
  elixir: "ex exs",
  erlang: "erl hrl",
  haskell: "hs lhs",
  ocaml: "ml mli",
  clojure: "clj cljs cljc edn",
  fsharp: "fs fsx fsi",
  perl: "pl pm t",
  r: "r rmd",
  julia: "jl",
  zig: "zig",
  nim: "nim",
  groovy: "groovy gradle",
  powershell: "ps1 psm1 psd1",
  objectivec: "m mm",
  assembly: "s asm",
  terraform: "tf tfvars hcl",
  nix: "nix",
  solidity: "sol",
  cmake: "cmake",
  ini: "ini cfg conf properties editorconfig env",
  csv: "csv tsv",
  restructuredtext: "rst",
  asciidoc: "adoc asciidoc",
  tex: "tex sty cls",
  fish: "fish",
  vim: "vim",
  batch: "bat cmd",
};

/** Complete file names by language, in lower case. */
const NAMES: Readonly<Record<string, string>> = {
  ruby: "rakefile gemfile vagrantfile podfile guardfile brewfile fastfile capfile",
  bash: ".bashrc .bash_profile .profile .zshrc .zshenv .envrc pkgbuild",
  dockerfile: "dockerfile containerfile",
  make: "makefile gnumakefile",
  cmake: "cmakelists.txt",
  groovy: "jenkinsfile",
  python: "sconstruct sconscript wscript",
  starlark: "build workspace build.bazel",
  json: ".babelrc .eslintrc .prettierrc",
};

/** Programs named in a `#!` line, with their languages. */
const INTERPRETERS: readonly (readonly [RegExp, string])[] = [
  [/^(?:ba|z|k|da|a)?sh$|^bats$/, "bash"],
  [/^python|^pypy/, "python"],
  [/^node|^bun$/, "javascript"],
  [/^deno$|^ts-node|^tsx$/, "typescript"],
  [/^ruby|^jruby/, "ruby"],
  [/^php/, "php"],
  [/^perl/, "perl"],
  [/^lua/, "lua"],
  [/^fish$/, "fish"],
  [/^pwsh$/, "powershell"],
];

const byWord = (table: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(table).flatMap(([language, words]) => words.split(" ").map((word) => [word, language])),
  );

const BY_EXTENSION = byWord(EXTENSIONS);
const BY_NAME = byWord(NAMES);

/** Every language that `languageOf` can return. */
export const LANGUAGES: ReadonlySet<string> = new Set([
  ...BY_EXTENSION.values(),
  ...BY_NAME.values(),
  "text",
]);

/** The language of a file, by its name or else by the program that its first line names. */
export function languageOf(path: string, firstLine = ""): string {
  const name = lastName(path).toLowerCase();
  const dot = name.lastIndexOf(".");
  const known = BY_NAME.get(name) ?? (dot < 0 ? undefined : BY_EXTENSION.get(name.slice(dot + 1)));
  if (known !== undefined) return known;
  if (/^(?:dockerfile|containerfile)\.|\.dockerfile$/.test(name)) return "dockerfile";
  return interpreter(firstLine) ?? "text";
}

function interpreter(line: string): string | undefined {
  const words = /^#!\s*(\S+)((?:\s+\S+)*)/.exec(line.slice(0, 200));
  if (words?.[1] === undefined) return undefined;
  const program = words[1].slice(words[1].lastIndexOf("/") + 1);
  const named =
    program === "env" ? (words[2] ?? "").split(/\s+/).find((word) => /^[^-=]+$/.test(word)) : program;
  return INTERPRETERS.find(([form]) => form.test(named ?? ""))?.[1];
}

/** Parts are joined up to this length, about 500 tokens. */
const TARGET_LENGTH = 1800;

/** A shorter declaration is joined with its neighbours. */
const SMALL_LENGTH = 500;

/** A shorter part gets no chunk of its own: a closing bracket, an empty statement. */
const TINY_LENGTH = 40;

/** The pieces of a text: small parts joined with their neighbours, big parts split. An empty text has no pieces. */
function pack(text: string, marks: readonly Mark[]): readonly FilePiece[] {
  const parts = partsOf(text, marks).flatMap((part) => split(text, part));
  const groups: Group[] = [];
  for (const part of parts) placePart(text, groups, part);
  const lines = new Lines(text);
  return withoutRemainders(groups).map((group) => {
    const start = lines.of(group.start);
    const end = lines.of(group.end - 1);
    const { names } = jointNames(group.parts);
    const symbol = names.length === 0 ? null : names.join(", ");
    return { start, end, kind: group.kind(), symbol, text: text.slice(group.start, group.end) };
  });
}

class Group {
  readonly parts: DeclarationPart[];
  readonly start: number;
  end: number;

  constructor(part: DeclarationPart, start = part.start) {
    this.parts = [part];
    this.start = start;
    this.end = part.end;
  }

  get first(): DeclarationPart {
    return this.parts[0] as DeclarationPart;
  }

  get size(): number {
    return this.end - this.start;
  }

  add(part: DeclarationPart): void {
    this.parts.push(part);
    this.end = part.end;
  }

  take(group: Group): void {
    this.parts.push(...group.parts);
    this.end = group.end;
  }

  kind(): FilePiece["kind"] {
    const own = this.parts.filter((part) => part.own);
    return jointKind((own.length === 0 ? this.parts : own).map((part) => part.kind));
  }
}

function split(text: string, part: DeclarationPart): readonly DeclarationPart[] {
  if (part.end - part.start <= MAX_COUNT) return part.end > part.start ? [part] : [];
  const cuts = lineCuts(text, part, { target: TARGET_LENGTH, most: MAX_COUNT });
  return [part.start, ...cuts].map((start, index) => ({ ...part, start, end: cuts[index] ?? part.end }));
}

/** Adds a part to the last group, or begins another. A tiny part never becomes a group of its own. */
function placePart(text: string, groups: Group[], part: DeclarationPart): void {
  const last = groups.at(-1);
  if (last === undefined || part.end - last.start > MAX_COUNT) groups.push(new Group(part));
  else if (isTiny(text, part) && part.kind !== "imports") last.end = part.end;
  else if (last.parts.length === 1 && part.kind === "imports" && isTiny(text, last.first))
    groups.splice(-1, 1, new Group(part, last.start));
  else if (joins(last, part)) last.add(part);
  else groups.push(new Group(part));
}

const isTiny = (text: string, { own, start, end }: DeclarationPart): boolean =>
  !own && end - start < 400 && text.slice(start, end).trim().length < TINY_LENGTH;

/** Whether a part belongs with the group: it has the same scope, or is the body below the group's head. */
const belongsTo = (group: Group, part: DeclarationPart): boolean =>
  part.scope === group.first.scope ||
  group.parts.some(({ names }) => part.scope !== "" && names[0] === part.scope);

/** For a group and a part that together fit into one piece. */
function joins(group: Group, part: DeclarationPart): boolean {
  const size = part.end - part.start;
  if ((group.first.kind === "imports") !== (part.kind === "imports") || !belongsTo(group, part)) return false;
  // The head of a class alone says little.
  if (group.first.kind === "class" && group.size < SMALL_LENGTH / 2 && part.scope !== group.first.scope)
    return true;
  if (group.size + size > TARGET_LENGTH) return false;
  if (part.kind === "imports" || !part.own) return true;
  if (part.kind === "class" && group.size > SMALL_LENGTH) return false;
  return size < SMALL_LENGTH || group.size < SMALL_LENGTH;
}

/** A small remainder of a split declaration joins the group before it. */
function withoutRemainders(groups: readonly Group[]): readonly Group[] {
  const kept: Group[] = [];
  for (const group of groups) {
    const last = kept.at(-1);
    const rest = last !== undefined && group.size < SMALL_LENGTH && group.end - last.start <= MAX_COUNT;
    if (rest && group.parts.every((part) => !part.own && belongsTo(last, part) && part.kind !== "imports"))
      last.take(group);
    else kept.push(group);
  }
  return kept;
}

/**
 * Counts lines as readers and editors do: each ends with a line feed. A carriage return alone ends no line, so a text
 * from an old Macintosh is one line.
 */
class Lines {
  readonly #text: string;
  #line = 1;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The line of an offset, from 1. Offsets must not descend from call to call. */
  of(offset: number): number {
    for (;;) {
      const end = this.#text.indexOf("\n", this.#at);
      if (end === -1 || end >= offset) return this.#line;
      this.#at = end + 1;
      this.#line += 1;
    }
  }
}

/**
 * How good a cut before the line at `at` is: best after an empty line, then before an unindented line, then anywhere.
 */
function cutQuality(text: string, at: number): number {
  const before = text.charCodeAt(at - 2);
  if (before === 10 || (before === 13 && text.charCodeAt(at - 3) === 10)) return 3;
  const code = text.charCodeAt(at);
  return code === 32 || code === 9 || code === 125 || code === 41 || code === 93 ? 1 : 2;
}

/** A cut inside a line, never between the halves of one character. */
function insideLine(text: string, start: number, most: number): number {
  const place = start + most;
  const code = text.charCodeAt(place);
  const low = code >= 0xdc00 && code < 0xe000;
  return low || (code === 10 && text.charCodeAt(place - 1) === 13) ? place - 1 : place;
}

interface Size {
  readonly target: number;
  readonly most: number;
}

/**
 * Where to cut `start` to `end` so that no part is longer than `most`: near `target`, at line starts, best after an
 * empty line. Only a line longer than `most` is cut inside. Ascending, without `start` and `end`.
 */
export function lineCuts(
  text: string,
  span: { start: number; end: number },
  { target, most }: Size,
): number[] {
  const cuts: number[] = [];
  let start = span.start;
  while (span.end - start > most) {
    const cut = bestCut(text, start, { target, most });
    cuts.push(cut);
    start = cut;
  }
  return cuts;
}

function bestCut(text: string, start: number, { target, most }: Size): number {
  let best = -1;
  let value = 0;
  let line = text.indexOf("\n", start) + 1;
  while (line > 0 && line - start <= most) {
    const size = line - start;
    // Less than half the target is too short even for the best border; beyond the target only a better border counts.
    const scale = size < target / 2 ? 0.01 : size > target ? 0.5 : 1;
    const found = cutQuality(text, line) * scale;
    if (found > value || (found === value && size <= target)) [best, value] = [line, found];
    line = text.indexOf("\n", line) + 1;
  }
  return best === -1 ? insideLine(text, start, most) : best;
}
