import { foldPath, isDependencies, protectedFolded } from "../../core/protected-names.ts";
import { processSecret, type SpecialKind, specialKind } from "./devices.ts";
import { type IgnoreRules, isIgnored } from "./ignore-rules.ts";
import { below, isInside, resolvePath } from "./normal-path.ts";
import { namedSecretAt, secretAt } from "./secret-paths.ts";
import { HOME_STARTUP } from "./startup-home.ts";
import { endOfName, findPrefix, isSystem, isTemp, prefixTable, type Rows } from "./system-paths.ts";

export type Op = "read" | "write";

/** Folders are absolute and resolved (`resolvePath("/", …)`). */
export interface Surroundings {
  readonly workspace: string;
  /** Where a relative path starts; the workspace when it is not given. */
  readonly cwd?: string;
  readonly home: string;
  readonly ignore?: IgnoreRules;
}

export type PlaceKind = "workspace" | "temp" | "system" | "home" | "outside" | SpecialKind;

/** Where a path is, by its text alone, and what that means for the operation. */
export interface PlaceOf {
  /** Absolute and resolved. */
  readonly path: string;
  readonly kind: PlaceKind;
  /** Of a read: why it may show a password or a key. */
  readonly secret: string | null;
  /** Of a write: the host program that runs or obeys a file of that name. */
  readonly protected: string | null;
  /** Of a write: why the host runs or obeys it outside of workspaces. */
  readonly trap: string | null;
  readonly ignored: boolean;
}

export function placeOf(path: string, op: Op, around: Surroundings): PlaceOf {
  const at = resolvePath(around.cwd ?? around.workspace, path);
  const kind = kindOf(at, around);
  const inWorkspace = isInside(around.workspace, at);
  const folded = kind === "null-device" ? "/" : foldPath(at);
  const write = op === "write";
  return {
    path: at,
    kind,
    secret: write ? null : secretOf(kind, folded),
    protected: write ? protectedOf(kind, at, folded, around.workspace) : null,
    trap: write ? startupAt(folded, around) : null,
    ignored:
      inWorkspace && around.ignore !== undefined && isIgnored(around.ignore, below(around.workspace, at)),
  };
}

function kindOf(path: string, { workspace, home }: Surroundings): PlaceKind {
  const special = specialKind(path);
  if (special !== undefined) return special === "proc" && isSystem(path) ? "system" : special;
  if (isInside(workspace, path)) return "workspace";
  if (isTemp(path)) return "temp";
  if (isSystem(path)) return "system";
  return isInside(home, path) ? "home" : "outside";
}

function secretOf(kind: PlaceKind, folded: string): string | null {
  if (kind === "null-device") return null;
  return kind === "system" ? namedSecretAt(folded) : (secretAt(folded) ?? processSecret(folded));
}

const GIT = protectedFolded(".git", true)?.why ?? "git";

function protectedOf(kind: PlaceKind, path: string, folded: string, workspace: string): string | null {
  // In temporary folders nothing starts by itself; a workspace there is a workspace.
  if (kind === "temp" || kind === "null-device") return null;
  if (folded.endsWith("/.git") || folded.includes("/.git/")) return GIT;
  return kind === "workspace"
    ? protectedBelow(foldPath(below(workspace, path)), true)
    : protectedBelow(folded.slice(1), false);
}

/** The reason of the first protected name; in folders of other people's code none counts (but git, see above). */
function protectedBelow(folded: string, inWorkspace: boolean): string | null {
  for (let start = 0; start < folded.length;) {
    const end = endOfName(folded, start);
    const name = folded.slice(start, end);
    const entry = protectedFolded(name, inWorkspace && start === 0);
    if (entry !== undefined) return entry.why;
    if (isDependencies(name)) return null;
    start = end + 1;
  }
  return null;
}

/** Where home folders are, from `/`: the first name, and how many names lead to one. */
const HOMES: ReadonlyMap<string, number> = new Map([
  ["home", 2],
  ["users", 2],
  ["root", 1],
]);

/** In the home folder of anybody, since the host's user may have any name in a box. */
function startupAt(folded: string, { home, workspace }: Surroundings): string | null {
  const ownHome = foldPath(home);
  const own = isInside(ownHome, folded) ? startupInHome(below(ownHome, folded)) : null;
  return own ?? startupInHome(belowHome(folded, workspace)) ?? startupOfSystem(below("/", folded));
}

/** What follows a home folder; a workspace that only lies where homes do, as /home/project, is none. */
function belowHome(folded: string, workspace: string): string {
  let end = endOfName(folded, 1);
  const names = HOMES.get(folded.slice(1, end)) ?? 0;
  if (names === 0) return "";
  if (names === 2) end = endOfName(folded, end + 1);
  return end === workspace.length && folded.startsWith(foldPath(workspace)) ? "" : folded.slice(end + 1);
}

const IN_HOME = prefixTable(HOME_STARTUP);

const CRON = ["allow", "deny", "d", "hourly", "daily", "weekly", "monthly"].map((name) => `etc/cron.${name}`);
const RUNLEVELS = [
  "rc.d",
  "rc.local",
  ...["0", "1", "2", "3", "4", "5", "6", "s"].map((level) => `rc${level}.d`),
];

/** What the host runs or obeys for every user. From `/`, and folded. */
export const SYSTEM_STARTUP: Rows = {
  "every shell runs it when it starts": [
    "etc/profile",
    "etc/profile.d",
    "etc/bash.bashrc",
    "etc/bashrc",
    "etc/bash_completion.d",
    "etc/environment",
    "etc/fish",
    "etc/inputrc",
    "etc/zsh",
    "etc/zshenv",
    "etc/zshrc",
    "etc/zprofile",
  ],
  "the system runs it by the clock": [
    ...CRON,
    "etc/crontab",
    "etc/anacrontab",
    "var/spool/cron",
    "var/spool/at",
  ],
  "the system starts it": [
    "etc/systemd",
    "lib/systemd",
    "usr/lib/systemd",
    "usr/local/lib/systemd",
    "run/systemd",
    "etc/init.d",
    "etc/init",
    "etc/inittab",
    ...RUNLEVELS.map((name) => `etc/${name}`),
    "etc/xdg",
    "etc/x11",
    "etc/dbus-1",
    "etc/udev",
    "lib/udev",
    "usr/lib/udev",
    "etc/modprobe.d",
    "etc/modules-load.d",
    "etc/network",
    "etc/networkmanager",
    "etc/update-motd.d",
    "library/launchagents",
    "library/launchdaemons",
    "boot",
  ],
  "every program loads it": ["etc/ld.so.preload", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ld.so.cache"],
  "it says who may do what": [
    "etc/passwd",
    "etc/shadow",
    "etc/group",
    "etc/gshadow",
    "etc/sudoers",
    "etc/sudoers.d",
    "etc/doas.conf",
    "etc/pam.conf",
    "etc/pam.d",
    "etc/security",
    "etc/polkit-1",
    "etc/ssh",
    "etc/nsswitch.conf",
  ],
  "a tool obeys it for every user": [
    "etc/gitconfig",
    "etc/npmrc",
    "etc/pip.conf",
    "etc/apt",
    "etc/docker",
    "etc/containers",
  ],
  "the container engine's door: whoever writes there is root on the host": [
    "run/docker.sock",
    "var/run/docker.sock",
    "run/containerd",
    "run/podman",
    "var/run/podman",
  ],
  "a setting of the kernel": ["sys", "proc/sys", "proc/sysrq-trigger", "proc/acpi"],
};

const IN_SYSTEM = prefixTable(SYSTEM_STARTUP);

/** Why a write there is a trap for the host: by a folded path from a home folder. */
export const startupInHome = (folded: string): string | null => findPrefix(IN_HOME, folded);

/** By a folded path from `/`. */
export const startupOfSystem = (folded: string): string | null => findPrefix(IN_SYSTEM, folded);
