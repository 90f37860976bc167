import type { Model } from "../model.ts";
import { gnu, PRINTS } from "../plain.ts";
import { batEffects } from "./bat.ts";

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
