import { LFS } from "./forge-programs.ts";
import { CHANGES, EXCHANGE, NAMES } from "./git-changes.ts";
import { NESTED } from "./git-nested.ts";
import {
  DIFF,
  DIFF_LETTERS,
  isHarmless,
  LOG,
  loggedFiles,
  pathIn,
  PATHS_FROM,
  REFS,
  searchedFiles,
  shownFiles,
  STATE,
  WALK,
  WALK_LETTERS,
} from "./git-settings.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

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
const HISTORY_PLUMBING: Model = {
  options: `${DIFF_LETTERS} ${DIFF} -NUM -q -v --cached --merge-base --base --ours --theirs --stdin --root --no-commit-id --pretty=?
    --format=? --no-walk --always`,
  operands: "data*",
  also: shownFiles,
};

const BATCHES: ReadonlySet<string> = new Set(["--batch", "--batch-command"]);

/** What is shown comes in by stdin, unless it is everything. */
const askedOfHistory = ({ options }: Use): readonly Found[] =>
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
const HISTORY: Readonly<Record<string, Model>> = {
  log: { options: LOG, operands: "data*", also: loggedFiles },
  whatchanged: { options: `${LOG} --i-still-use-this`, operands: "data*", also: loggedFiles },
  show: { options: LOG, operands: "data*", also: shownFiles },
  diff: DIFFS,
  "diff-files": HISTORY_PLUMBING,
  "diff-index": HISTORY_PLUMBING,
  "diff-tree": HISTORY_PLUMBING,
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
    also: (use) => [...shownFiles(use), ...askedOfHistory(use)],
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

const has = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));
const change = (change: "local" | "lost" | "rewritten", { program }: Use): Found => ({
  kind: "repository",
  change,
  what: program,
});

/** Files that get another content than they have: what was changed in them goes. */
const overwritten = (paths: readonly Arg[], use: Use): readonly Found[] => [
  change("lost", use),
  ...paths.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "write", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  }),
];

/** What looks like a file, not like a branch: a dot at the beginning of a name, or an ending. */
const FILE = /(?:^|\/)\.|\.[a-z]\w*$|\/$|[*?]/i;

function checkedOut(use: Use): readonly Found[] {
  const { args, operands } = use;
  const makes = has(use, "-b", "-B", "--orphan", "--detach", "-d", "-t", "--track");
  const dashes = args.find(({ kind, value }) => value === "--" && kind === "literal");
  const after = dashes === undefined ? [] : operands.filter(({ span }) => span[0] > dashes.span[0]);
  if (after.length > 0) return overwritten(after, use);
  const [first] = operands;
  const files =
    has(use, "--ours", "--theirs", "-p", "--patch", "--pathspec-from-file", "-2", "-3") ||
    operands.length > 1 ||
    (first !== undefined && FILE.test(first.value));
  return files && !makes ? overwritten(operands, use) : [change("local", use)];
}

/** Only the index, unless the work tree is named too. */
const restored = (use: Use): readonly Found[] =>
  has(use, "-S", "--staged") && !has(use, "-W", "--worktree")
    ? [change("local", use)]
    : overwritten(use.operands, use);

/** Only with `-f` does it delete; what it deletes stands in no commit. */
function cleaned(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  return [change(has(use, "-f", "--force") ? "rewritten" : "lost", use)];
}

function removed(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  if (has(use, "--cached")) return [change("local", use)];
  const recursive = has(use, "-r");
  const forced = has(use, "-f", "--force");
  const deleted = use.operands.map(
    (arg) => ({ kind: "delete", path: use.place(arg), recursive, forced, span: arg.span }) as const,
  );
  return [change(forced ? "lost" : "local", use), ...deleted];
}

function renamed(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  const sources = use.operands.slice(0, -1);
  const moved = sources.map(
    (arg) =>
      ({ kind: "delete", path: use.place(arg), recursive: false, forced: false, span: arg.span }) as const,
  );
  const targets = use.operands
    .slice(-1)
    .map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }) as const);
  return [change(has(use, "-f", "--force") ? "lost" : "local", use), ...moved, ...targets];
}

/** Commands that change files of the work tree. */
const WORK_TREE: Readonly<Record<string, Model>> = {
  checkout: {
    options: `-qlmd -t -b: -B:!lost -f!lost -p!ask -2 -3 -U: --ours --theirs --quiet --progress --no-progress --force!lost --track=?
      --no-track --guess --no-guess --detach --orphan= --merge --conflict= --patch!ask --ignore-skip-worktree-bits
      --ignore-other-worktrees --overwrite-ignore --no-overwrite-ignore --recurse-submodules=? --no-recurse-submodules
      --overlay --no-overlay ${PATHS_FROM}`,
    operands: "data*",
    also: checkedOut,
  },
  switch: {
    options: `-qmd -t -c: -C:!lost -f!lost --create= --force-create=!lost --discard-changes!lost --force!lost --quiet --progress
      --no-progress --track=? --no-track --guess --no-guess --detach --orphan= --merge --conflict= --ignore-other-worktrees
      --overwrite-ignore --no-overwrite-ignore --recurse-submodules=? --no-recurse-submodules`,
    operands: "data*",
    fixed: ["local"],
  },
  restore: {
    options: `-qmSW -s: -p!ask -2 -3 -U: --source= --staged --worktree --ours --theirs --merge --conflict= --patch!ask --quiet
      --progress --no-progress --ignore-unmerged --ignore-skip-worktree-bits --recurse-submodules=? --no-recurse-submodules
      --overlay --no-overlay ${PATHS_FROM}`,
    operands: "data*",
    also: restored,
  },
  reset: {
    options: `-qN -p!ask -U: --hard!rewritten --soft --mixed --merge!lost --keep!lost --quiet --no-quiet --refresh --no-refresh
      --intent-to-add --patch!ask --recurse-submodules=? --no-recurse-submodules ${PATHS_FROM}`,
    operands: "data*",
    fixed: ["local"],
  },
  clean: {
    options: "-dxXqfni -e: --force --dry-run --no-dry-run!lost --quiet --interactive --exclude=",
    operands: "data*",
    also: cleaned,
  },
  rm: {
    options: `-rfnq --force --dry-run --cached --ignore-unmatch --sparse --quiet ${PATHS_FROM}!ask`,
    operands: "data*",
    also: removed,
  },
  mv: {
    options: "-fknv --force --dry-run --no-dry-run!local --verbose --sparse",
    operands: "data*",
    also: renamed,
  },
  "checkout-index": {
    options: `-ufaqn --index --quiet --force --all --no-create --prefix=write --stage= --temp --ignore-skip-worktree-bits -z
      --stdin`,
    operands: "write*",
    fixed: ["lost"],
  },
  "read-tree": {
    options: `-muivn --reset!lost --prefix= --index-output=write --empty!lost --aggressive --trivial --dry-run --quiet -q
      --exclude-per-directory= --no-sparse-checkout --recurse-submodules=? --no-recurse-submodules --debug-unpack`,
    operands: "data*",
    fixed: ["local"],
  },
};

const OBJECTS: Model = {
  options: "-qvnr --quiet --strict --missing --batch -z",
  operands: "data*",
  fixed: ["local"],
};

/** What others do with tools and objects; none of it is needed to look at a repository. */
const PLUMBING: Readonly<Record<string, Model>> = {
  difftool: {
    options: `${DIFF_LETTERS.replace("-puswabzRWDrtcm", "-puswabzRWDrcm")} ${DIFF} -dyg -x:shell --extcmd=shell -t:loads --tool=loads
      --dir-diff --no-prompt --prompt --gui --no-gui --cached --staged`,
    operands: "data*",
    fixed: ["project"],
  },
  mergetool: {
    options: "-yg -t:loads --tool=loads --no-prompt",
    operands: "data*",
    fixed: ["project", "local"],
  },
  "filter-branch": {
    options: `-f -d:write --setup=shell --env-filter=shell --tree-filter=shell --index-filter=shell --parent-filter=shell
      --msg-filter=shell --commit-filter=shell --tag-name-filter=shell --subdirectory-filter= --prune-empty --original= --force
      --state-branch=`,
    operands: "data*",
    fixed: ["rewritten"],
  },
  "filter-repo": {
    options: `-f --force --path= --invert-paths --subdirectory-filter= --analyze --path-glob= --path-rename= --replace-text=read
      --mailmap=read --refs= --strip-blobs-bigger-than=`,
    operands: "data*",
    fixed: ["rewritten"],
  },
  "commit-tree": { options: "-p: -m: -F:read -S?!ask", operands: "data*", fixed: ["local"] },
  "write-tree": OBJECTS,
  mktree: OBJECTS,
  mktag: OBJECTS,
  "unpack-objects": OBJECTS,
  "pack-objects": OBJECTS,
  "index-pack": {
    options: "-v -o:write --stdin --strict --fix-thin --keep=?",
    operands: "write",
    fixed: ["local"],
  },
  "commit-graph": OBJECTS,
  "multi-pack-index": OBJECTS,
  maintenance: OBJECTS,
};

/** Options whose value may ask for signatures, which gpg then checks. */
const SHAPES = new Set(["--format", "--pretty", "--group", "--sort"]);

/** `-c key=value` before a command, and formats that start gpg. */
function asked(use: Use): readonly Found[] {
  const { globals, options } = use;
  const settings = globals.filter(
    ({ name, value }) => name === "-c" && (value?.kind !== "literal" || !isHarmless(value.value)),
  );
  const formats = options.filter(
    ({ name, value }) =>
      SHAPES.has(name) &&
      value !== null &&
      (value.kind !== "literal" || /%G|\(signature|^-?signature/.test(value.value)),
  );
  return [...settings, ...formats].flatMap(({ name, value }) =>
    value === null ? [] : [use.doubt("option.unknown", value, `${name} ${value.value}`)],
  );
}

const NOTHING: readonly Found[] = [];

/** Git obeys the settings of the repository it stands in, whatever it is asked for; so does each of its commands. */
function standing(model: Model): Model {
  const { commands, also, fixed = [] } = model;
  return {
    ...model,
    abbreviates: true,
    // `--help` opens a viewer that the repository's settings name.
    local: true,
    tells: model.tells ?? "-h --help",
    fixed: [...fixed, "settings"],
    also: (use) => [...asked(use), ...(also?.(use) ?? NOTHING)],
    ...(commands === undefined ? {} : { commands: allStanding(commands) }),
  };
}

const allStanding = (commands: Readonly<Record<string, Model>>): Readonly<Record<string, Model>> =>
  Object.fromEntries(Object.entries(commands).map(([name, model]) => [name, standing(model)]));

export const GIT: Readonly<Record<string, Model>> = {
  git: {
    options: `-C:in -c: -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
      --no-replace-objects --no-lazy-fetch --no-advice --version --build-options --html-path --man-path --info-path
      --exec-path=?loads --git-dir=loads --work-tree=loads --namespace=!ask --config-env=!ask -p!ask --paginate!ask --bare!ask
      --super-prefix=!ask --attr-source=!ask --list-cmds=`,
    tells: "-h --help -v --version --exec-path",
    commands: {
      ...allStanding({
        ...CHANGES,
        ...EXCHANGE,
        ...HISTORY,
        ...NAMES,
        ...NESTED,
        ...PLUMBING,
        ...STATE,
        ...WORK_TREE,
      }),
      lfs: LFS,
      version: { options: "--build-options" },
      help: {
        options:
          "-a -g -c --all --guides --verbose --no-verbose --config --no-aliases --no-external-commands",
        tells: "",
      },
    },
  },
};
