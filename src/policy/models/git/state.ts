import type { Model } from "../model.ts";
import { CONFIG } from "./config.ts";

const BATCHES = "--stdin -z -n -v --verbose -q --quiet --non-matching --index --no-index";

/** Commands that show the work tree, the index, the objects and names of commits, and change none of them. */
export const STATE: Readonly<Record<string, Model>> = {
  status: {
    options: `-vsbz -u? -M? --verbose --no-verbose --short --no-short --branch --no-branch --show-stash --no-show-stash
      --ahead-behind --no-ahead-behind --porcelain=? --long --no-long --null --untracked-files=? --no-untracked-files
      --ignored=? --no-ignored --ignore-submodules=? --column=? --no-column --renames --no-renames --find-renames=?`,
    operands: "data*",
  },
  config: CONFIG,
  "ls-files": {
    options: `-ztvfcdmoiskur -x: -X:read --cached --deleted --modified --others --ignored --stage --killed --directory
      --no-directory --eol --empty-directory --no-empty-directory --unmerged --resolve-undo --exclude= --exclude-from=read
      --exclude-per-directory= --exclude-standard --full-name --recurse-submodules --error-unmatch --with-tree= --abbrev=?
      --no-abbrev --debug --deduplicate --sparse --format=`,
    operands: "data*",
  },
  "ls-tree": {
    options: `-drtlz --long --name-only --name-status --object-only --full-name --full-tree --format= --abbrev=? --no-abbrev`,
    operands: "data*",
  },
  "rev-parse": {
    options: `-q --verify --quiet --short=? --not --symbolic --symbolic-full-name --abbrev-ref=? --all --branches=? --tags=?
      --remotes=? --glob= --exclude= --exclude-hidden= --disambiguate= --since= --after= --until= --before= --default --prefix
      --revs-only --no-revs --flags --no-flags --git-dir --absolute-git-dir --git-common-dir --git-path --path-format=
      --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-cdup --show-prefix
      --show-toplevel --show-superproject-working-tree --shared-index-path --show-object-format=? --show-ref-format
      --local-env-vars --sq --resolve-git-dir=read --parseopt!ask --sq-quote!ask --end-of-options`,
    operands: "data*",
  },
  "show-ref": {
    options: `-dqs --head --heads --branches --tags --verify --exists --dereference --hash=? --abbrev=? --quiet
      --exclude-existing=?`,
    operands: "data*",
  },
  var: { options: "-l", operands: "data", tells: "-l -h --help" },
  "check-attr": { options: "-az --all --cached --stdin --source=", operands: "data*" },
  "check-ignore": { options: BATCHES, operands: "data*" },
  "check-mailmap": { options: "--stdin --mailmap-file=read --mailmap-blob=", operands: "data*" },
  "check-ref-format": {
    options: "--branch --normalize --allow-onelevel --no-allow-onelevel --refspec-pattern --print",
    operands: "data*",
  },
  "count-objects": { options: "-vH --verbose --human-readable" },
  "verify-pack": { options: "-vs --verbose --stat-only --object-format=", operands: "read*" },
  "show-index": { options: "--object-format=" },
  "get-tar-commit-id": {},
  "patch-id": { options: "--stable --unstable --verbatim" },
  stripspace: { options: "-sc --strip-comments --comment-lines" },
  column: {
    options: "--command= --mode=? --raw-mode= --width= --indent= --nl= --padding=",
  },
  "fmt-merge-msg": { options: "-m: -F:read --log=? --no-log --message= --into-name= --file=read" },
  "interpret-trailers": {
    options: `--in-place!write --trim-empty --where= --no-where --if-exists= --no-if-exists --if-missing= --no-if-missing
      --only-trailers --only-input --unfold --parse --no-divider --trailer=`,
    operands: "read*",
  },
  fsck: {
    options: `-v --verbose --unreachable --dangling --no-dangling --tags --root --cache --reflogs --no-reflogs --full --no-full
      --connectivity-only --strict --lost-found!local --progress --no-progress --name-objects --no-name-objects --references
      --no-references`,
    operands: "data*",
  },
  "verify-commit": { options: "-v --verbose --raw", operands: "data*", fixed: ["ask"] },
  "verify-tag": { options: "-v --verbose --raw --format=", operands: "data*", fixed: ["ask"] },
  "hash-object": {
    options: "-t: -w!local --stdin --stdin-paths --literally --path= --no-filters",
    operands: "read*",
  },
  mailinfo: {
    options: "-kbmun --encoding= --scissors --no-scissors --message-id --quoted-cr=",
    operands: "write write",
  },
  mailsplit: { options: "-o:write -f: -d: -b --keep-cr --mboxrd -NUM", operands: "read*" },
  "merge-file": {
    options: `-pq -L: --stdout --object-id --diff3 --zdiff3 --ours --theirs --union --marker-size= --diff-algorithm= --quiet`,
    operands: "write read read",
  },
};
