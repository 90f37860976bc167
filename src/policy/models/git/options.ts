/** Options that many commands of git share, in the small language of `Model.options`. Arities are those of git 2.39 to 2.5x. */

/** What a diff looks like; one letter. */
export const DIFF_LETTERS = "-puswabzRWDrtcm -U? -M? -C? -B? -X? -l: -S: -G: -I: -O:read";

/** What a diff looks like. */
export const DIFF = `--patch --no-patch --unified=? --function-context --no-function-context --raw --patch-with-raw --patch-with-stat
  --numstat --shortstat --dirstat=? --cumulative --dirstat-by-file=? --check --summary --name-only --name-status --stat=?
  --stat-width= --stat-name-width= --stat-graph-width= --stat-count= --compact-summary --no-compact-summary --binary
  --full-index --no-full-index --color=? --no-color --ws-error-highlight= --abbrev=? --no-abbrev --src-prefix= --dst-prefix=
  --line-prefix= --no-prefix --default-prefix --inter-hunk-context= --output-indicator-new= --output-indicator-old=
  --output-indicator-context= --break-rewrites=? --find-renames=? --irreversible-delete --find-copies=? --find-copies-harder
  --no-renames --rename-empty --no-rename-empty --follow --no-follow --minimal --no-minimal --ignore-all-space
  --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines --ignore-matching-lines=
  --indent-heuristic --no-indent-heuristic --patience --histogram --diff-algorithm= --anchored= --word-diff=?
  --word-diff-regex= --color-words=? --color-moved=? --no-color-moved --color-moved-ws= --no-color-moved-ws --relative=?
  --no-relative --text --no-text --exit-code --no-exit-code --quiet --ext-diff!ask --no-ext-diff --textconv!ask --no-textconv
  --ignore-submodules=? --submodule=? --ita-invisible-in-index --ita-visible-in-index --pickaxe-all --pickaxe-regex
  --rotate-to= --skip-to= --find-object= --diff-filter= --output=write --diff-merges= --no-diff-merges --remerge-diff --cc
  --dd --combined-all-paths`;

/** Which commits; one letter. */
export const WALK_LETTERS = "-n: -iEFPg -NUM";

/** Which commits, and how they are shown. Those with `=?` take a value after `=` only, others in the next word too. */
export const WALK = `--max-count= --skip= --since= --after= --until= --before= --since-as-filter= --max-age= --min-age= --author=
  --grep-reflog= --grep= --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp
  --fixed-strings --perl-regexp --remove-empty --merges --no-merges --min-parents=? --max-parents=? --no-min-parents
  --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches=? --tags=? --remotes=? --glob= --exclude=
  --exclude-hidden= --reflog --single-worktree --ignore-missing --bisect --stdin --cherry-mark --cherry-pick --left-only
  --right-only --cherry --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense
  --sparse --simplify-merges --ancestry-path=? --date-order --author-date-order --topo-order --reverse --no-walk=? --do-walk
  --pretty=? --format=? --abbrev-commit --no-abbrev-commit --oneline --encoding= --expand-tabs=? --no-expand-tabs --notes=?
  --no-notes --show-notes=? --show-notes-by-default --standard-notes --no-standard-notes --show-signature!ask
  --no-show-signature --relative-date --date= --parents --children --left-right --graph --no-graph --show-linear-break=?
  --full-diff --log-size --count`;

/** What `log`, `show` and their like add to those. */
export const LOG = `${DIFF_LETTERS} ${DIFF} ${WALK_LETTERS} ${WALK} -q -L: --committer= --source --no-source --use-mailmap --mailmap
  --no-use-mailmap --no-mailmap --clear-decorations --decorate-refs= --decorate-refs-exclude= --decorate=? --no-decorate`;

/** Which refs, and how they are shown: in a list of branches, tags or refs. A commit may stand in the next word; it is data there too. */
export const REFS = `--contains=? --no-contains=? --with=? --without=? --merged=? --no-merged=? --points-at=? --no-points-at --sort=
  --no-sort --format= --no-format --color=? --no-color --column=? --no-column --ignore-case --no-ignore-case --omit-empty`;

/** Paths from a file, one a line. */
export const PATHS_FROM = "--pathspec-from-file=read --pathspec-file-nul";
