import type { Model } from "../model.ts";
import { gnu } from "../plain.ts";

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
