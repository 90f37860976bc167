import type { Found, Model, Use } from "../model.ts";
import { roleEffects } from "../roles.ts";
import { chosenEffects } from "./chosen.ts";

const LIGHT = { forced: false, recursive: false };
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
      ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT)),
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

export const SEARCHERS: Readonly<Record<string, Model>> = {
  rg: RG,
  ag: AG,
  ack: ACK,
  "ack-grep": ACK,
  locate: LOCATE,
  mlocate: LOCATE,
  plocate: LOCATE,
};
