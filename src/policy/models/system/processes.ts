import type { Fixed, Found, Model, Use } from "../model.ts";
import { always } from "../plain.ts";
import { fixedEffect } from "../roles.ts";
import { inputEffects } from "../shell/code.ts";

const LISTS = "-l -L --list --table --version --help -V";

const UNIT_READS = new Set([
  "is-active",
  "is-enabled",
  "is-failed",
  "list-units",
  "list-unit-files",
  "list-timers",
  "list-sockets",
  "list-jobs",
  "list-dependencies",
  "is-system-running",
  "get-default",
]);
const POWER = new Set([
  "poweroff",
  "reboot",
  "halt",
  "suspend",
  "hibernate",
  "hybrid-sleep",
  "suspend-then-hibernate",
  "kexec",
  "soft-reboot",
  "rescue",
  "emergency",
  "default",
  "isolate",
  "exit",
  "switch-root",
  "set-default",
]);

/** Programs that act on processes, now or later. */
export const PROCESSES: Readonly<Record<string, Model>> = {
  kill: { tells: LISTS, reads: (use) => ended(use, /^(?:%\S*|[2-9]|[1-9]\d+)$/) },
  killall: { tells: LISTS, reads: (use) => ended(use, PROGRAM) },
  killall5: always("process"),
  pkill: { tells: "--version --help -V", reads: (use) => ended(use, PROGRAM) },
  skill: always("process", LISTS),
  snice: always("process"),
  xkill: always("process"),
  renice: always("process", "--version --help -V"),
  fuser: { tells: "-V -l --version --help", reads: (use) => ended(use, /^\d+(?:\/tcp|\/udp)?$/) },
  service: always("process", "--version --help --status-all"),
  wall: always("process"),
  write: always("process"),
  mesg: always("process"),
  systemctl: {
    operands: "data*",
    options: `-alq -t: -p: -n: -o: --user --system --no-pager --no-legend --all --full --quiet --plain --failed --type= --state=
      --property= --lines= --output= --now --force!system -f!system -H:host --host=host -M:!ask --machine=!ask --root=!ask`,
    also: unitEffects,
  },
  journalctl: {
    operands: "data*",
    options: `-aefmkqrxlb -n? -o: -p: -t: -u: -g: -S: -U: -c: -D:read --file=read --root=read --no-pager --pager-end --follow --lines=?
      --output= --priority= --unit= --user-unit= --identifier= --grep= --since= --until= --boot=? --dmesg --reverse --utc
      --no-hostname --catalog --quiet --list-boots --disk-usage --user --system --vacuum-size=!system --vacuum-time=!system
      --vacuum-files=!system --rotate!system --flush!system --sync --header`,
    also: () => [{ kind: "read", path: "/var/log/journal" }],
  },
  logger: {
    operands: "data*",
    options: `-edis -t: -p: -f:read -n:host -P: -T -u: -S: --tag= --priority= --file=read --server=host --port= --tcp --udp --socket=
      --id=? --stderr --no-act --rfc3164 --rfc5424=? --size= --journald=?read`,
    also: () => [{ kind: "write", path: "/var/log/syslog" }],
  },
  crontab: {
    operands: "read?",
    options: "-l -r -e -i -u: -n -T",
    also: ({ options }) => [
      {
        kind: options.some(({ name }) => name === "-l") ? "read" : "write",
        path: "/var/spool/cron/crontabs",
      },
    ],
  },
  at: { operands: "data*", options: "-mMlbdrvVc -q: -f:loads -t:", also: laterEffects },
  batch: { operands: "data*", options: "-mMvV -q: -f:loads", also: laterEffects },
  atrm: always("process"),
  atq: always("process"),
};

/** What a search for processes looks for: programs by their name, and not those that keep the box. */
const PROGRAM = /^(?!.*(?:harness|runner|init|docker))[\w ./:+=-]*[A-Za-z]{2}[\w ./:+=-]*$/i;

/** Processes of the box are its own; what keeps the box alive is none that may be named. */
function ended(use: Use, names: RegExp): readonly Found[] {
  const signal = /^-(?:\d+|[A-Z]+\d?|[fnoxeiqv]+|-[a-z-]+(?:=\w+)?|s|P)$/;
  const inside = use.args.every(
    ({ kind, value }, at) =>
      kind !== "literal" ||
      names.test(value) ||
      (at === 0 && signal.test(value)) ||
      (signal.test(value) && !/^-\d+$/.test(value)) ||
      use.args[at - 1]?.value === "-s",
  );
  return [{ kind: "process", what: use.program, ...(inside ? { inside } : {}) }];
}

/** What stands on stdin runs later, when nobody looks. */
function laterEffects(use: Use): readonly Found[] {
  return [...inputEffects(use), { kind: "write", path: "/var/spool/cron/atjobs" }];
}

function unitEffects(use: Use): readonly Found[] {
  const [verb] = use.operands;
  if (verb === undefined || (verb.kind === "literal" && UNIT_READS.has(verb.value))) return [];
  const fixed: Fixed = POWER.has(verb.value) ? "system" : "process";
  return [fixedEffect(fixed, use.folder, `${use.program} ${verb.value}`)];
}
