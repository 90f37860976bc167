/** Extensions by language. What is named nowhere is text. */
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

/** Whole names, in lower case. */
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

/** Programs of a first line, by the beginning of their names. */
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

/** Every language that a file can be said to have. */
export const LANGUAGES: ReadonlySet<string> = new Set([
  ...BY_EXTENSION.values(),
  ...BY_NAME.values(),
  "text",
]);

/** The language of a file by its name, or else by the program that its first line names. */
export function languageOf(path: string, firstLine = ""): string {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
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
