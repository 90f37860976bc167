import { ENVIRONMENT, namesSecret } from "../effects/environment.ts";
import { always, fixedEffect, given, gnu, outside, PRINTS, unless } from "./argument-roles.ts";
import type { Arg, Fixed, Found, Model, Use } from "./program-model.ts";
import { inputEffects } from "./shell-builtins.ts";

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

/** Programs that act on disks, power and the kernel, whatever they are told. */
const SYSTEM =
  `shutdown reboot halt poweroff init telinit kexec pivot_root mkfs mke2fs mkdosfs mkswap mkfs.ext2 mkfs.ext3 mkfs.ext4
  mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.msdos mkfs.ntfs mkfs.exfat mkfs.f2fs mkfs.minix mkfs.bfs mkfs.cramfs fdisk sfdisk
  cfdisk gdisk sgdisk parted partprobe partx wipefs blkdiscard badblocks fsck e2fsck xfs_repair swapoff losetup cryptsetup
  dmsetup mdadm umount hdparm nvme sdparm debugfs tune2fs resize2fs e2label lvcreate lvremove lvresize lvextend lvreduce
  vgcreate vgremove vgreduce vgextend pvcreate pvremove zpool zfs btrfs insmod rmmod modprobe depmod setenforce auditctl hwclock
  iptables ip6tables iptables-restore ip6tables-restore nft ufw firewall-cmd tc grub-install update-grub flashrom fwupdmgr eject
  setfont loadkeys efibootmgr rtcwake fstrim fsfreeze`.split(/\s+/);
/** Programs that change who may do what. */
const ACCOUNTS =
  `useradd userdel usermod adduser deluser groupadd groupdel groupmod addgroup delgroup gpasswd newusers passwd
  chpasswd chgpasswd chage chsh chfn visudo vipw vigr pwconv grpconv newgrp`.split(/\s+/);

const named = (names: readonly string[], model: Model): Readonly<Record<string, Model>> =>
  Object.fromEntries(names.map((name) => [name, model]));

/** Programs that act on the machine as a whole. */
export const MACHINE: Readonly<Record<string, Model>> = {
  ...named(SYSTEM, always("system")),
  ...named(ACCOUNTS, always("privilege")),
  mount: unless("-l -v --help --version -V", "system"),
  swapon: unless("-s --show --summary --help --version -V", "system"),
  ldconfig: unless("-p --print-cache -V --version --help", "system"),
  lsmod: unless("", "system"),
  sysctl: {
    operands: "data*",
    options:
      "-abdeNnqrX -A -w!system -p?!system -f?!system --all --deprecated --names --values --write!system --load=?!system --system!system --pattern=",
    also: (use) => sysctlEffects(use),
  },
  dmesg: {
    options: `-deHkLPrTtuxSw -F:read -f: -l: -s: -C!system -c!system -D!system -E!system -n:!system --clear!system
      --read-clear!system --console-off!system --console-on!system --console-level=!system --color=? --ctime --decode --facility=
      --file=read --follow --human --json --kernel --level= --nopager --noescape --notime --raw --reltime --since= --until=
      --show-delta --time-format= --userspace`,
    abbreviates: true,
    also: () => [{ kind: "read", path: "/dev/kmsg" }],
  },
  ip: { reads: (use) => ipEffects(use), tells: "-V -Version help" },
  ifconfig: { reads: (use) => ifconfigEffects(use) },
  route: unless("-n -e -ee -v -4 -6 --numeric", "system"),
  timedatectl: unless("status show timesync-status list-timezones --no-pager -a --all", "system"),
  hostnamectl: unless("status --no-pager --static --transient --pretty", "system"),
  localectl: unless("status list-locales list-keymaps --no-pager", "system"),
  loginctl: unless("list-sessions list-users list-seats --no-pager --no-legend", "system"),
  "update-alternatives": { reads: (use) => alternativesEffects(use) },
};

const IP_OPTION =
  /^-(?:4|6|br|brief|c|color(?:=\w+)?|j|json|p|pretty|o|oneline|s|stats|d|details|h|human|N|Numeric)$/;
const IP_OBJECT =
  /^(?:a|ad|add|addr|address|l|li|link|r|ro|route|ru|rule|n|ne|nei|neigh|neighbor|neighbour|maddr|maddress)$/;
const IP_VERB = /^(?:s|sh|sho|show|l|li|lis|list|ls|lst|g|ge|get)$/;

/** `ip addr show`: any other verb changes the network of the machine, or runs a command in another one. */
function ipEffects(use: Use): readonly Found[] {
  const [object, verb] = use.args.filter(({ value }) => !IP_OPTION.test(value));
  if (object === undefined) return [];
  const vague = [object, verb].find((arg) => arg !== undefined && arg.kind !== "literal");
  if (vague !== undefined) return [use.doubt("word.dynamic", vague)];
  const shows = IP_OBJECT.test(object.value) && (verb === undefined || IP_VERB.test(verb.value));
  return [shows ? { kind: "network", hosts: [] } : { kind: "system", what: use.program }];
}

const INTERFACE = /^-a$|^\w+$/;

const ifconfigEffects = (use: Use): readonly Found[] =>
  outside(use, (word) => use.args.length <= 1 && INTERFACE.test(word), "system");

const ALTERNATIVES = new Set(["--list", "--display", "--query", "--get-selections"]);

const alternativesEffects = (use: Use): readonly Found[] =>
  outside(use, (word) => use.args.length <= 2 && (ALTERNATIVES.has(word) || !word.startsWith("-")), "system");

const sysctlEffects = (use: Use): readonly Found[] => [
  ...use.operands
    .filter(({ kind, value }) => kind === "literal" && value.includes("="))
    .map(({ span }): Found => ({ kind: "system", what: use.program, span })),
  ...use.operands.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg)),
  { kind: "read", path: "/proc/sys" },
];

/** Letters, the last of which may take the next word. */
const UNIX = /^-[AadeNfFHjlLMmPTcwyZ]*[CGgOopqstUu]?$/;
/** A list behind its letter: `-p1,2`, `-opid,cmd`. */
const UNIX_LIST = /^-[AadeNfFHjlLMmPTcwy]*(?:p[\d,]+|[oO][a-z%,=]+)$/;
/** `-aux` is read as `aux` when there is no user x. */
const UNIX_AS_BSD = /^-[aTrfjlcwmux]*$/;
const BSD = /^[aTgrxtXjlsuvcfhSwnmHZLM]*[oOpkUqt]?$/;
const BSD_ENVIRONMENT = /^[a-zA-Z]*e[a-zA-Z]*$/;
const NUMBERS = /^[\d,]+$/;
const LONG =
  /^--(?:(?:forest|deselect|headers?|no-?headers?|cumulative|info|help|version|context)$|(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid|cmdlines?)(?:=|$))/;
const LONG_NEXT =
  /^--(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid)$/;
const TAKES_NEXT = /^-[A-Za-z]*[CGgOopqstUu]$|^[A-Za-z]*[oOpkUqt]$/;

const EVERY = /^-[A-Za-z]*e/;
const OWNER = /^-[A-Za-z]*[GgstuU]$/;

/**
 * Its three kinds of options. Without a dash `e` shows the variables of every process; and all that has a dash is read
 * again as if it had none when there is no such user, group or terminal.
 */
function psEffects(use: Use): readonly Found[] {
  const found: Found[] = [];
  const has = (form: RegExp): boolean => use.args.some(({ value }) => form.test(value));
  if (has(EVERY) && has(OWNER)) found.push({ kind: "read", path: ENVIRONMENT });
  for (let at = 0; at < use.args.length; at += 1) {
    const arg = use.args[at] as Arg;
    found.push(...optionEffects(arg, use));
    if (!TAKES_NEXT.test(arg.value) && !LONG_NEXT.test(arg.value)) continue;
    at += 1;
    const value = use.args[at];
    if (value !== undefined) found.push(...valueEffects(value, use));
  }
  return found;
}

function optionEffects(arg: Arg, use: Use): readonly Found[] {
  const { kind, value, span } = arg;
  if (kind !== "literal") return [use.doubt("word.dynamic", arg)];
  if (value.includes("environ")) return [{ kind: "read", path: ENVIRONMENT, span }];
  if ([UNIX, UNIX_LIST, UNIX_AS_BSD, BSD, NUMBERS, LONG].some((form) => form.test(value))) return [];
  return BSD_ENVIRONMENT.test(value)
    ? [{ kind: "read", path: ENVIRONMENT, span }]
    : [use.doubt("option.unknown", arg)];
}

function valueEffects(arg: Arg, use: Use): readonly Found[] {
  if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
  return arg.value.includes("environ") ? [{ kind: "read", path: ENVIRONMENT, span: arg.span }] : [];
}

/** Variables by name are told, unless the name says that it is a secret; all of them are not. */
function printenvEffects(use: Use): readonly Found[] {
  const names = use.args.filter(({ value }) => value !== "-0" && value !== "--null");
  const doubts = names
    .filter(({ kind, value }) => kind !== "literal" || value.startsWith("-"))
    .map((arg) => use.doubt(arg.kind === "literal" ? "option.unknown" : "word.dynamic", arg));
  const secret = names.length === 0 || names.some(({ value }) => namesSecret(value));
  return secret ? [...doubts, { kind: "read", path: ENVIRONMENT }] : doubts;
}

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
