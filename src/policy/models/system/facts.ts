import type { Found, Model, Use } from "../model.ts";
import { given, gnu, outside, PRINTS } from "../plain.ts";
import { printenvEffects } from "./environment.ts";
import { psEffects } from "./ps.ts";

const PGREP = `-lavwcfinoxLA -d: -g: -G: -O: -P: -s: -t: -u: -U: -F:read -r: --delimiter= --list-name --list-full --inverse
  --lightweight --count --full --pgroup= --group= --ignore-case --newest --oldest --older= --parent= --session= --terminal=
  --euid= --uid= --exact --pidfile=read --logpidfile --runstates= --ignore-ancestors --cgroup= --ns= --nslist=`;

/** What tells who is who reads the system's accounts. */
const accounts = (operands: string, options: string): Model => ({
  ...gnu(operands, options),
  also: ({ span }) => [{ kind: "read", path: "/etc/passwd", span }],
});

/** Programs that tell of the machine, its users and its processes. */
export const FACTS: Readonly<Record<string, Model>> = {
  uname: PRINTS,
  lsb_release: gnu("", "-vidrcas --version --id --description --release --codename --all --short"),
  arch: PRINTS,
  nproc: PRINTS,
  id: accounts("data*", "-agGnruzZ --context --group --groups --name --real --user --zero"),
  whoami: accounts("", ""),
  logname: accounts("", ""),
  groups: accounts("data*", ""),
  users: accounts("read?", ""),
  who: accounts(
    "read*",
    `-abdHlmpqrstTuw --all --boot --dead --heading --ips --login --lookup!network --process --count --runlevel --short --time
    --mesg --users --message --writable`,
  ),
  w: accounts("data*", "-husfoi --no-header --no-current --short --from --old-style --ip-addr"),
  last: accounts(
    "data*",
    "-NUM -adFiRwx -f:read -n: -p: -s: -t: --file=read --limit= --fullnames --fulltimes",
  ),
  uptime: PRINTS,
  free: PRINTS,
  vmstat: PRINTS,
  lscpu: gnu(
    "",
    `-abBcJxy -C? -e? -p? -s:read --all --online --bytes --caches=? --offline --json --extended=? --parse=? --sysroot=read --hex
    --physical --output-all`,
  ),
  tty: PRINTS,
  getconf: PRINTS,
  locale: {
    operands: "data*",
    options: "-amckv --all-locales --charmaps --category-name --keyword-name --verbose",
  },
  which: { operands: "data*", options: "-as --all" },
  whereis: { operands: "data*", options: "-bmsufl -B:read -M:read -S:read -g" },
  printenv: { reads: printenvEffects },
  ps: { reads: psEffects, tells: "--version --help -V" },
  pgrep: gnu("data*", PGREP),
  pidof: { operands: "data*", options: "-scnqxz -o: -S: -t -d:" },
  top: {
    operands: "",
    options: "-bcHiS1 -E: -e: -d: -n: -o: -O -p: -s -u: -U: -w? -W!ask",
    tells: "-h -v -V --help --version",
    // Without -b it takes commands from the terminal, to end processes too.
    also: (use) => (given(use, "-b") ? [] : [{ kind: "process", what: use.program }]),
  },
  hostname: {
    operands: "data?",
    options: `-sfdiIya -A!network -F:read!system -b!system --short --fqdn --long --domain --ip-address --all-ip-addresses --yp --nis
      --alias --all-fqdns!network --file=read!system --boot!system`,
    also: (use) => outside({ ...use, args: use.operands }, () => false, "system"),
  },
  stty: {
    operands: "data*",
    options: "-a -g -F:!process --all --save --file=!process",
    also: changesTerminal,
  },
};

/** Any operand but `size` and `speed` changes the terminal, which outlives the command. */
function changesTerminal({ operands, program }: Use): readonly Found[] {
  return operands
    .filter(({ value }) => value !== "size" && value !== "speed")
    .map(({ span }) => ({ kind: "process", what: program, span }));
}
