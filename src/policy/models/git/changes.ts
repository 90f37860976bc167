import type { Found, Model, Use } from "../model.ts";
import { PATHS_FROM } from "./options.ts";

/** Options with which patches are only looked at. */
const LOOKS = new Set(["--stat", "--numstat", "--summary", "--check"]);

const applied = ({ program, options }: Use): readonly Found[] =>
  options.some(({ name }) => LOOKS.has(name)) && !options.some(({ name }) => name === "--apply")
    ? []
    : [{ kind: "repository", change: "local", what: program }];

const pruned = ({ program, options }: Use): readonly Found[] =>
  options.some(({ name }) => name === "-n" || name === "--dry-run")
    ? []
    : [{ kind: "repository", change: "rewritten", what: program }];

/** What nothing points to is kept for two weeks, unless told otherwise. */
const collected = ({ program, options }: Use): readonly Found[] => {
  const prune = options.findLast(({ name }) => name === "--prune")?.value ?? null;
  const all = prune !== null && (prune.kind !== "literal" || /^(?:now|all|0.*)$/i.test(prune.value));
  return [{ kind: "repository", change: all ? "rewritten" : "local", what: program }];
};

const MERGES = `-X: -S?!ask --strategy= --strategy-option= --gpg-sign=?!ask --no-gpg-sign --signoff --no-signoff --rerere-autoupdate
  --no-rerere-autoupdate --commit --no-commit --edit!ask --no-edit --ff --cleanup= --quit --continue --abort!lost`;

/** Commands that make commits, or change what stands beside them. */
export const CHANGES: Readonly<Record<string, Model>> = {
  add: {
    options: `-vnfuAN -i!ask -p!ask -e!ask -U: --verbose --dry-run --force --interactive!ask --patch!ask --edit!ask --update --all
      --no-all --ignore-removal --no-ignore-removal --intent-to-add --refresh --ignore-errors --ignore-missing --renormalize
      --chmod= --sparse --no-warn-embedded-repo ${PATHS_FROM}`,
    operands: "read*",
    fixed: ["record"],
  },
  commit: {
    options: `-qvnsazio -m: -F:read -C: -c:!ask -t:read -u? -S?!ask -e!ask -p!ask -U: --quiet --verbose --no-verify --verify
      --signoff --no-signoff --all --include --only --message= --file=read --author= --date= --reuse-message=
      --reedit-message=!ask --fixup= --squash= --reset-author --trailer= --template=read --edit!ask --no-edit --cleanup= --status
      --no-status --gpg-sign=?!ask --no-gpg-sign --interactive!ask --patch!ask --dry-run --short --branch --ahead-behind
      --no-ahead-behind --porcelain --long --null --amend!local --no-post-rewrite --untracked-files=? --allow-empty
      --allow-empty-message ${PATHS_FROM}`,
    operands: "read*",
    fixed: ["record"],
  },
  merge: {
    options: `-nqve -s: -m: -F:read ${MERGES} --stat --no-stat --summary --no-summary --compact-summary --log=? --no-log --squash
      --no-squash --no-ff --ff-only --verify-signatures!ask --no-verify-signatures --verify --no-verify --allow-unrelated-histories
      --message= --file=read --into-name= --autostash --no-autostash --overwrite-ignore --no-overwrite-ignore --progress
      --no-progress --quiet --verbose`,
    operands: "data*",
    fixed: ["local"],
  },
  "cherry-pick": {
    options: `-nxe -m: -rs ${MERGES} --skip!lost --mainline= --allow-empty --allow-empty-message
      --keep-redundant-commits --empty=`,
    operands: "data*",
    fixed: ["local"],
  },
  revert: {
    options: `-ne -m: -s ${MERGES} --skip!lost --mainline= --reference --no-reference`,
    operands: "data*",
    fixed: ["local"],
  },
  rebase: {
    options: `-qvnmfk -i!ask -C: -x:shell -r? -s: -X: -S?!ask --onto= --keep-base --root --interactive!ask --exec=shell --apply
      --merge --no-ff --force-rebase --continue --skip!lost --abort!lost --quit --edit-todo!ask --show-current-patch --quiet
      --verbose --stat --no-stat --verify --no-verify --signoff --no-signoff --gpg-sign=?!ask --no-gpg-sign --autosquash
      --no-autosquash --autostash --no-autostash --update-refs --no-update-refs --fork-point --no-fork-point --strategy=
      --strategy-option= --rebase-merges=? --no-rebase-merges --empty= --keep-empty --no-keep-empty --allow-empty-message
      --rerere-autoupdate --no-rerere-autoupdate --reapply-cherry-picks --no-reapply-cherry-picks --ignore-whitespace
      --whitespace= --committer-date-is-author-date --reset-author-date --ignore-date --reschedule-failed-exec
      --no-reschedule-failed-exec --trailer=`,
    operands: "data*",
    fixed: ["local"],
  },
  apply: {
    options: `-vqz3RN -p: -C: --stat --numstat --summary --check --apply --index --cached --intent-to-add --3way --ours --theirs
      --union --reverse --reject --recount --inaccurate-eof --binary --allow-overlap --allow-empty --no-add --exclude= --include=
      --whitespace= --ignore-whitespace --ignore-space-change --unidiff-zero --directory= --unsafe-paths!ask
      --build-fake-ancestor=write --verbose --quiet`,
    operands: "read*",
    also: applied,
  },
  am: {
    options:
      "-smqukb3 -i!ask -S?!ask --3way --signoff --abort!lost --skip!lost --quit --continue --resolved --keep --quiet",
    operands: "read*",
    fixed: ["local"],
  },
  "update-index": {
    options: `-qgz --add --remove --force-remove --refresh --really-refresh --chmod= --assume-unchanged --no-assume-unchanged
      --skip-worktree --no-skip-worktree --again --unresolve --cacheinfo=? --index-info!ask --stdin --fsmonitor!ask
      --no-fsmonitor --untracked-cache --no-untracked-cache --split-index --no-split-index --ignore-missing --ignore-submodules
      --unmerged --replace --info-only --verbose --show-index-version --index-version=`,
    operands: "data*",
    fixed: ["local"],
  },
  gc: {
    options: `-q --quiet --aggressive --auto --force --prune=? --no-prune --cruft --no-cruft --keep-largest-pack --detach
      --no-detach`,
    also: collected,
  },
  prune: {
    options: "-nv --dry-run --no-dry-run!lost --verbose --expire= --progress --exclude-promisor-objects",
    operands: "data*",
    also: pruned,
  },
  repack: {
    options: "-aAdlfFnqb --window= --depth= --threads= --keep-unreachable --cruft --write-midx --geometric=",
    fixed: ["local"],
  },
  "prune-packed": { options: "-nq --dry-run --quiet", fixed: ["local"] },
  init: {
    options: `-q -b: --quiet --bare --template=loads --separate-git-dir=write --shared=? --initial-branch= --object-format=
      --ref-format=`,
    operands: "target",
    fixed: ["local"],
  },
};
