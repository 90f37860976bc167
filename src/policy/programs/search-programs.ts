import { roleEffects } from "./argument-roles.ts";
import { FD, PARALLEL, XARGS } from "./fd-xargs.ts";
import { FIND } from "./find-program.ts";
import type { Found, GivenOption, Model, Use } from "./program-model.ts";

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

const has = (options: readonly GivenOption[], names: ReadonlySet<string>): boolean =>
  options.some(({ name }) => names.has(name));

const SOURCE_TOOLS: Readonly<Record<string, Model>> = {
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

const FILTERS: ReadonlySet<string> = new Set(["-f", "--filter"]);

/** It asks on a terminal, unless a filter is given. */
function fzfEffects(use: Use): readonly Found[] {
  return use.options.some(({ name }) => FILTERS.has(name))
    ? []
    : [{ kind: "unknown", doubt: "operand.unknown", what: "a terminal" }];
}

const LSD: Model = {
  options: `-aAFlLRdhxStrvXGUgiZN1 -I: --all --almost-all --color= --icon= --icon-theme= --classify --long
    --oneline --recursive --tree --depth= --directory-only --human-readable --permission= --size= --total-size --date=
    --timesort --sizesort --extensionsort --gitsort --versionsort --sort= --no-sort --reverse --group-dirs=
    --group-directories-first --blocks= --no-symlink --ignore-glob= --inode --git --dereference --context --hyperlink=
    --header --literal --ignore-config`,
  operands: "read*|.",
};

const VIEWERS: Readonly<Record<string, Model>> = {
  lsd: LSD,
  hexyl: {
    options: `-pviP -n: -s: -c: -o: -b: -g: --length= --bytes= --skip= --block-size= --no-squeezing --color= --border= --plain
      --no-characters --no-position --character-table= --color-scheme= --display-offset= --panels= --group-size= --endianness= --base=
      --terminal-width=`,
    operands: "read",
    tells: "--version --help -V -h",
  },
  fzf: {
    options: `-eixm1s0 -f: -q: -n: -d: --filter= --query= --nth= --with-nth= --delimiter= --exact --no-sort --tac --tiebreak=
      --select-1 --exit-0 --print-query --read0 --print0 --ansi --multi=? --scheme= --algo= --literal --no-extended
      --extended --ignore-case --no-ignore-case --smart-case --no-multi --tail= --preview=shell --bind=loads
      --with-shell=loads --listen=?loads --listen-unsafe=?loads --history=write`,
    tells: "--version --help --man --bash --zsh --fish",
    also: fzfEffects,
  },
  choose: {
    options:
      "-NUM -cnx -d -e -f: -i:read -o: --character-wise --debug --exclusive --field-separator= --input=read --non-greedy --one-indexed --output-field-separator=",
    operands: "data*",
    tells: "--version --help -V -h",
  },
};

/** What a search is narrowed to by name (`-g`, a type of its own) is read, wherever it lies: as from where it runs. */
const chosenEffects = (use: Use, names: ReadonlySet<string>): readonly Found[] =>
  use.options.flatMap(({ name, value }) => {
    if (value === null || !names.has(name) || value.value.startsWith("!")) return [];
    const pattern = value.value.replace(/^(?:\w+:)?\/*/, "");
    return [{ kind: "read", path: use.place({ ...value, value: pattern }), span: value.span }];
  });

const LIGHT_SEARCHERS = { forced: false, recursive: false };
/** Options with which no operand is a pattern. */
const WITHOUT_PATTERN: ReadonlySet<string> = new Set(["--files", "-f", "--file", "-g"]);
const PATTERNS: ReadonlySet<string> = new Set(["-e", "--regexp"]);

/** Without a folder they search the current one. Where options make the pattern a path, it is read. */
function searches(patternless: ReadonlySet<string>): (use: Use) => readonly Found[] {
  return (use) => {
    const { options, operands } = use;
    const first = options.some(({ name }) => patternless.has(name)) ? operands.slice(0, 1) : [];
    const given = first.length > 0 || options.some(({ name }) => PATTERNS.has(name));
    return [
      ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT_SEARCHERS)),
      ...(operands.length <= (given ? 0 : 1) ? [{ kind: "read", path: use.folder } as const] : []),
    ];
  };
}

const CHOOSING: ReadonlySet<string> = new Set(["-g", "--glob", "--iglob", "--type-add"]);
const rgSearches = searches(new Set(["--files", "-f", "--file"]));

/** With `--files` only names are told. */
const rgEffects = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => name === "--files")
    ? rgSearches(use)
    : [...rgSearches(use), ...chosenEffects(use, CHOOSING)];

const RG: Model = {
  options: `-abcFHhiLlNnoPpqSsUuVvwx0.I -e:pattern -f:read -g: -m: -M: -A: -B: -C: -d: -j: -r: -t: -T: -E: --text
    --block-buffered --byte-offset --case-sensitive --color= --colors= --column --context= --after-context=
    --before-context= --context-separator= --count --count-matches --crlf --debug --trace --dfa-size-limit= --encoding=
    --engine= --field-context-separator= --field-match-separator= --file=read --files --files-with-matches
    --files-without-match --fixed-strings --follow --glob= --glob-case-insensitive --heading --hidden --iglob=
    --hyperlink-format= --ignore-case --ignore-file=read --ignore-file-case-insensitive --include-zero --invert-match
    --json --line-buffered --line-number --line-regexp --max-columns= --max-columns-preview --max-count= --max-depth=
    --maxdepth= --max-filesize= --mmap --multiline --multiline-dotall --no-config --no-filename --no-heading
    --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages
    --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --no-mmap --no-require-git --no-unicode --null
    --null-data --one-file-system --only-matching --passthru --passthrough --path-separator= --pcre2 --pre-glob=
    --pretty --quiet --regex-size-limit= --regexp=pattern --replace= --smart-case --sort= --sortr= --sort-files --stats
    --stop-on-nonmatch --threads= --trim --type= --type-add= --type-clear= --type-list --type-not= --unrestricted
    --vimgrep --with-filename --word-regexp --no-pcre2 --auto-hybrid-regex --no-hidden --no-follow --no-column
    --no-multiline --no-json --no-stats --no-text --binary --no-binary --no-trim --no-context-separator --no-crlf
    --no-encoding --ignore --messages --unicode --no-pre --no-search-zip --no-block-buffered --no-line-buffered
    --pre=loads --hostname-bin=loads -z!ask --search-zip!ask`,
  operands: "pattern read*",
  tells: "--version --help -V -h --pcre2-version --type-list",
  also: rgEffects,
};

const AG: Model = {
  options: `-0acDfFHilLnoQrRsStuUvw -A? -B? -C? -G: -g:pattern -m: -p:read -W: --ackmate --after=? --before=? --context=?
    --all-text --all-types --break --nobreak --case-sensitive --color --nocolor --no-color --color-line-number= --color-match= --color-path=
    --column --count --debug --depth= --filename --nofilename --no-filename --files-with-matches --files-without-matches --file-search-regex=
    --fixed-strings --follow --nofollow --group --nogroup --no-group --heading --noheading --hidden --ignore= --ignore-case
    --ignore-dir= --invert-match --list-file-types --literal --match --max-count= --multiline --nomultiline --numbers
    --nonumbers --no-numbers --norecurse --null --one-device --only-matching --parallel --passthrough --passthru
    --path-to-ignore=read --path-to-agignore=read --print-all-files --print-long-lines --recurse --search-binary
    --search-files --silent --skip-vcs-ignores --smart-case --stats --stats-only --unrestricted --vimgrep --width=
    --word-regexp --workers= --js --ts --python --py --go --rust --html --css --json --java --cpp --cc --ruby
    --markdown --yaml --xml --shell --php --pager=loads -z!ask --search-zip!ask`,
  operands: "pattern read*",
  tells: "--version --help -V -h --list-file-types",
  also: searches(WITHOUT_PATTERN),
};

const ACK: Model = {
  options: `-acfhHilLnorRsvwQkS1I -x!ask -g:pattern -m: -A? -B? -C? -p? --after-context= --before-context= --context=? --break
    --nobreak --color --nocolor --colour --nocolour --column --nocolumn --count --env --noenv --files-from=loads
    --files-with-matches --files-without-matches --filename --nofilename --no-filename --filter --nofilter --flush
    --follow --nofollow --group --nogroup --heading --noheading --help-types --ignore-case --no-ignore-case
    --ignore-dir= --ignore-directory= --ignore-file= --invert-match --known-types --literal --match=pattern
    --max-count= --no-recurse --recurse --only-matching --passthru --print0 --proximate=? --range-start= --range-end=
    --show-types --smart-case --no-smart-case --sort-files --nosort-files --type= --underline --with-filename
    --word-regexp --js --ts --python --py --perl --go --rust --html --css --json --java --cpp --cc --ruby --markdown
    --md --yaml --xml --shell --php --sql --make --nojs --nots --nopython --nohtml --nocss --nojson --ackrc=loads
    --pager=loads --nopager --output=loads --ignore-ack-defaults`,
  operands: "pattern read*",
  tells: "--version --help --help-types --man --bar --thpppt --cathy",
  also: searches(WITHOUT_PATTERN),
};

/** Its data base tells the names of all files there are. */
const LOCATE: Model = {
  options: `-bceiqwAPHL0psSNE -d:read -l: -n: -r: --basename --count --existing --ignore-case --quiet --wholename --all
    --follow --nofollow --null --transliterate --ignore-spaces --statistics --database=read --limit= --regexp=
    --regex --literal`,
  operands: "data*",
  tells: "--version --help -V -h",
  also: () => [{ kind: "read", path: "/" }],
};

const SEARCHERS: Readonly<Record<string, Model>> = {
  rg: RG,
  ag: AG,
  ack: ACK,
  "ack-grep": ACK,
  locate: LOCATE,
  mlocate: LOCATE,
  plocate: LOCATE,
};

const LIGHT = { forced: false, recursive: false };
const FILES: ReadonlySet<string> = new Set(["-f", "--file"]);
const RECURSIVE: ReadonlySet<string> = new Set(["-r", "-R", "--recursive", "--dereference-recursive"]);

/** With patterns from a file, the first operand is none. Searching below folders begins here when no folder is given. */
function grepEffects(use: Use, recursive: boolean): readonly Found[] {
  const { options, operands } = use;
  const given = options.some(({ name }) => name === "-e" || name === "--regexp") || has(options, FILES);
  const first = has(options, FILES) ? operands.slice(0, 1) : [];
  const here = recursive && operands.length === (given ? 0 : 1);
  // Another word of what stands unquoted is a file.
  const spills = [...operands, ...options.flatMap(({ value }) => value ?? [])].some(
    ({ loose }) => loose === true,
  );
  return [
    ...(spills ? [{ kind: "read", path: null } as const] : []),
    ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT)),
    ...(here ? [{ kind: "read", path: use.folder } as const] : []),
  ];
}

const OPTIONS = `-EFGPivwxycLlqosbHhnTZaIUzu -NUM -e:pattern -f:read -m: -A: -B: -C: -D: -d: --extended-regexp
  --fixed-strings --basic-regexp --perl-regexp --regexp=pattern --file=read --ignore-case --no-ignore-case --invert-match
  --word-regexp --line-regexp --count --color=? --colour=? --files-without-match --files-with-matches --max-count=
  --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label= --line-number
  --initial-tab --null --after-context= --before-context= --context= --text --binary-files= --devices= --directories=
  --exclude= --exclude-from=read --exclude-dir= --include=read --line-buffered --binary --null-data --unix-byte-offsets
  --group-separator= --no-group-separator`;

const GREP: Model = {
  options: `${OPTIONS} -rR --recursive --dereference-recursive`,
  operands: "pattern read*",
  tells: "--version --help -V",
  abbreviates: true,
  complete: true,
  also: (use) => grepEffects(use, has(use.options, RECURSIVE)),
};

/** Unpacks what it searches; otherwise as grep, but for searching below folders. */
const ZGREP: Model = { ...GREP, options: OPTIONS, also: (use) => grepEffects(use, false) };

const GREPS: Readonly<Record<string, Model>> = {
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  rgrep: { ...GREP, also: (use) => grepEffects(use, true) },
  zgrep: ZGREP,
  zegrep: ZGREP,
  zfgrep: ZGREP,
  bzgrep: ZGREP,
  xzgrep: ZGREP,
  lzgrep: ZGREP,
  zstdgrep: ZGREP,
};

/** What searches names and texts, and what runs commands for each of them. */
export const SEARCHING: Readonly<Record<string, Model>> = {
  ...GREPS,
  ...SEARCHERS,
  ...SOURCE_TOOLS,
  ...VIEWERS,
  find: FIND,
  fd: FD,
  fdfind: FD,
  xargs: XARGS,
  parallel: PARALLEL,
};
