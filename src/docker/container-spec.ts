import { boxEnvironment, ULIMITS } from "../boxes/runner-report.ts";
import type { ContainerCreateOptions } from "dockerode";
import { BOX_HOME } from "../core/ports.ts";
import type { Mode } from "../core/decision.ts";
import { BOX_LABEL, LEASED } from "../boxes/box-record.ts";
import { NETWORK_FOLDER } from "../boxes/network-relay.ts";
import { isInside } from "../core/file-names.ts";

/** What varies between containers; everything else is fixed in this file. */
export interface BoxPlan {
  /** An image's id or tag. */
  readonly image: string;
  readonly argv: readonly string[];
  readonly mode: Mode;
  readonly user: { readonly uid: number; readonly gid: number };
  /** Mounted at its own absolute path, or this volume there; left out for a container that only looks at its image. */
  readonly workspace?: { readonly path: string; readonly volume?: string };
  /** Folders around or beside the workspace: mounted read-only over themselves in every mode, below other mounts. */
  readonly above?: readonly string[];
  /** Protected paths, and git directories outside the workspace; parents before children. Read-only over themselves. */
  readonly readOnly: readonly string[];
  /** Folders above protected paths, mounted over themselves read-write so that they cannot be renamed away. */
  readonly pinned: readonly string[];
  /** An empty host file, mounted over sockets and FIFOs in any mount. */
  readonly covered?: { readonly by: string; readonly paths: readonly string[] };
  /** Replaces all mounts of the workspace: these paths are mounted over themselves, parents before children. */
  readonly over?: readonly { readonly path: string; readonly writable: boolean }[];
  /** Volumes, read-only unless they say otherwise: the runner, for the user's images; what an environment installed. */
  readonly volumes: readonly { readonly volume: string; readonly target: string; readonly writable?: true }[];
  /**
   * The container's file system becomes an image: it runs as root, with the few capabilities that a distribution's
   * packages need, and has no workspace.
   */
  readonly makesImage?: true;
  /**
   * The host's folder with the socket of the filtering proxy, which is the only way out; left out without granted
   * networks. `relayed`: an engine that is not reached by a socket cannot mount the folder; its contents come over the
   * box's own stream.
   */
  readonly network?: { readonly folder: string; readonly relayed?: true };
  /** Host files in place of the image's own lists of users and groups. */
  readonly account?: { readonly passwd: string; readonly group: string };
  /** A host file in place of the engine's own hosts file, which may reveal hosts of this machine. */
  readonly hosts?: string;
  readonly limits: { readonly memory: number; readonly cpus: number | null; readonly pids: number };
  readonly host: HostFacts;
  /** The profile's JSON text. */
  readonly seccomp: string;
  /** Whether the harness talks to the container, which then ends with its standard input and is removed. */
  readonly stdin: boolean;
  /**
   * The box may be frozen: its input outlives the harness; its runner ends it after a silence (sandbox/runner/lease.h).
   */
  readonly lease?: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/** Facts about the engine's machine that a plan depends on. */
export interface HostFacts {
  readonly cpus: number;
  readonly apparmor: boolean;
  readonly runtime: string | null;
  /** Whether the engine's cgroups accept a swappiness: version 1 does. */
  readonly swappiness?: boolean;
  /** Set if the engine is Podman; a rootless one is run by an ordinary user. */
  readonly podman?: { readonly rootless: boolean };
}

/** The exact command line of the container. */
export const commandOf = ({ argv, lease, network }: BoxPlan): string[] => [
  ...argv,
  ...(lease === true ? ["lease"] : []),
  ...(network === undefined ? [] : ["network"]),
];

type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]> & { CgroupnsMode?: string };

const MiB = 2 ** 20;

/** A pure function from the plan to the container: no network, no capabilities, read-only root. */
export function containerSpec(plan: BoxPlan): ContainerCreateOptions & { readonly HostConfig: HostConfig } {
  return {
    Image: plan.image,
    Entrypoint: commandOf(plan),
    Cmd: [],
    User: `${plan.user.uid}:${plan.user.gid}`,
    // Never in the workspace: the runtime resolves this path before the walls are up.
    WorkingDir: "/",
    // Starts empty: no variable of the host is inherited.
    Env: [...boxEnvironment("/dev/null")],
    Hostname: "sandbox",
    NetworkDisabled: isCutOff(plan),
    AttachStdin: plan.stdin,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: plan.stdin,
    StdinOnce: plan.stdin && plan.lease !== true,
    Tty: false,
    StopTimeout: 1,
    Healthcheck: { Test: ["NONE"] },
    // A version without support for frozen boxes does not find them.
    Labels: { ...plan.labels, [BOX_LABEL]: plan.lease === true ? LEASED : "1" },
    HostConfig: {
      ...namespaces(plan),
      ...privileges(plan),
      ...files(plan),
      ...limits(plan),
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      AutoRemove: plan.stdin,
      ...(plan.host.runtime === null ? {} : { Runtime: plan.host.runtime }),
    },
  };
}

const isOpen = (plan: BoxPlan): boolean => plan.mode === "danger-full-access";

/**
 * The container has only its loopback, which the runtime makes. For the network `none` the engine does as much work as
 * for any other network, which took half of a start. But an engine without any network writes no /etc/hosts either, and
 * without that file `localhost` is unknown.
 */
const isCutOff = (plan: BoxPlan): boolean =>
  !isOpen(plan) && plan.hosts !== undefined && plan.host.podman === undefined;

const namespaces = (plan: BoxPlan): HostConfig => ({
  // Without a resolver named here, a box without network would still get the host's.
  ...(isOpen(plan)
    ? { NetworkMode: "bridge" }
    : { NetworkMode: "none", Dns: ["127.0.0.1"], DnsSearch: ["."] }),
  IpcMode: "private",
  PidMode: "",
  UTSMode: "",
  UsernsMode: "",
  CgroupnsMode: "private",
});

const privileges = (plan: BoxPlan): HostConfig => ({
  CapDrop: ["ALL"],
  ...(plan.makesImage === true ? { CapAdd: Object.keys(PACKAGE_CAPABILITIES) } : {}),
  Privileged: false,
  SecurityOpt: [
    "no-new-privileges",
    `seccomp=${plan.seccomp}`,
    ...(plan.host.apparmor ? ["apparmor=docker-default"] : []),
  ],
  MaskedPaths: [...MASKED_PATHS],
  ReadonlyPaths: [...READ_ONLY_PATHS],
});

/** What apt and dpkg do as root: give files owners and modes, become a package's user. Values: the kernel's numbers. */
export const PACKAGE_CAPABILITIES = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, FSETID: 4, SETGID: 6, SETUID: 7 };

/**
 * The engine's own list, and other paths that reveal something of the host. /sys/fs/cgroup stays: runtimes read their
 * limits there. A pressure file takes triggers of anybody, which the whole machine pays for. Nothing below /proc/net is
 * masked: the kernel drops a mount there at the next lookup, and the folder describes only the box itself.
 */
export const MASKED_PATHS: readonly string[] = [
  below(
    "/proc",
    "asound acpi kcore keys key-users latency_stats pressure timer_list timer_stats sched_debug scsi",
  ),
  below("/proc", "cmdline partitions diskstats interrupts kallsyms"),
  below("/sys", "firmware block module kernel class/dmi devices/virtual/dmi devices/virtual/powercap"),
].flat();
export const READ_ONLY_PATHS = below("/proc", "bus fs irq sys sysrq-trigger");

function below(folder: string, names: string): readonly string[] {
  return names.split(" ").map((name) => `${folder}/${name}`);
}

const files = (plan: BoxPlan): HostConfig => ({
  ReadonlyRootfs: !isOpen(plan) && plan.makesImage !== true,
  Tmpfs: scratch(plan),
  ShmSize: Math.min(64 * MiB, Math.floor(plan.limits.memory / 16)),
  Mounts: mountsOf(plan),
});

/** Files here count as memory and outlive their writer: together with ShmSize they stay under half of it. */
function scratch({ limits: { memory }, user: { uid, gid } }: BoxPlan): Record<string, string> {
  const options = (part: number, inodes: number, mode: string): string =>
    `size=${Math.floor(part)},nr_inodes=${inodes},uid=${uid},gid=${gid},mode=${mode}`;
  return {
    "/tmp": `rw,nosuid,nodev,exec,${options(memory / 4, 100_000, "1777")}`,
    [BOX_HOME]: `rw,nosuid,nodev,exec,${options(memory / 8, 100_000, "0700")}`,
    "/run": `rw,nosuid,nodev,noexec,${options(Math.min(4 * MiB, memory / 32), 1000, "0755")}`,
  };
}

/** A sixteenth of the machine, at most half a processor, is left to its user; the kernel's fair share does the rest. */
export const boxProcessors = (processors: number): number => processors - Math.min(0.5, processors / 16);

const limits = ({ limits: { memory, cpus, pids }, host }: BoxPlan): HostConfig => ({
  Memory: memory,
  MemorySwap: memory,
  ...(host.swappiness === true ? { MemorySwappiness: 0 } : {}),
  NanoCpus: Math.round((cpus ?? boxProcessors(host.cpus)) * 1e9),
  CpuShares: 512,
  PidsLimit: pids,
  OomScoreAdj: 500,
  Ulimits: Object.entries(ULIMITS).map(([Name, most]) => ({ Name, Soft: most, Hard: most })),
  Sysctls: SYSCTLS,
});

/**
 * System V segments are removed with their last user, even one that was killed. Message queues and semaphores outlive
 * their users: there may be so few that their contents leave the box's memory to its programs.
 */
const SYSCTLS: Readonly<Record<string, string>> = {
  "kernel.shm_rmid_forced": "1",
  "kernel.msgmni": "32",
  "kernel.sem": "250 32000 32 128",
};

type Mount = NonNullable<NonNullable<ContainerCreateOptions["HostConfig"]>["Mounts"]>[number];
type MountParts = Pick<
  BoxPlan,
  | "mode"
  | "workspace"
  | "above"
  | "over"
  | "covered"
  | "readOnly"
  | "pinned"
  | "volumes"
  | "account"
  | "hosts"
  | "network"
>;

/** The host paths a container sees. Order matters: a later mount covers an earlier one. */
export function mountsOf(plan: MountParts): Mount[] {
  const { workspace } = plan;
  const extra = [
    ...plan.volumes.map(({ volume, target, writable }) => fromVolume(volume, target, writable !== true)),
    ...Object.entries(plan.account ?? {}).map(([name, file]) => bound(file, `/etc/${name}`, true)),
    ...(plan.hosts === undefined ? [] : [bound(plan.hosts, "/etc/hosts", true)]),
    ...(plan.network === undefined || plan.network.relayed === true
      ? []
      : [bound(plan.network.folder, NETWORK_FOLDER, true)]),
  ];
  if (plan.over !== undefined) {
    const own = plan.over.map(({ path, writable }) => overItself(path, !writable));
    return [
      ...own,
      ...covers(
        plan,
        plan.over.map(({ path }) => path),
      ),
      ...extra,
    ];
  }
  if (workspace === undefined) return extra;
  const { path, volume } = workspace;
  const frozen = plan.mode === "read-only" || protectedPaths(plan).includes(path);
  const base = volume === undefined ? overItself(path, frozen) : fromVolume(volume, path, frozen);
  const readOnlyPaths = protectedPaths(plan).filter((one) => one !== path);
  const pins = pinnedPaths(plan).filter((one) => one !== path);
  const above = plan.above ?? [];
  return [
    ...above.map((one) => overItself(one, true)),
    base,
    ...pins.map((one) => overItself(one, false)),
    ...readOnlyPaths.map((one) => overItself(one, true)),
    ...covers(plan, [...above, path, ...readOnlyPaths]),
    ...extra,
  ];
}

/** Full-access mode protects nothing. */
const protectedPaths = ({ mode, readOnly }: MountParts): readonly string[] =>
  mode === "danger-full-access" ? [] : [...new Set(readOnly)];

/** A pin makes its path writable, so there is none in a read-only box, and none on or below a protected path. */
function pinnedPaths(plan: MountParts): readonly string[] {
  if (plan.mode !== "workspace-write") return [];
  const guarded = protectedPaths(plan);
  return [...new Set(plan.pinned)].filter((pin) => !guarded.some((path) => isInside(path, pin)));
}

/** Mounted last, because they lie inside the other mounts. A path that no mount shows needs no cover. */
function covers({ mode, covered }: MountParts, shown: readonly string[]): readonly Mount[] {
  if (covered === undefined || mode === "danger-full-access") return [];
  const { by, paths } = covered;
  const visible = paths.filter((one) => shown.some((folder) => isInside(folder, one)));
  return visible.map((one) => ({ ...overItself(one, true), Source: by }));
}

/** Not recursive: with older engines a read-only bind would leave mounts below it writable. */
const overItself = (path: string, readOnly: boolean): Mount => bound(path, path, readOnly);

const bound = (file: string, target: string, readOnly: boolean): Mount => ({
  Type: "bind",
  Source: file,
  Target: target,
  ReadOnly: readOnly,
  BindOptions: { Propagation: "rprivate", NonRecursive: true } as NonNullable<Mount["BindOptions"]>,
});

const fromVolume = (volume: string, target: string, readOnly: boolean): Mount => ({
  Type: "volume",
  Source: volume,
  Target: target,
  ReadOnly: readOnly,
  VolumeOptions: { NoCopy: true } as NonNullable<Mount["VolumeOptions"]>,
});
