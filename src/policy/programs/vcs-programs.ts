import { FORGES, LFS, VIEWERS } from "./forge-programs.ts";
import type { Found, Model, Use } from "./program-model.ts";

const SVN = `-qvN --quiet --verbose --non-interactive --no-auth-cache --username= --password= --trust-server-cert --config-dir=loads
  --config-option=!ask --depth=`;
const svn = (fixed: Model["fixed"], options = "", operands = "read*"): Model => ({
  options: `${SVN} ${options}`,
  operands,
  fixed: [...(fixed ?? []), "settings"],
  also: upstream,
});

/** `^/trunk`: from the root of the repository on its server. */
const upstream = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }) => value.startsWith("^/"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

const JJ = `-R:in --repository=in --ignore-working-copy --at-operation= --at-op= --color= --quiet --no-pager --debug --config=!ask
  --config-file=loads --config-toml=!ask --ignore-immutable`;
const jj = (fixed: Model["fixed"], options = "", operands = "data*"): Model => ({
  options: `${JJ} ${options}`,
  operands,
  fixed: [...(fixed ?? []), "settings"],
});
const JJ_DIFFS = "-s --summary --stat --types --name-only --git --color-words --context= --tool=!ask -w -b";

/** Subversion and Jujutsu. What Subversion looks up on its server reaches the network. */
const OTHERS: Readonly<Record<string, Model>> = {
  svn: {
    tells: "--version --help -h help",
    aliases: {
      st: "status",
      stat: "status",
      di: "diff",
      up: "update",
      ci: "commit",
      co: "checkout",
      rm: "delete",
    },
    commands: {
      status: svn([], "-u!network --show-updates!network --no-ignore --xml --ignore-externals --changelist="),
      info: svn([], "-r:!network -R --revision=!network --recursive --xml --show-item= --no-newline"),
      diff: svn(
        [],
        `-r:!network -c:!network -x: --revision=!network --change=!network --old=!network --new=!network --summarize --git
        --internal-diff --diff-cmd=!ask --extensions= --ignore-properties --no-diff-deleted --show-copies-as-adds`,
      ),
      log: svn(["network"], "-r: -l: -g --revision= --limit= --stop-on-copy --xml --diff --search="),
      cat: svn(["network"], "-r: --revision="),
      list: svn(["network"], "-r: -R --revision= --recursive --xml"),
      blame: svn(["network"], "-r: -g --revision= --xml"),
      add: svn(["record"], "--force --no-ignore --parents --auto-props"),
      delete: svn(["local"], "--force --keep-local -m:", "delete*"),
      revert: svn(["lost"], "-R --recursive --remove-added", "write*"),
      cleanup: svn(["lost"]),
      resolve: svn(["local"], "--accept= -R"),
      update: svn(["network", "local"], "-r: --revision= --force --accept= --ignore-externals"),
      commit: svn(["network", "remote"], "-m: -F:read --message= --file=read --editor-cmd=!ask"),
      checkout: svn(["network", "local"], "-r: --revision= --force", "data target"),
      switch: svn(["network", "lost"]),
      merge: svn(["network", "local"]),
    },
  },
  jj: {
    options: JJ,
    tells: "--version --help -V -h help version",
    aliases: { st: "status" },
    commands: {
      status: jj([]),
      log: jj(
        [],
        `-r: -n: -T: -Gp --revisions= --limit= --template= --reversed --no-graph --patch ${JJ_DIFFS}`,
      ),
      show: jj([], `-r: -T: --template= ${JJ_DIFFS}`),
      diff: jj([], `-r: -f: -t: --revisions= --from= --to= ${JJ_DIFFS}`, "read*"),
      root: jj([]),
      file: {
        options: JJ,
        commands: { list: jj([], "-r: -T:"), show: jj([], "-r:", "read*"), annotate: jj([], "-r:", "read*") },
      },
      bookmark: {
        options: JJ,
        commands: { list: jj([], "-atc -r: -T: --all --tracked --conflicted") },
      },
      commit: jj(["record"], "-m: --message="),
      describe: jj(["record"], "-r -m: --message= --no-edit"),
      new: jj(["local"], "-A: -B: -m: --message= --no-edit"),
      edit: jj(["local"], "-r"),
      squash: jj(["local"], "-r: -f: -t: -m: -u --from= --into= --message="),
      rebase: jj(["local"], "-b: -s: -r: -d: -A: -B: --branch= --source= --revisions= --destination="),
      abandon: jj(["lost"], "-r --retain-bookmarks --restore-descendants"),
      restore: jj(["lost"], "-f: -t: -c: --from= --to=", "write*"),
      undo: jj(["local"]),
      git: { options: JJ, fixed: ["network", "remote"], operands: "data*" },
    },
  },
};

/** Options that every command of it takes. */
const ALL = `-R:in -qvy --repository=in --cwd=in --noninteractive --quiet --verbose --color= --config=!ask --debug --debugger!ask
  --encoding= --encodingmode= --traceback --time --profile!ask --hidden --pager=!ask`;
const PICKS = "-I: -X: -S --include= --exclude= --subrepos";

/** Another repository by its address; and of some options even a value is looked for wherever it stands. */
const strayed = (use: Use): readonly Found[] => [
  ...[...use.operands, ...[...use.globals, ...use.options].flatMap(({ value }) => value ?? [])]
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/\//i.test(value))
    .map(({ span }): Found => ({ kind: "network", hosts: [], span })),
  ...use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && /^-\D/.test(value.value)
      ? [use.doubt("option.unknown", value)]
      : [],
  ),
];

const shownByMercurial = (options = "", operands = "data*"): Model => ({
  options: `${ALL} ${options}`,
  operands,
  fixed: ["settings"],
  also: strayed,
});
const changed = (fixed: Model["fixed"], options = "", operands = "data*"): Model => ({
  options: `${ALL} ${options}`,
  operands,
  fixed: [...(fixed ?? []), "settings"],
});

const NETWORK = ["network", "local"] as const;

const MERCURIAL: Readonly<Record<string, Model>> = {
  hg: {
    options: ALL,
    tells: "--version --help version help",
    aliases: {
      st: "status",
      stat: "status",
      di: "diff",
      history: "log",
      id: "identify",
      blame: "annotate",
      ann: "annotate",
      ci: "commit",
      up: "update",
      co: "update",
      checkout: "update",
      sum: "summary",
      rm: "remove",
      mv: "rename",
      cp: "copy",
    },
    commands: {
      status: shownByMercurial(
        `-AmardcuinC0 -T: ${PICKS} --all --modified --added --removed --deleted --clean --unknown --ignored --no-status
        --terse= --copies --print0 --rev= --change= --template=`,
      ),
      log: shownByMercurial(
        `-fpgGM -d: -C -k: -r: -u: -b: -B: -P: -l: -T: ${PICKS} --follow --date= --copies --keyword= --rev= --removed --user= --branch=
        --bookmark= --prune= --patch --git --limit= --no-merges --stat --graph --template= --style=read`,
        "read*",
      ),
      diff: shownByMercurial(
        `-agpwbBZ -r: -c: -U: ${PICKS} --rev= --from= --to= --change= --text --git --binary --nodates --noprefix --show-function
        --reverse --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-space-at-eol --unified= --stat --root=`,
        "read*",
      ),
      annotate: shownByMercurial(
        "-r: -fauwndclbBZ -T: -I: -X: --rev= --follow --text --user --file --date --number --changeset",
        "read*",
      ),
      cat: shownByMercurial("-r: -o:write -I: -X: -T: --output=write --rev= --decode", "read*"),
      grep: shownByMercurial(
        "-0ailnu -r: -I: -X: --print0 --all --text --ignore-case --files-with-matches --line-number --rev=",
        "data read*",
      ),
      files: shownByMercurial(`-r: -0 ${PICKS} -T: --rev= --print0`),
      branches: shownByMercurial("-ac -T: --active --closed"),
      tags: shownByMercurial("-T: --template="),
      heads: shownByMercurial("-r: -tac -T: --rev= --topo --active --closed"),
      identify: shownByMercurial("-r: -nibtB -T: --rev= --num --id --branch --tags --bookmarks"),
      parents: shownByMercurial("-r: -T: --rev="),
      paths: shownByMercurial(),
      root: shownByMercurial("-T:"),
      summary: shownByMercurial("--remote!network"),
      tip: shownByMercurial("-pg -T: --patch --git"),
      version: shownByMercurial("-T:"),
      help: shownByMercurial("-eck"),
      add: changed(["record"], `-n ${PICKS} --dry-run`),
      commit: changed(
        ["record"],
        "-A -m: -l:read -d: -u: -I: -X: --addremove --message= --logfile=read --date= --user= --amend!local",
      ),
      branch: changed(["local"], "-fC --force --clean"),
      bookmark: changed(["local"], "-fdi -r: -m: --force --rev= --delete --rename= --inactive"),
      tag: changed(["local"], "-flre -m: -d: -u: --force --local --remove --message="),
      remove: changed(["local"], "-Af --after --force", "delete*"),
      rename: changed(["local"], "-Afn --after --force", "delete* target"),
      copy: changed(["local"], "-Afn --after --force", "read* target"),
      merge: changed(["local"], "-fP -r: -t:!ask --force --rev= --preview --tool=!ask --abort"),
      update: changed(
        ["local"],
        "-C!lost -cm -d: -r: -t:!ask --clean!lost --check --merge --date= --rev= --tool=!ask",
      ),
      revert: changed(
        ["lost"],
        "-aCni -d: -r: -I: -X: --all --date= --rev= --no-backup --dry-run --interactive",
        "write*",
      ),
      purge: changed(["rewritten"], "-anp --all --print --files --dirs"),
      strip: changed(["rewritten"], "-r: -k -B: --rev= --keep --no-backup --force"),
      rollback: changed(["lost"], "-nf --dry-run --force"),
      pull: changed(
        NETWORK,
        "-uf -r: -B: -b: --update --force --rev= --bookmark= --branch= --ssh=!ask --remotecmd=!ask --insecure",
      ),
      push: changed(
        ["network", "remote"],
        "-f -r: -B: -b: --force --rev= --new-branch --bookmark= --ssh=!ask --remotecmd=!ask",
      ),
      incoming: changed(["network"]),
      outgoing: changed(["network"]),
      clone: changed(
        NETWORK,
        "-U -u: -r: -b: --noupdate --updaterev= --rev= --branch= --pull --ssh=!ask --remotecmd=!ask",
        "data target",
      ),
      init: changed(["local"], "", "target"),
    },
  },
};

/** Version control besides git, and programs around it. */
export const VERSION_CONTROL: Readonly<Record<string, Model>> = {
  ...FORGES,
  ...MERCURIAL,
  ...OTHERS,
  ...VIEWERS,
  "git-lfs": LFS,
};
