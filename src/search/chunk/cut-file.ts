import { isUtf8 } from "node:buffer";
import { lastName } from "../../core/text/file-paths.ts";
import { type CutFile, HUGE, type Piece, type Skip } from "../index-words.ts";
import type { Mark } from "./marks.ts";
import { pack } from "./pack-chunks.ts";
import { Syntax } from "./parse-syntax.ts";
import { sectionMarks, shellMarks } from "./plain-chunks.ts";

/**
 * Cuts files into pieces. The pieces are consecutive and together make up the decoded text, without gap or overlap;
 * none is longer than `MAX_COUNT`. A longer line is cut inside, and its pieces share its line number. An empty file is
 * cut into no pieces. The same bytes at the same path give the same pieces. Never throws, whatever the bytes.
 *
 * A symbol names everything that a piece declares, separated by commas; a piece from the middle of a long function
 * carries the name of the function.
 */
export class Cutter implements Disposable {
  private readonly syntax = new Syntax();

  /** Loads the grammar for files like this, so that the first file is no slower than the others. */
  async ready(path: string): Promise<void> {
    await this.syntax.load(languageOf(path));
  }

  async cut(path: string, bytes: Uint8Array): Promise<CutFile> {
    const named = skippedName(path);
    if (named !== undefined) return { kind: "skipped", why: named };
    if (bytes.length > HUGE) return { kind: "skipped", why: "huge" };
    const text = decoded(bytes);
    if (text === undefined) return { kind: "skipped", why: "binary" };
    const language = languageOf(path, text.slice(0, text.indexOf("\n") >>> 0).slice(0, 200));
    const why = skippedText(text, language);
    if (why !== undefined) return { kind: "skipped", why };
    await this.syntax.load(language);
    return { kind: "cut", language, pieces: this.pieces(text, language) };
  }

  /** Grammars that could not be loaded: files in their languages are cut by lines, without symbols. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return this.syntax.missing();
  }

  [Symbol.dispose](): void {
    this.syntax[Symbol.dispose]();
  }

  private pieces(text: string, language: string): readonly Piece[] {
    const marks = this.marks(text, language);
    return pack(text, marks === undefined || marks.length === 0 ? WHOLE : marks);
  }

  private marks(text: string, language: string): readonly Mark[] | undefined {
    if (language === "markdown") return sectionMarks(text);
    return language === "bash" ? shellMarks(text) : this.syntax.marks(text, language);
  }
}

const WHOLE: readonly Mark[] = [{ at: 0, kind: "text", names: [], own: false, scope: "" }];

/** One replaced character in this many makes a file binary rather than a damaged text. */
const DAMAGE = 10;

/**
 * The text of a file without its byte order mark; undefined for binary content: a NUL, or much invalid UTF-8. A few
 * invalid bytes become U+FFFD. UTF-16 is recognized by its byte order mark.
 */
export function decoded(bytes: Uint8Array): string | undefined {
  const wide = wideEncoding(bytes);
  if (wide !== undefined) return textual(new TextDecoder(wide).decode(bytes), true);
  if (bytes.includes(0)) return undefined;
  return textual(new TextDecoder().decode(bytes), !isUtf8(bytes));
}

function wideEncoding(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : undefined;
}

function textual(text: string, doubtful: boolean): string | undefined {
  if (!doubtful) return text;
  if (text.includes("\0")) return undefined;
  let damage = 0;
  for (let at = text.indexOf("\uFFFD"); at !== -1; at = text.indexOf("\uFFFD", at + 1)) damage += 1;
  return damage * DAMAGE > text.length ? undefined : text;
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
const AVERAGE = 250;
const LONG = 500;
/** A file with this many ordinary lines counts as hand-written, despite its long ones. */
const ORDINARY = 100;

function minified(text: string): boolean {
  if (text.length < 2 * AVERAGE) return false;
  let ordinary = 0;
  let long = 0;
  let at = 0;
  while (at < text.length) {
    const found = text.indexOf("\n", at);
    const end = found === -1 ? text.length : found;
    if (end - at > LONG && !text.slice(at, end - 1).includes("\r")) long += 1;
    else if (end - at > 1) ordinary += 1;
    at = end + 1;
  }
  return long > 0 && text.length / (ordinary + long) > AVERAGE && (ordinary < ORDINARY || long > ordinary);
}

/** Generators sign in the comments within this many characters from the start of a file. */
const HEAD = 4096;
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
  const head = text.slice(0, HEAD);
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
