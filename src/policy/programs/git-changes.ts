import { LOG, loggedFiles, PATHS_FROM, REFS, shownFiles } from "./git-settings.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

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

const URL = /^(?:(?:https?|ssh|git|ftps?):\/\/(?:[^@/]*@)?|[\w.-]+@)(\[[0-9a-f:.]+\]|[\w.-]+)/i;

/** The other repository: a host where one is named, a helper that runs a program (`ext::`), else what the settings call so. */
function reached(use: Use): readonly Found[] {
  const named = use.options.filter(({ name }) => name === "--repo").map(({ value }) => value);
  const texts = [...named, ...use.operands].filter((arg): arg is Arg => arg !== null);
  const hosts = texts.flatMap(({ value }) => URL.exec(value)?.[1]?.toLowerCase() ?? []);
  const helpers = texts.filter(({ value }) => /^\w+::/.test(value));
  return [{ kind: "network", hosts }, ...helpers.map((arg) => use.doubt("option.loads-code", arg))];
}

/** Where patches go, if not into the folder. */
const PLACED: ReadonlySet<string> = new Set(["--stdout", "-o", "--output-directory"]);

const FETCHES = `-vqaftpk46 -j: -o: --verbose --quiet --all --append --upload-pack=!ask --force --tags --no-tags --jobs= --prune
  --no-prune --recurse-submodules=? --no-recurse-submodules --dry-run --keep --progress --no-progress --depth= --shallow-since=
  --shallow-exclude= --deepen= --unshallow --update-shallow --refmap= --server-option= --ipv4 --ipv6 --negotiation-tip=
  --show-forced-updates --no-show-forced-updates --set-upstream`;

/** Commands that give to other repositories or take from them. */
export const EXCHANGE: Readonly<Record<string, Model>> = {
  push: {
    options: `-nvqdu46 -f!forced -o: --repo= --all --branches --mirror!forced --delete --tags --follow-tags --no-follow-tags
      --dry-run --porcelain --force!forced --force-with-lease=?!forced --no-force-with-lease --force-if-includes
      --no-force-if-includes --recurse-submodules= --no-recurse-submodules --thin --no-thin --receive-pack=!ask --exec=!ask
      --set-upstream --progress --no-progress --prune --verify --no-verify --signed=?!ask --no-signed --atomic --no-atomic
      --push-option= --ipv4 --ipv6 --verbose --quiet`,
    operands: "data*",
    fixed: ["remote"],
    also: (use) => [...reached(use), ...forcedRefs(use)],
  },
  fetch: {
    options: `${FETCHES} -munP --no-all --atomic --multiple --prefetch --prune-tags --write-fetch-head --no-write-fetch-head
      --update-head-ok --refetch --negotiate-only --filter= --auto-maintenance --no-auto-maintenance --auto-gc --no-auto-gc --stdin`,
    operands: "data*",
    also: reached,
  },
  pull: {
    options: `${FETCHES} -n -r? -s: -X: -S?!ask --rebase=? --no-rebase --ff --no-ff --ff-only --commit --no-commit --edit!ask --no-edit --squash
      --no-squash --stat --no-stat --log=? --no-log --signoff --no-signoff --cleanup= --verify --verify-signatures!ask
      --autostash --no-autostash --strategy= --strategy-option= --gpg-sign=?!ask --no-gpg-sign --allow-unrelated-histories`,
    operands: "data*",
    fixed: ["local"],
    also: reached,
  },
  clone: {
    options: `-vqnls46 -j: -o: -b: -u:!ask -c:!ask --verbose --quiet --progress --reject-shallow --no-reject-shallow --no-checkout
      --checkout --bare --mirror --local --no-local --no-hardlinks --shared --recurse-submodules=?!ask --recursive=?!ask --jobs=
      --template=loads --reference=read --reference-if-able=read --dissociate --origin= --branch= --revision= --upload-pack=!ask
      --depth= --shallow-since= --shallow-exclude= --single-branch --no-single-branch --no-tags --tags --shallow-submodules
      --no-shallow-submodules --separate-git-dir=write --config=!ask --server-option= --ipv4 --ipv6 --filter=
      --also-filter-submodules --remote-submodules --no-remote-submodules --sparse --bundle-uri= --ref-format=`,
    operands: "data target",
    fixed: ["local"],
    also: reached,
  },
  "ls-remote": {
    options: `-qtbh -o: --quiet --upload-pack=!ask --exec=!ask --tags --heads --branches --refs --get-url --sort= --exit-code
      --symref --server-option=`,
    operands: "data*",
    also: reached,
  },
  "request-pull": { options: "-p", operands: "data*", also: reached },
  "format-patch": {
    options: `-nNkspM -v: -o:target -NUM --output-directory=target --stdout --numbered --no-numbered --signoff --keep-subject
      --reroll-count= --cover-letter --subject-prefix= --rfc=? --suffix= --base= --root --zero-commit --stat --no-stat`,
    operands: "data*",
    also: (use) => [
      ...shownFiles(use),
      ...(use.options.some(({ name }) => PLACED.has(name))
        ? []
        : [{ kind: "write", path: use.folder } as const]),
    ],
  },
  "send-email": { operands: "read*", fixed: ["network"] },
  "imap-send": { options: "-vq --curl --no-curl --folder= --list", fixed: ["network"] },
  daemon: { operands: "data*", fixed: ["network"] },
  svn: { operands: "data*", fixed: ["network"] },
  p4: { operands: "data*", fixed: ["network"] },
  "fast-export": {
    options: "--all --export-marks=write --import-marks=read --progress= --no-data",
    operands: "data*",
    also: shownFiles,
  },
};

/** Lists, when one of these is given or nothing is named; else it makes what is named. */
const LISTS: Readonly<Record<string, ReadonlySet<string>>> = {
  "git branch": new Set(
    `-l --list --contains --no-contains --with --without --merged --no-merged --points-at --show-current`.split(
      /\s+/,
    ),
  ),
  "git tag": new Set(
    `-l --list -n --contains --no-contains --with --without --merged --no-merged --points-at`.split(/\s+/),
  ),
};

function namedRefs(use: Use): readonly Found[] {
  const { program, options, operands } = use;
  const lists = operands.length === 0 || options.some(({ name }) => LISTS[program]?.has(name) === true);
  return lists ? [] : [{ kind: "repository", change: "local", what: program }];
}

const GONE = new Set(["expire", "delete", "drop", "write"]);

/** `reflog`: any first word that is no action names what is shown. */
function loggedRefs(use: Use): readonly Found[] {
  const [action] = use.operands;
  const shown = loggedFiles(use);
  if (action === undefined || action.value === "show") return shown;
  if (action.kind !== "literal") return [use.doubt("word.dynamic", action)];
  return GONE.has(action.value)
    ? [{ kind: "repository", change: "rewritten", what: `${use.program} ${action.value}` }]
    : shown;
}

/** `-d` alone removes; any other use gives a ref another value. */
const updatedRefs = ({ program, options }: Use): readonly Found[] =>
  options.some(({ name }) => name === "-d" || name === "--stdin")
    ? [
        {
          kind: "repository",
          change: options.some(({ name }) => name === "-d") ? "rewritten" : "lost",
          what: `${program} -d`,
        },
      ]
    : [{ kind: "repository", change: "local", what: program }];

/** One name is asked for, two are set. */
const symbolic = ({ program, operands }: Use): readonly Found[] =>
  operands.length > 1 ? [{ kind: "repository", change: "local", what: program }] : [];

/** `+name` in what is pushed goes without asking whether something is lost. */
const forcedRefs = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }: Arg) => value.startsWith("+"))
    .map(({ value, span }) => ({ kind: "repository", change: "forced", what: value, span }));

/** Commands about names of commits: branches, tags, and what they pointed to. */
export const NAMES: Readonly<Record<string, Model>> = {
  branch: {
    options: `-arvqilt -u:!local -d!local -D!lost -m!local -M!lost -c!local -C!lost -f!lost --verbose --quiet --track=?!local
      --no-track!local --set-upstream-to=!local --unset-upstream!local ${REFS} --remotes --abbrev=? --no-abbrev --all
      --delete!local --move!local --copy!local --list --show-current --create-reflog!local --edit-description!ask --force!lost
      --recurse-submodules!ask`,
    operands: "data*",
    also: namedRefs,
  },
  tag: {
    options: `-lia -n? -m: -F:read -e!ask -s!ask -u:!ask -v!ask -d!local -f!local --list --delete!local --verify!ask --annotate
      --message= --file=read --edit!ask --sign!ask --no-sign --cleanup= --local-user=!ask --force!local --create-reflog ${REFS}
      --trailer=`,
    operands: "data*",
    also: namedRefs,
  },
  reflog: {
    options: `${LOG} --expire=!ask --expire-unreachable=!ask --rewrite --updateref --stale-fix --dry-run --verbose`,
    operands: "data*",
    also: loggedRefs,
  },
  "update-ref": {
    options: "-d -m: --no-deref --deref --create-reflog --stdin -z --batch-updates",
    operands: "data*",
    also: updatedRefs,
  },
  "symbolic-ref": {
    options: "-d!lost --delete!lost -q --quiet --short --recurse --no-recurse -m:",
    operands: "data*",
    also: symbolic,
  },
  "pack-refs": { options: "--all --prune --no-prune --auto --include= --exclude=", fixed: ["local"] },
  replace: {
    options:
      "-l -d!local -f!local -e!ask -g!ask --list --format= --delete!local --force!local --edit!ask --graft!ask --raw",
    operands: "data*",
    also: ({ program, options, operands }) =>
      operands.length === 0 || options.some(({ name }) => name === "-l" || name === "--list")
        ? []
        : [{ kind: "repository", change: "local", what: program }],
  },
};
