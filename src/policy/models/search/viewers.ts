import type { Found, Model, Use } from "../model.ts";

const FILTERS: ReadonlySet<string> = new Set(["-f", "--filter"]);

/** It asks on a terminal, unless a filter is given. */
function fzfEffects(use: Use): readonly Found[] {
  return use.options.some(({ name }) => FILTERS.has(name))
    ? []
    : [{ kind: "unknown", doubt: "operand.unknown", what: "a terminal" }];
}

const LSD: Model = {
  options: `-aAFlLRdhxStrvXGUgiZN1 -I: --all --almost-all --color= --icon= --icon-theme= --classify --long
    --oneline --recursive --tree --depth= --directory-only --human-readable --permission= --size= --total-size --date=
    --timesort --sizesort --extensionsort --gitsort --versionsort --sort= --no-sort --reverse --group-dirs=
    --group-directories-first --blocks= --no-symlink --ignore-glob= --inode --git --dereference --context --hyperlink=
    --header --literal --ignore-config`,
  operands: "read*|.",
};

export const VIEWERS: Readonly<Record<string, Model>> = {
  lsd: LSD,
  hexyl: {
    options: `-pviP -n: -s: -c: -o: -b: -g: --length= --bytes= --skip= --block-size= --no-squeezing --color= --border= --plain
      --no-characters --no-position --character-table= --color-scheme= --display-offset= --panels= --group-size= --endianness= --base=
      --terminal-width=`,
    operands: "read",
    tells: "--version --help -V -h",
  },
  fzf: {
    options: `-eixm1s0 -f: -q: -n: -d: --filter= --query= --nth= --with-nth= --delimiter= --exact --no-sort --tac --tiebreak=
      --select-1 --exit-0 --print-query --read0 --print0 --ansi --multi=? --scheme= --algo= --literal --no-extended
      --extended --ignore-case --no-ignore-case --smart-case --no-multi --tail= --preview=shell --bind=loads
      --with-shell=loads --listen=?loads --listen-unsafe=?loads --history=write`,
    tells: "--version --help --man --bash --zsh --fish",
    also: fzfEffects,
  },
  choose: {
    options:
      "-NUM -cnx -d -e -f: -i:read -o: --character-wise --debug --exclusive --field-separator= --input=read --non-greedy --one-indexed --output-field-separator=",
    operands: "data*",
    tells: "--version --help -V -h",
  },
};
