/** Programs about the machine: processes, services, addresses, and containers that get access to it. */
import { ENVIRONMENT, namesSecret } from "../effects/environment.ts";
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import { fixedEffect, hasOption, inputEffects, outside, part, valuesOf } from "./argument-roles.ts";
import { copied, remoteName } from "./network-programs.ts";
import type { Arg, Fixed, FoundEffect, UseReader, Use } from "./program-model.ts";

const UNIT_REPORTS = new Set(PROGRAM_WORDS.systemctl.reports);
const POWER = new Set(PROGRAM_WORDS.systemctl.power);
/** Processes that may be addressed by name: programs, except those that keep the box running. */
const KILLED_PROGRAM = /^(?!.*(?:harness|runner|init|docker))[\w ./:+=-]*[A-Za-z]{2}[\w ./:+=-]*$/i;

/** Processes of the box are its own, except those that keep the box running. */
function endedProcesses(use: Use, names: RegExp): readonly FoundEffect[] {
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

/** Commands from stdin run later, unattended. */
function laterEffects(use: Use): readonly FoundEffect[] {
  const shows = hasOption(use, "-l", "-c") && use.options.every(({ name }) => /^-[lcqv]$/.test(name));
  if (shows) return [{ kind: "read", path: "/var/spool/cron/atjobs" }];
  return [...inputEffects(use), { kind: "write", path: "/var/spool/cron/atjobs" }];
}

function unitEffects(use: Use): readonly FoundEffect[] {
  const [verb] = use.operands;
  if (verb === undefined || (verb.kind === "literal" && UNIT_REPORTS.has(verb.value))) return [];
  const fixed: Fixed = POWER.has(verb.value) ? "system" : "process";
  return [fixedEffect(fixed, use.folder, `${use.program} ${verb.value}`)];
}

const IP_OPTION =
  /^-(?:4|6|br|brief|c|color(?:=\w+)?|j|json|p|pretty|o|oneline|s|stats|d|details|h|human|N|Numeric)$/;
const IP_OBJECT =
  /^(?:a|ad|add|addr|address|l|li|link|r|ro|route|ru|rule|n|ne|nei|neigh|neighbor|neighbour|maddr|maddress)$/;
const HELPS = /^(?:help|-?-help|-V|-Version)$/;
const IP_VERB = /^(?:s|sh|sho|show|l|li|lis|list|ls|lst|g|ge|get)$/;

/** `ip addr show`: any other verb changes the network of the machine, or runs a command in another namespace. */
function ipEffects(use: Use): readonly FoundEffect[] {
  const [object, verb] = use.args.filter(({ value }) => !IP_OPTION.test(value));
  if (object === undefined || [object, verb].some((arg) => HELPS.test(arg?.value ?? ""))) return [];
  const vague = [object, verb].find((arg) => arg !== undefined && arg.kind !== "literal");
  if (vague !== undefined) return [use.doubt("word.dynamic", vague)];
  const shows = IP_OBJECT.test(object.value) && (verb === undefined || IP_VERB.test(verb.value));
  return [shows ? { kind: "network", hosts: [], inside: true } : { kind: "system", what: use.program }];
}

const IFCONFIG_READS = /^-a$|^\w+$/;

const ifconfigEffects = (use: Use): readonly FoundEffect[] =>
  outside(use, (word) => use.args.length <= 1 && IFCONFIG_READS.test(word), "system");

const ALTERNATIVES_READS = new Set(["--list", "--display", "--query", "--get-selections"]);

const alternativesEffects = (use: Use): readonly FoundEffect[] =>
  outside(
    use,
    (word) => use.args.length <= 2 && (ALTERNATIVES_READS.has(word) || !word.startsWith("-")),
    "system",
  );

const sysctlEffects = (use: Use): readonly FoundEffect[] => [
  ...use.operands
    .filter(({ kind, value }) => kind === "literal" && value.includes("="))
    .map(({ span }): FoundEffect => ({ kind: "system", what: use.program, span })),
  ...use.operands.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg)),
  { kind: "read", path: "/proc/sys" },
];

/** Bundles of letters, the last of which may take the next word. */
const PS_UNIX = /^-[AadeNfFHjlLMmPTcwyZ]*[CGgOopqstUu]?$/;
/** A letter with its list: `-p1,2`, `-opid,cmd`. */
const PS_UNIX_LIST = /^-[AadeNfFHjlLMmPTcwy]*(?:p[\d,]+|[oO][a-z%,=]+)$/;
/** `-aux` is read as `aux` when there is no user x. */
const PS_UNIX_AS_BSD = /^-[aTrfjlcwmux]*$/;
const PS_BSD = /^[aTgrxtXjlsuvcfhSwnmHZLM]*[oOpkUqt]?$/;
const PS_BSD_ENVIRONMENT = /^[a-zA-Z]*e[a-zA-Z]*$/;
const PS_NUMBERS = /^[\d,]+$/;
const PS_LONG =
  /^--(?:(?:forest|deselect|headers?|no-?headers?|cumulative|info|help|version|context)$|(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid|cmdlines?)(?:=|$))/;
const PS_LONG_NEXT =
  /^--(?:sort|pid|ppid|user|User|group|Group|format|cols|columns|width|rows|lines|tty|sid|quick-pid)$/;
const PS_TAKES_NEXT = /^-[A-Za-z]*[CGgOopqstUu]$|^[A-Za-z]*[oOpkUqt]$/;

const PS_EVERY = /^-[A-Za-z]*e/;
const PS_OWNER = /^-[A-Za-z]*[GgstuU]$/;

/**
 * `ps` has three kinds of options. Without a dash `e` shows the variables of every process, and an option with a dash is
 * read again without it when there is no such user, group or terminal.
 */
function psEffects(use: Use): readonly FoundEffect[] {
  const found: FoundEffect[] = [];
  const has = (form: RegExp): boolean => use.args.some(({ value }) => form.test(value));
  if (has(PS_EVERY) && has(PS_OWNER)) found.push({ kind: "read", path: ENVIRONMENT });
  for (let at = 0; at < use.args.length; at += 1) {
    const arg = use.args[at] as Arg;
    found.push(...psOption(arg, use));
    if (!PS_TAKES_NEXT.test(arg.value) && !PS_LONG_NEXT.test(arg.value)) continue;
    at += 1;
    const value = use.args[at];
    if (value !== undefined) found.push(...psValue(value, use));
  }
  return found;
}

function psOption(arg: Arg, use: Use): readonly FoundEffect[] {
  const { kind, value, span } = arg;
  if (kind !== "literal") return [use.doubt("word.dynamic", arg)];
  if (value.includes("environ")) return [{ kind: "read", path: ENVIRONMENT, span }];
  if ([PS_UNIX, PS_UNIX_LIST, PS_UNIX_AS_BSD, PS_BSD, PS_NUMBERS, PS_LONG].some((form) => form.test(value)))
    return [];
  return PS_BSD_ENVIRONMENT.test(value)
    ? [{ kind: "read", path: ENVIRONMENT, span }]
    : [use.doubt("option.unknown", arg)];
}

function psValue(arg: Arg, use: Use): readonly FoundEffect[] {
  if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
  return arg.value.includes("environ") ? [{ kind: "read", path: ENVIRONMENT, span: arg.span }] : [];
}

/** Prints variables by name, unless the name says that it is a secret; without a name it prints all. */
function printenvEffects(use: Use): readonly FoundEffect[] {
  const names = use.args.filter(({ value }) => value !== "-0" && value !== "--null");
  const doubts = names
    .filter(({ kind, value }) => kind !== "literal" || value.startsWith("-"))
    .map((arg) => use.doubt(arg.kind === "literal" ? "option.unknown" : "word.dynamic", arg));
  const secret = names.length === 0 || names.some(({ value }) => namesSecret(value));
  return secret ? [...doubts, { kind: "read", path: ENVIRONMENT }] : doubts;
}

/** Any operand but `size` and `speed` changes the terminal beyond the command. */
function changesTerminal({ operands, program }: Use): readonly FoundEffect[] {
  return operands
    .filter(({ value }) => value !== "size" && value !== "speed")
    .map(({ span }) => ({ kind: "process", what: program, span }));
}

/**
 * Parts of this machine that a container gets. A container with all files or the engine's socket controls the machine.
 */
const machineAccess = (use: Use): readonly FoundEffect[] => [...isolationLoss(use), ...mounts(use)];

/** Options that remove a container's isolation, with the values that do. */
const ISOLATION: Readonly<Record<string, RegExp>> = {
  "--privileged": /^(?!false$)/i,
  "--use-api-socket": /^(?!false$)/i,
  "--cap-add": /^(?:cap_)?(?:all|sys_admin|sys_module|sys_ptrace|sys_rawio|dac_read_search|bpf)$/i,
  "--device": /^\/dev\/(?:sd|nvme|vd|xvd|hd|mem|kmem|port|dm-|mapper|loop|disk)/,
};

function isolationLoss(use: Use): readonly FoundEffect[] {
  return use.options.flatMap(({ name, value, span }) => {
    if (!Object.hasOwn(ISOLATION, name) || ISOLATION[name]?.test(value?.value ?? "") !== true) return [];
    const what = value === null ? `${use.program} ${name}` : `${use.program} ${name} ${value.value}`;
    return [{ kind: "privilege", what, span } as const];
  });
}

interface Mount {
  readonly from: Arg;
  readonly readOnly: boolean;
}

function mounts(use: Use): readonly FoundEffect[] {
  const all = [
    ...valuesOf(use, "-v", "--volume").flatMap(ofVolume),
    ...valuesOf(use, "--mount").flatMap(ofMount),
  ];
  return all.flatMap(({ from, readOnly }): readonly FoundEffect[] => {
    const path = use.place(from);
    if (path !== null && givesMachine(path))
      return [{ kind: "privilege", what: `${use.program} with ${path}`, span: from.span }];
    return [{ kind: readOnly ? "read" : "write", path, span: from.span }];
  });
}

/** The whole file system, or what controls the engine. */
const givesMachine = (path: string): boolean =>
  MACHINE_FOLDERS.has(path) || /\/(?:docker|containerd|podman|crio|buildkitd)\.sock$/.test(path);

const MACHINE_FOLDERS = new Set(["/", "/proc", "/sys", "/dev", "/run", "/var/run"]);

/** `/path:/inside:options`; a name without a slash is a volume of the engine. */
function ofVolume(value: Arg): readonly Mount[] {
  const [from = "", ...rest] = value.value.split(":");
  const isName = value.kind === "literal" && !from.includes("/") && !/^\.{1,2}$/.test(from);
  if (rest.length === 0 || isName) return [];
  return [{ from: part(value, from), readOnly: rest.slice(1).some((each) => /(?:^|,)ro(?:,|$)/.test(each)) }];
}

/** `type=bind,source=/path,target=/inside,readonly`. */
function ofMount(value: Arg): readonly Mount[] {
  const fields = value.value.split(",");
  if (!fields.includes("type=bind")) return [];
  const from = fields.find((field) => /^(?:source|src)=/.test(field));
  if (from === undefined) return [];
  const readOnly = fields.some((field) => /^(?:readonly|ro)(?:=true|=1)?$/.test(field));
  return [{ from: part(value, from.slice(from.indexOf("=") + 1)), readOnly }];
}

/** The readers of this file, by the names that rows use. */
export const SYSTEM_READERS: Readonly<Record<string, UseReader>> = {
  /** Commands about users read the system's accounts. */
  // On its own, the command tells what everybody in the box knows; inside of another command, it is the usual probe of
  // whether a way to run commands works.
  "own account": ({ nested, span }) => (nested ? [{ kind: "read", path: "/etc/passwd", span }] : []),
  "system accounts": ({ span }) => [{ kind: "read", path: "/etc/passwd", span }],
  printenv: printenvEffects,
  ps: psEffects,
  top: (use) => (hasOption(use, "-b") ? [] : [{ kind: "process", what: use.program }]),
  hostname: (use) => outside(use, () => false, "system", use.operands),
  stty: changesTerminal,
  kill: (use) => endedProcesses(use, /^(?:%\S*|[2-9]|[1-9]\d+)$/),
  killall: (use) => endedProcesses(use, KILLED_PROGRAM),
  fuser: (use) => endedProcesses(use, /^\d+(?:\/(?:tcp|udp))?$|^-[kinsv]+$|^(?:tcp|udp)$/),
  systemctl: unitEffects,
  crontab: ({ options }) => [
    { kind: options.some(({ name }) => name === "-l") ? "read" : "write", path: "/var/spool/cron/crontabs" },
  ],
  at: laterEffects,
  sysctl: (use) => sysctlEffects(use),
  ip: (use) => ipEffects(use),
  ifconfig: (use) => ifconfigEffects(use),
  "update-alternatives": (use) => alternativesEffects(use),
  /** Without arguments it renews the system's cache of libraries. */
  ldconfig: (use) =>
    use.args.length === 0
      ? [fixedEffect("ask", use.folder, use.program)]
      : outside(use, (each) => /^-[pvN]+$|^--(?:print-cache|verbose)$/.test(each), "system"),
  "container rights": machineAccess,
  "docker cp": (use) => copied(use, (arg) => (arg.value === "-" ? "" : remoteName(arg))),
};
