import type { Found, Model, Use } from "../model.ts";

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
export const OTHERS: Readonly<Record<string, Model>> = {
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
