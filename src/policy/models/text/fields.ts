import type { Model } from "../model.ts";
import { gnu, PRINTS } from "../plain.ts";

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
