import type { Found, Model, Use } from "../model.ts";
import { DIFF, DIFF_LETTERS, LOG, REFS, WALK, WALK_LETTERS } from "./options.ts";
import { loggedFiles, searchedFiles, shownFiles } from "./paths.ts";

const BLAME: Model = {
  options: `-bcflnpstew -L: -S:read -M? -C? --incremental --root --show-stats --progress --no-progress --score-debug
    --show-name --show-number --porcelain --line-porcelain --show-email --ignore-rev= --ignore-revs-file=read --color-lines
    --color-by-age --minimal --contents=read --abbrev=? --no-abbrev --reverse --first-parent --encoding= --date= --since= --after=
    --until= --before= --textconv!ask --no-textconv`,
  operands: "data*",
  also: shownFiles,
};
const DIFFS: Model = {
  options: `${DIFF_LETTERS} ${DIFF} -NUM -q --cached --staged --merge-base --base --ours --theirs --no-index`,
  operands: "data*",
  also: shownFiles,
};
const PLUMBING: Model = {
  options: `${DIFF_LETTERS} ${DIFF} -NUM -q -v --cached --merge-base --base --ours --theirs --stdin --root --no-commit-id --pretty=?
    --format=? --no-walk --always`,
  operands: "data*",
  also: shownFiles,
};

const BATCHES: ReadonlySet<string> = new Set(["--batch", "--batch-command"]);

/** What is shown comes in by stdin, unless it is everything. */
const asked = ({ options }: Use): readonly Found[] =>
  options.some(({ name }) => BATCHES.has(name)) && options.every(({ name }) => name !== "--batch-all-objects")
    ? [{ kind: "read", path: null }]
    : [];

/** It looks for `-o` and `--remote` first, even among the values of other options. */
const lookedThrough = (use: Use): readonly Found[] =>
  use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && value.value.startsWith("-")
      ? [use.doubt("option.unknown", value)]
      : [],
  );

/** Commands that show commits, files of commits and what changed in them. */
export const HISTORY: Readonly<Record<string, Model>> = {
  log: { options: LOG, operands: "data*", also: loggedFiles },
  whatchanged: { options: `${LOG} --i-still-use-this`, operands: "data*", also: loggedFiles },
  show: { options: LOG, operands: "data*", also: shownFiles },
  diff: DIFFS,
  "diff-files": PLUMBING,
  "diff-index": PLUMBING,
  "diff-tree": PLUMBING,
  "range-diff": {
    options: `${DIFF_LETTERS} ${DIFF} --creation-factor= --no-dual-color --dual-color --notes=? --no-notes --left-only
      --right-only`,
    operands: "data*",
  },
  blame: BLAME,
  annotate: BLAME,
  "rev-list": {
    options: `${DIFF_LETTERS} ${DIFF} ${WALK_LETTERS} ${WALK} --committer= --objects --objects-edge --objects-edge-aggressive
      --in-commit-order --unpacked --use-bitmap-index --filter=? --no-filter --filter-provided-objects --filter-print-omitted
      --no-object-names --object-names --missing=? --bisect-vars --bisect-all --header --timestamp --progress=? --disk-usage=?
      --commit-header --no-commit-header --test-bitmap`,
    operands: "data*",
  },
  shortlog: {
    options: `-n -s -e -c -w? -giEFP -NUM --numbered --summary --email --committer --no-committer --group= --no-group
      ${WALK} --output=write --no-renames --follow`,
    operands: "data*",
  },
  "show-branch": {
    options: `-arg -t --all --remotes --color=? --no-color --more=? --sha1-name --no-name --current --topo-order --date-order
      --sparse --list --independent --merge-base --topics --reflog=?`,
    operands: "data*",
  },
  grep: {
    options: `-viwaIrEGFPhHnlLzocpWq -e: -f:read -C: -A: -B: -m: -O?!ask -NUM --cached --no-index --untracked
      --exclude-standard --no-exclude-standard --recurse-submodules --invert-match --ignore-case --word-regexp --text
      --textconv!ask --no-textconv --recursive --no-recursive --max-depth= --extended-regexp --basic-regexp --fixed-strings
      --perl-regexp --line-number --no-line-number --column --no-column --full-name --no-full-name --files-with-matches --name-only
      --files-without-match --null --only-matching --count --color=? --no-color --break --no-break --heading --no-heading
      --context= --before-context= --after-context= --threads= --show-function --function-context --and --or --not --quiet
      --all-match --open-files-in-pager=?!ask --max-count=`,
    operands: "data*",
    also: searchedFiles,
  },
  "cat-file": {
    options: `-e -p -t -s -Z --path= --filters!ask --textconv!ask --batch=? --batch-check=? --batch-command=? --batch-all-objects
      --buffer --no-buffer --unordered --follow-symlinks --allow-unknown-type --use-mailmap --mailmap --no-use-mailmap
      --no-mailmap --filter= -z`,
    operands: "data*",
    also: (use) => [...shownFiles(use), ...asked(use)],
  },
  archive: {
    options: `-v -l -NUM -o:write --output=write --format= --list --prefix= --add-file=read --add-virtual-file= --verbose
      --worktree-attributes --mtime= --remote=host!network --exec=!ask`,
    operands: "data*",
    also: (use) => [...shownFiles(use), ...lookedThrough(use)],
  },
  cherry: { options: "-v --abbrev=? --no-abbrev", operands: "data data? data?" },
  describe: {
    options: `--contains --all --tags --long --first-parent --abbrev=? --no-abbrev --exact-match --candidates= --match= --exclude=
      --no-match --no-exclude --always --dirty=? --broken=? --debug`,
    operands: "data*",
  },
  "name-rev": {
    options: `--name-only --tags --refs= --exclude= --all --stdin --annotate-stdin --undefined --no-undefined --always
      --peel-tag`,
    operands: "data*",
  },
  "merge-base": {
    options: "-a --all --octopus --independent --is-ancestor --fork-point",
    operands: "data*",
  },
  "merge-tree": {
    options: `-z --write-tree --trivial-merge --messages --no-messages --name-only --allow-unrelated-histories --merge-base=
      -X: --strategy-option= --quiet --stdin`,
    operands: "data*",
  },
  "for-each-ref": {
    options: `-sp ${REFS} --shell --perl --python --tcl --count= --exclude= --stdin --include-root-refs --start-after=`,
    operands: "data*",
  },
};
