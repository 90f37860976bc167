import { DIFF, DIFF_LETTERS, LOG, loggedFiles, PATHS_FROM } from "./git-settings.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

const STASHES = `-qkua -p!ask -m: -S -U: --quiet --keep-index --no-keep-index --include-untracked --no-include-untracked --all
  --staged --patch!ask --message= ${PATHS_FROM}`;
const local = (options = "", operands = "data*"): Model => ({ options, operands, fixed: ["local"] });
const lost = (options = "", operands = "data*"): Model => ({ options, operands, fixed: ["lost"] });
const shown = (options = "", operands = "data*"): Model => ({ options, operands });
const reached = (options = "", operands = "data*"): Model => ({
  options,
  operands,
  fixed: ["network", "local"],
});

/** `foreach`: its words are one text for a shell. */
function foreachModule(use: Use): readonly Found[] {
  const [first] = use.operands;
  if (first === undefined) return [];
  const known = use.operands.every(({ kind }) => kind === "literal");
  const text: Arg = {
    ...first,
    kind: known ? "literal" : "dynamic",
    value: use.operands.map(({ value }) => value).join(" "),
  };
  return [use.doubt("operand.unknown", first), ...use.shell(text)];
}

/** `show NAME` asks the other side, unless told not to. */
const shownRemote = ({ options, operands }: Use): readonly Found[] =>
  operands.length === 0 || options.some(({ name }) => name === "-n") ? [] : [{ kind: "network", hosts: [] }];

const removedTree = ({ program, options }: Use): readonly Found[] => [
  {
    kind: "repository",
    change: options.some(({ name }) => name === "-f" || name === "--force") ? "lost" : "local",
    what: program,
  },
];

/** Commands with commands of their own. */
export const NESTED: Readonly<Record<string, Model>> = {
  stash: {
    options: STASHES,
    fixed: ["local"],
    commands: {
      push: local(STASHES),
      save: local(STASHES),
      pop: local("-q --index --quiet"),
      apply: local("-q --index --quiet"),
      branch: local(),
      create: local(),
      store: local("-m: -q --message= --quiet"),
      drop: lost("-q --quiet"),
      clear: lost(),
      list: { ...shown(LOG), also: loggedFiles },
      show: shown(`${DIFF_LETTERS} ${DIFF} --include-untracked --no-include-untracked --only-untracked`),
    },
  },
  remote: {
    options: "-v --verbose",
    commands: {
      show: { options: "-n", operands: "data*", also: shownRemote },
      "get-url": shown("--push --all", "data"),
      add: {
        ...local("-f!network -t: -m: --fetch!network --tags --no-tags --track= --master= --mirror=?"),
        operands: "data data",
      },
      rename: local("--progress --no-progress"),
      remove: local(),
      rm: local(),
      "set-url": local("--push --add --delete"),
      "set-head": local("-ad --auto!network --delete"),
      "set-branches": local("--add"),
      prune: reached("-n --dry-run"),
      update: reached("-p --prune"),
    },
  },
  worktree: {
    commands: {
      list: shown("-vz --porcelain --verbose --expire="),
      add: {
        options: `-fdq -b: -B:!lost --force --detach --checkout --no-checkout --lock --reason= --quiet --track --no-track
          --guess-remote --no-guess-remote --orphan --relative-paths --no-relative-paths`,
        operands: "target data?",
        fixed: ["local"],
      },
      remove: { options: "-f --force", operands: "tree", also: removedTree },
      move: { ...local("-f --force"), operands: "tree target" },
      lock: local("--reason="),
      unlock: local(),
      prune: local("-nv --dry-run --verbose --expire="),
      repair: local("--relative-paths --no-relative-paths"),
    },
  },
  submodule: {
    options: "-q --quiet --cached --recursive",
    commands: {
      status: shown("-q --quiet --cached --recursive"),
      summary: shown("-n: --cached --files --for-status --summary-limit="),
      foreach: { options: "-q --quiet --recursive", operands: "data*", strict: true, also: foreachModule },
      init: local("-q --quiet"),
      deinit: lost("-fq --force --all --quiet"),
      "set-url": local("-q --quiet"),
      "set-branch": local("-qd -b: --quiet --branch= --default"),
      sync: local("-q --quiet --recursive"),
      absorbgitdirs: local("-q --quiet"),
      add: reached("-fq -b: --branch= --force --name= --depth= --quiet --progress --reference=read"),
      update: reached(
        `-Nfq -j: --init --remote --no-fetch --force --checkout --merge --rebase --recursive --depth= --jobs= --quiet --progress
        --recommend-shallow --no-recommend-shallow --reference=read --single-branch --no-single-branch --filter=`,
      ),
    },
  },
  notes: {
    options: "--ref=",
    commands: {
      list: shown(),
      show: shown(),
      "get-ref": shown(),
      add: local("-f -m: -F:read -C: -c:!ask --message= --file=read"),
      append: local("-m: -F:read -C: -c:!ask --message= --file=read"),
      copy: local("-f --force --stdin"),
      merge: local("-vq -s: --strategy= --commit --abort --quiet --verbose"),
      remove: lost("--ignore-missing --stdin"),
      prune: lost("-nv --dry-run --verbose"),
    },
  },
  bisect: {
    commands: {
      log: shown(),
      help: shown(),
      terms: shown("--term-good --term-bad --term-old --term-new"),
      start: local("--term-new= --term-bad= --term-old= --term-good= --no-checkout --first-parent"),
      good: local(),
      bad: local(),
      new: local(),
      old: local(),
      skip: local(),
      next: local(),
      reset: lost(),
      replay: local("", "read"),
      run: { operands: "command*", strict: true, fixed: ["local"] },
    },
  },
  bundle: {
    commands: {
      create: {
        options: "-q --quiet --progress --version= --all --branches=? --tags=? --since= --stdin",
        operands: "write data*",
      },
      verify: shown("-q --quiet", "read"),
      "list-heads": shown("", "read data*"),
      unbundle: local("--progress", "read data*"),
    },
  },
  "sparse-checkout": {
    commands: {
      list: shown(),
      init: local("--cone --no-cone --sparse-index --no-sparse-index"),
      set: local("--cone --no-cone --sparse-index --no-sparse-index --skip-checks --stdin"),
      add: local("--skip-checks --stdin"),
      reapply: local("--cone --no-cone --sparse-index --no-sparse-index"),
      disable: local(),
    },
  },
  rerere: {
    fixed: ["local"],
    commands: {
      status: shown(),
      diff: shown(),
      remaining: shown(),
      clear: lost(),
      forget: lost(),
      gc: local(),
    },
  },
  refs: {
    commands: { list: shown("--count= --format= --sort= --all"), verify: shown("--strict --verbose") },
  },
};
