import type { Found, Model, Use } from "../model.ts";

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

const shown = (options = "", operands = "data*"): Model => ({
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

export const MERCURIAL: Readonly<Record<string, Model>> = {
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
      status: shown(
        `-AmardcuinC0 -T: ${PICKS} --all --modified --added --removed --deleted --clean --unknown --ignored --no-status
        --terse= --copies --print0 --rev= --change= --template=`,
      ),
      log: shown(
        `-fpgGM -d: -C -k: -r: -u: -b: -B: -P: -l: -T: ${PICKS} --follow --date= --copies --keyword= --rev= --removed --user= --branch=
        --bookmark= --prune= --patch --git --limit= --no-merges --stat --graph --template= --style=read`,
        "read*",
      ),
      diff: shown(
        `-agpwbBZ -r: -c: -U: ${PICKS} --rev= --from= --to= --change= --text --git --binary --nodates --noprefix --show-function
        --reverse --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-space-at-eol --unified= --stat --root=`,
        "read*",
      ),
      annotate: shown(
        "-r: -fauwndclbBZ -T: -I: -X: --rev= --follow --text --user --file --date --number --changeset",
        "read*",
      ),
      cat: shown("-r: -o:write -I: -X: -T: --output=write --rev= --decode", "read*"),
      grep: shown(
        "-0ailnu -r: -I: -X: --print0 --all --text --ignore-case --files-with-matches --line-number --rev=",
        "data read*",
      ),
      files: shown(`-r: -0 ${PICKS} -T: --rev= --print0`),
      branches: shown("-ac -T: --active --closed"),
      tags: shown("-T: --template="),
      heads: shown("-r: -tac -T: --rev= --topo --active --closed"),
      identify: shown("-r: -nibtB -T: --rev= --num --id --branch --tags --bookmarks"),
      parents: shown("-r: -T: --rev="),
      paths: shown(),
      root: shown("-T:"),
      summary: shown("--remote!network"),
      tip: shown("-pg -T: --patch --git"),
      version: shown("-T:"),
      help: shown("-eck"),
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
