import type { Found, Model, Use } from "../model.ts";

/** Without `-f` or `-o` it writes its index into the current folder; `-` and `-x` print it, in front of the files. */
function ctagsEffects(use: Use): readonly Found[] {
  const { options, operands, span } = use;
  const [first] = operands;
  const start = first?.span[0] ?? Number.MAX_SAFE_INTEGER;
  if (options.some((option) => PRINTS.has(option.name) && option.span[0] < start)) return [];
  return [{ kind: "write", path: use.place({ kind: "literal", value: "tags", span }) }];
}

const PRINTS: ReadonlySet<string> = new Set(["-f", "-o", "-x"]);

/** Not the search of that name: it asks for the rights of another group. */
function groupEffects(use: Use): readonly Found[] {
  const text = use.args.findIndex(({ value }) => value === "-c");
  const shell = text === -1 ? undefined : use.args[text + 1];
  return [
    { kind: "unknown", doubt: "command.escapes", what: use.program },
    ...(shell === undefined ? [] : use.shell(shell)),
  ];
}

const OTHER_VERBS = new Set("scan test new lsp completions help".split(" "));

/** Its verb `run` may be left out. The others load rules, which may load code. */
const AST_GREP: Model = {
  options: `-p: -l: -r: -k: -c:loads -A: -B: -C: -j: --pattern= --lang= --kind= --selector= --strictness= --rewrite= --json=?
    --color= --heading= --debug-query=? --no-ignore= --globs= --threads= --follow --stdin --after= --before= --context=
    --files-with-matches --inspect= --config=loads -i!write --interactive!write -U!write --update-all!write`,
  operands: "read*|.",
  tells: "--version --help -V -h",
  // Its settings may name libraries of more languages.
  fixed: ["check"],
  also: ({ operands: [verb] }) =>
    verb !== undefined && OTHER_VERBS.has(verb.value)
      ? [{ kind: "unknown", doubt: "operand.unknown", what: verb.value, span: verb.span }]
      : [],
};

export const SOURCE_TOOLS: Readonly<Record<string, Model>> = {
  ctags: {
    options: `-aBeFuVRwxn -f:write -o:write -h: -I: -L:loads --languages= --exclude= --recurse=? --sort= --fields= --extras=
      --extra= --kinds-all= --langmap= --append=? --output-format= --links=? --tag-relative= --totals=? --quiet=?
      --options=loads`,
    operands: "read*",
    tells: "--version --help --list-languages --list-kinds --list-features",
    also: ctagsEffects,
  },
  cloc: {
    options: `-by-file -by-file-by-lang -csv -json -yaml -xml -md -quiet -q -v -exclude-dir= -exclude-ext= -exclude-lang=
      -exclude-content= -fullpath -include-ext= -include-lang= -match-d= -match-f= -not-match-d= -not-match-f=
      -skip-uniqueness -sum-one -hide-rate -unicode -force-lang= -lang-no-ext= -follow-links -no-recurse -no3 -3
      -progress-rate= -show-lang= -show-ext= -processes= -timeout= -max-file-size= -read-binary-files
      -csv-delimiter= -list-file=loads -config=loads -vcs=loads -git!ask -diff!ask -count-and-diff!ask
      -extract-with=loads -script-lang= -report-file=write -out=write -strip-comments=write`,
    operands: "read*",
    singleDash: true,
    tells: "--version -version --help -help --show-lang --show-ext",
  },
  tokei: {
    options: `-fChVv -c: -e: -i:read -n: -o: -s: -r: -t: --columns= --exclude= --files --input=read --hidden --languages
      --no-ignore --no-ignore-parent --no-ignore-dot --no-ignore-vcs --num-format= --output= --sort= --rsort= --streaming=
      --types= --type= --compact --verbose`,
    operands: "read*|.",
    tells: "--version --help -V -h --languages -l",
  },
  scc: {
    options: `-abcdhlmpuvwz -f: -i: -x: -M: -n: -s: -o:write --binary --by-file --ci --cocomo-project-type= --count-as=
      --debug --exclude-dir= --exclude-ext= --exclude-file= --file-gc-count= --format= --gen --include-ext=
      --include-symlinks --languages --min --min-gen --no-cocomo --no-complexity --no-duplicates --no-gen --no-gitignore
      --no-ignore --no-large --no-min --no-size --not-match= --output=write --size-unit= --sort= --verbose --wide --uloc
      --dryness --percent`,
    operands: "read*|.",
    tells: "--version --help -h",
  },
  "ast-grep": AST_GREP,
  sg: { reads: groupEffects },
  comby: {
    options: `-matcher= -match-only -json-lines -json-only-diff -count -stdin -stdout -f= -exclude= -exclude-dir= -rule=
      -d=in -directory=in -timeout= -jobs= -in-place!write -i!write -diff -disable-substring-matching -match-newline-at-toplevel
      -n -newline-separated -only-matching -substitute-only= -sequential -stats -depth=`,
    operands: "data data read*|.",
    singleDash: true,
    tells: "-version -help --version --help -h",
  },
  "tree-sitter": { operands: "data*", fixed: ["project"], tells: "--version --help -V -h" },
  sd: {
    options:
      "-Fs -n: -f: -A --fixed-strings --string-mode --max-replacements= --flags= --across -p!read --preview!read",
    operands: "data data write*",
    tells: "--version --help -V -h",
  },
  hyperfine: {
    options: `-Niu -w: -r: -m: -M: -p:shell -s:shell -c:shell -C:shell -S:loads -n: --warmup= --runs= --min-runs= --max-runs=
      --prepare=shell --setup=shell --cleanup=shell --conclude=shell --shell=loads --ignore-failure=? --style= --sort=
      --time-unit= --command-name= --export-json=write --export-csv=write --export-markdown=write --export-asciidoc=write
      --export-orgmode=write --show-output --output=write --input=read --reference=shell`,
    operands: "shell*",
    tells: "--version --help -V -h",
  },
};
