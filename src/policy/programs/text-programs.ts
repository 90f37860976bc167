import { gnu, PRINTS } from "./argument-roles.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

const FILE = new Set("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S".split(" "));
const TEXT = new Set(["-n", "-z", "-t", "-o"]);
const FILES = new Set(["-nt", "-ot", "-ef"]);
const TEXTS = new Set(["=", "==", "!=", "<", ">"]);
const NUMBERS = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);
const NAMES = new Set(["-v", "-R"]);

const NAME = /^\w+$/;
const NUMBER = /^[+-]?\d+$/;

/**
 * `test` and `[`. Its operators are looked for by where they could stand, not by its grammar, which depends on the number of
 * words: what could be an operator is taken for one. A variable's name or a number may hold a subscript, which some shells run.
 */
function testEffects(use: Use): readonly Found[] {
  const closes = use.args.at(-1);
  if (use.program !== "[") return use.args.flatMap((_, at) => wordEffects(use, use.args, at));
  if (closes?.kind !== "literal" || closes.value !== "]")
    return [use.doubt("operand.unknown", closes ?? { kind: "literal", value: "[", span: use.span })];
  const words = use.args.slice(0, -1);
  return words.flatMap((_, at) => wordEffects(use, words, at));
}

function wordEffects(use: Use, words: readonly Arg[], at: number): readonly Found[] {
  const word = words[at] as Arg;
  if (word.kind === "literal") return operatorEffects(use, word, [words[at - 1], words[at + 1]]);
  const open = word.value.charAt(0);
  if (word.kind === "glob") return "*?[".includes(open) ? [use.doubt("word.leading-glob", word)] : [];
  return word.loose !== true && isShielded(words, at) ? [] : [use.doubt("word.dynamic", word)];
}

type Neighbours = readonly [before: Arg | undefined, behind: Arg | undefined];

function operatorEffects(use: Use, { value }: Arg, [before, behind]: Neighbours): readonly Found[] {
  const known = [before, behind].filter((arg) => arg !== undefined);
  if (NAMES.has(value))
    return behind === undefined || isLiteral(behind, NAME) ? [] : [use.doubt("shell.expansion", behind)];
  if (NUMBERS.has(value))
    return known.filter((arg) => !isLiteral(arg, NUMBER)).map((arg) => use.doubt("shell.expansion", arg));
  if (FILES.has(value)) return known.flatMap((arg) => seen(use, arg));
  return FILE.has(value) && behind !== undefined ? seen(use, behind) : [];
}

const isLiteral = ({ kind, value }: Arg, form: RegExp): boolean => kind === "literal" && form.test(value);

const CONNECTIVES = new Set(["!", "(", ")", "-a", "-o"]);

function seen(use: Use, arg: Arg): readonly Found[] {
  const { kind, value, span } = arg;
  if (kind === "literal" && (CONNECTIVES.has(value) || FILE.has(value) || TEXT.has(value))) return [];
  return [{ kind: "read", path: use.place(arg), span }];
}

/** Where a word stands that can only be an operand, whatever it holds. */
function isShielded(words: readonly Arg[], at: number): boolean {
  const before = words[at - 1];
  const behind = words[at + 1];
  if (words.length === 1) return true;
  const follows = before?.kind === "literal" && (isUnary(before.value) || TEXTS.has(before.value));
  return follows || (behind?.kind === "literal" && TEXTS.has(behind.value));
}

const isUnary = (value: string): boolean => FILE.has(value) || TEXT.has(value);

const COUNTS = /(?:^|[^%])(?:%%)*%[-+ #'*.\dhjlLqtz]*n/;

/** Programs that print what they are told, or only end. */
export const PRINTING: Readonly<Record<string, Model>> = {
  printf: { reads: printfEffects, tells: "--version --help" },
  true: PRINTS,
  false: PRINTS,
  test: { reads: testEffects, tells: "" },
  "[": { reads: testEffects, tells: "" },
  sleep: PRINTS,
  clear: PRINTS,
  tput: PRINTS,
  cal: PRINTS,
  ncal: PRINTS,
  // It never ends by itself.
  yes: { fixed: ["ask"], operands: "data*" },
  date: gnu(
    "data?",
    `-Ru -d: -f:read -I? -r:read -s:!system --date= --debug --file=read --iso-8601=? --resolution --rfc-email --rfc-3339=
    --reference=read --set=!system --utc --universal`,
    setsDate,
  ),
};

/** Any operand that is no format sets the clock. */
function setsDate(use: Use): readonly Found[] {
  return use.operands
    .filter(({ kind, value }) => kind === "literal" && !value.startsWith("+"))
    .map(({ span }) => ({ kind: "system", what: use.program, span }));
}

/** `-v name` and `%n` set variables of the shell, and a name may hold a subscript, which is calculated. */
function printfEffects(use: Use): readonly Found[] {
  const at = use.args[0]?.value === "--" ? 1 : 0;
  const format = use.args[at];
  if (format === undefined) return [];
  if (at === 0 && format.value.startsWith("-") && format.value !== "-")
    return [use.doubt("shell.expansion", format)];
  if (format.kind !== "literal" && (format.loose === true || use.args.length > at + 1))
    return [use.doubt("word.dynamic", format)];
  return COUNTS.test(format.value) ? [use.doubt("shell.expansion", format)] : [];
}

/** Programs that sort, pick, join and count lines, fields and numbers. */
export const FIELDS: Readonly<Record<string, Model>> = {
  sort: gnu(
    "read*",
    `-bdfgiMhnRrVcCmsuz -k: -o:write -S: -t: -T:target --ignore-leading-blanks --dictionary-order --ignore-case
    --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort
    --random-source=read --reverse --sort= --version-sort --batch-size= --check=? --compress-program=loads --debug
    --files0-from=read!ask --key= --merge --output=write --stable --buffer-size= --field-separator=
    --temporary-directory=target --parallel= --unique --zero-terminated`,
  ),
  uniq: gnu(
    "read write?",
    `-NUM -cdDiuz -f: -s: -w: --count --repeated --all-repeated=? --skip-fields= --group=? --ignore-case --skip-chars= --unique
    --zero-terminated --check-chars=`,
  ),
  cut: gnu(
    "read*",
    `-nsz -b: -c: -d: -f: --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter=
    --zero-terminated`,
  ),
  paste: gnu("read*", "-sz -d: --delimiters= --serial --zero-terminated"),
  tr: gnu("data*", "-cCdst --complement --delete --squeeze-repeats --truncate-set1"),
  join: gnu(
    "read read",
    "-iz -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --check-order --nocheck-order --header --zero-terminated",
  ),
  comm: gnu("read read", "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated"),
  shuf: gnu(
    "read*",
    `-erz -i: -n: -o:write --echo --input-range= --head-count= --output=write --random-source=read --repeat
    --zero-terminated`,
  ),
  numfmt: gnu(
    "data*",
    `-NUM -z -d: --debug --delimiter= --field= --format= --from= --from-unit= --grouping --header=? --invalid= --padding=
    --round= --suffix= --to= --to-unit= --zero-terminated`,
  ),
  iconv: gnu(
    "read*",
    `-lcs -f: -t: -o:write --from-code= --to-code= --list --output=write --silent --verbose --usage --unicode-subst=
    --byte-subst= --widechar-subst=`,
  ),
  seq: PRINTS,
  expr: PRINTS,
  factor: PRINTS,
};

/** Programs that compare files. */
export const COMPARE: Readonly<Record<string, Model>> = {
  diff: gnu(
    "read*",
    `-NUM -qscuenypltTrNiEZbwBad -C: -U: -W: -F: -x: -X:read -S: -I: -D: -L: --normal --brief --report-identical-files
    --context=? --unified=? --ed --rcs --side-by-side --width= --left-column --suppress-common-lines --show-c-function
    --show-function-line= --label= --expand-tabs --initial-tab --tabsize= --suppress-blank-empty --paginate --recursive
    --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case --exclude=
    --exclude-from=read --starting-file= --from-file=read --to-file=read --ignore-case --ignore-tab-expansion
    --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines= --text
    --strip-trailing-cr --ifdef= --old-group-format= --new-group-format= --changed-group-format= --unchanged-group-format=
    --line-format= --old-line-format= --new-line-format= --unchanged-line-format= --minimal --horizon-lines=
    --speed-large-files --color=? --palette=`,
  ),
  cmp: gnu(
    "read read? data*",
    "-bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent",
  ),
  diff3: gnu(
    "read read read",
    `-AeE3xXimaT -L: --show-all --ed --show-overlap --easy-only --overlap-only --merge --text --strip-trailing-cr
    --initial-tab --diff-program=loads --label=`,
  ),
  sdiff: gnu(
    "read read",
    `-iEZbWBalstdH -I: -o:write -w: --output=write --ignore-case --ignore-tab-expansion --ignore-trailing-space
    --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines= --strip-trailing-cr --text
    --width= --left-column --suppress-common-lines --expand-tabs --tabsize= --minimal --speed-large-files
    --diff-program=loads`,
  ),
};

const SUM = gnu(
  "read*",
  `-bctwz -l: --binary --check --tag --text --zero --length= --ignore-missing --quiet --status --strict --warn`,
);
const BASE = gnu("read?", "-diD -w: --decode --ignore-garbage --wrap=");
const HEXDUMP = gnu(
  "read*",
  `-bcCdoxvX -L? -e: -f:read!ask -n: -s: --one-byte-octal --one-byte-char --canonical --two-bytes-decimal --two-bytes-octal
  --two-bytes-hex --color=? --format= --format-file=read!ask --length= --skip= --no-squeezing --one-byte-hex`,
);

/** Programs that show bytes as text, and sums of them. */
export const BYTES: Readonly<Record<string, Model>> = {
  md5sum: SUM,
  sha1sum: SUM,
  sha224sum: SUM,
  sha256sum: SUM,
  sha384sum: SUM,
  sha512sum: SUM,
  b2sum: SUM,
  b3sum: {
    operands: "read*",
    options: "-c -l: --check --length= --no-names --raw --tag --quiet --num-threads= --no-mmap --keyed",
  },
  cksum: gnu(
    "read*",
    "-cwz -a: -l: --algorithm= --check --length= --tag --untagged --zero --ignore-missing --quiet --status --strict --warn --debug --raw --base64",
  ),
  sum: gnu("read*", "-rs --sysv"),
  shasum: {
    operands: "read*",
    options: `-bcstUqwS0 -a: --algorithm= --binary --check --text --UNIVERSAL --01 --ignore-missing --quiet --status --strict --tag
      --warn`,
    tells: "--version --help -v -h",
  },
  base64: BASE,
  base32: BASE,
  basenc: gnu(
    "read?",
    `-di -w: --base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 --decode --ignore-garbage
    --wrap=`,
  ),
  hexdump: HEXDUMP,
  hd: HEXDUMP,
  od: gnu(
    "read*",
    `-abcdfiloshxvBDeFHILOX -A: -j: -N: -S: -t: -w? --address-radix= --endian= --skip-bytes= --read-bytes= --strings=?
    --format= --output-duplicates --width=? --traditional`,
  ),
  xxd: {
    // Its second operand is written.
    operands: "read write?",
    singleDash: true,
    options: `-a -autoskip -b -bits -C -capitalize -c= -cols= -d -e -E -EBCDIC -g= -groupsize= -i -include -l= -len= -n= -name= -o= -p
      -ps -plain -postscript -r -revert -s= -seek= -u -uppercase -R=`,
    tells: "-h -help -v -version --version --help",
  },
  // `@file` holds more arguments.
  strings: gnu(
    "read*",
    `-NUM -adfwo -n: -t: -T: -e: -U: -s: --all --data --print-file-name --bytes= --radix= --include-all-whitespace --target=
    --encoding= --unicode= --output-separator=`,
    (use) =>
      use.operands
        .filter(({ value }) => value.startsWith("@"))
        .map((arg) => use.doubt("option.loads-code", arg)),
  ),
};

/** It may start a pager, and its first word may be a command that changes its own files. */
function batEffects(use: Use): readonly Found[] {
  const [first] = use.operands;
  const paging = use.options.filter(
    ({ name, value }) => name === "--paging" && value?.value !== "never" && value?.value !== "auto",
  );
  return [
    ...paging.map(({ value }) =>
      use.doubt("option.unknown", value ?? first ?? { ...NOWHERE, span: use.span }),
    ),
    ...(first?.value === "cache" ? [use.doubt("operand.unknown", first)] : []),
  ];
}

const NOWHERE = { kind: "literal", value: "--paging" } as const;

const BAT: Model = {
  operands: "read*",
  options: `-AnpPuSfV -d!ask -l: -H: -r: -m: --show-all --number --plain --no-paging --unbuffered --chop-long-lines --force-colorization
    --diff!ask --language= --highlight-line= --line-range= --map-syntax= --file-name= --diff-context= --tabs= --wrap= --theme=
    --terminal-width= --color= --italic-text= --decorations= --paging= --pager=loads --style= --ignored-suffix=
    --squeeze-blank --squeeze-limit= --strip-ansi= --nonprintable-notation= --list-languages --list-themes --no-config
    --no-custom-assets --lessopen!ask --no-lessopen --completion= --diagnostic`,
  tells: "--version -V --help -h",
  also: batEffects,
};

/** Programs that show text, whole or in part. */
export const READERS: Readonly<Record<string, Model>> = {
  cat: gnu(
    "read*",
    "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
  ),
  bat: BAT,
  batcat: BAT,
  tac: gnu("read*", "-br -s: --before --regex --separator="),
  nl: gnu(
    "read*",
    `-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering= --section-delimiter= --footer-numbering= --header-numbering=
    --line-increment= --join-blank-lines= --number-format= --no-renumber --number-separator= --starting-line-number= --number-width=`,
  ),
  head: gnu("read*", "-NUM -qvz -c: -n: --bytes= --lines= --quiet --silent --verbose --zero-terminated"),
  tail: gnu(
    "read*",
    `-NUM -fFqvz -c: -n: -s: --bytes= --follow=? --lines= --max-unchanged-stats= --pid= --quiet --silent --retry
    --sleep-interval= --verbose --zero-terminated`,
  ),
  wc: gnu("read*", "-cmlLw --bytes --chars --lines --max-line-length --words --total= --files0-from=read"),
  look: gnu("data read?", "-abdf -t: --alternative --alphanum --ignore-case --terminate="),
  column: gnu(
    "read*",
    `-tdJexL -c: -E: -H: -i: -l: -n: -N: -o: -O: -p: -r: -R: -s: -T: -W: --table --table-name= --table-order= --table-columns=
    --table-columns-limit= --table-noextreme= --table-noheadings --table-header-repeat --table-hide= --table-right=
    --table-truncate= --table-wrap= --keep-empty-lines --json --tree= --tree-id= --tree-parent= --output-width=
    --output-separator= --separator= --fillrows --table-empty-lines --use-spaces= --columns=`,
  ),
  fold: gnu("read*", "-NUM -bs -w: --bytes --spaces --width="),
  fmt: gnu(
    "read*",
    "-NUM -cstu -g: -p: -w: --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing --width= --goal=",
  ),
  pr: gnu(
    "read*",
    `-NUM -acdFfJmrtTv -D: -e? -h: -i? -l: -n? -N: -o: -s? -S? -w: -W: --columns= --across --show-control-chars --double-space
    --date-format= --expand-tabs=? --form-feed --header= --output-tabs=? --join-lines --length= --merge --number-lines=?
    --first-line-number= --indent= --no-file-warnings --separator=? --sep-string=? --omit-header --omit-pagination
    --show-nonprinting --width= --page-width= --pages=`,
  ),
  expand: gnu("read*", "-NUM -i -t: --initial --tabs="),
  unexpand: gnu("read*", "-NUM -a -t: --all --first-only --tabs="),
  rev: gnu("read*", "-0 --zero"),
  tsort: { operands: "read?" },
  zdiff: { operands: "read read?", options: "-qsuwbiBryNT -U: -C:" },
  zcmp: { operands: "read read?", options: "-bls -n: -i:" },
  echo: { ...PRINTS, tells: "" },
};
