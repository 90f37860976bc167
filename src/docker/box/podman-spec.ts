import { isDeepStrictEqual } from "node:util";
import { type BoxPlan, commandOf, containerSpec, mountsOf, PACKAGE_CAPABILITIES } from "../container-spec.ts";
import { asList, type Fields, fieldsOf } from "../../core/raw-data.ts";
import { ULIMITS } from "../../boxes/runner-report.ts";

/**
 * The plan of a box in the terms of Podman's own interface, and the comparison of what Podman makes of it with the plan.
 */

/** Values that depend on this machine rather than on the plan. */
interface PodmanOptions {
  /** A file that the engine reads the seccomp profile from, because it takes no text. */
  readonly seccompFile: string;
  /**
   * The most processes of one user on the whole host: the engine sets this limit itself, to a number that it may not be
   * allowed to set.
   */
  readonly nproc: number;
}

/** More than any box has, and no more than any service of the engine may set. */
export const MAX_PROCESSES = 32_768;

/**
 * The plan in the terms of Podman's own interface. The interface that Podman shares with Docker takes no profile as
 * text, loses read-only and masked paths, and adds settings that were not requested.
 */
export function podmanSpec(plan: BoxPlan, { seccompFile, nproc }: PodmanOptions): Fields {
  const { HostConfig: host, ...config } = containerSpec(plan);
  return {
    image: plan.image.replace(/^sha256:/, ""),
    entrypoint: config.Entrypoint,
    command: [],
    user: config.User,
    work_dir: config.WorkingDir,
    hostname: config.Hostname,
    env: Object.fromEntries((config.Env ?? []).map(pair)),
    labels: config.Labels,
    stdin: config.OpenStdin,
    terminal: false,
    remove: host.AutoRemove,
    restart_policy: "no",
    stop_timeout: config.StopTimeout,
    healthconfig: config.Healthcheck,
    log_configuration: { driver: "none" },
    // Keeps out what the engine would add from the host or from its own defaults.
    env_host: false,
    httpproxy: false,
    systemd: "false",
    manage_password: false,
    image_volume_mode: "ignore",
    // The engine's own hosts file lists all hosts of this machine.
    use_image_hosts: true,
    ...namespaces(plan),
    privileged: false,
    cap_drop: host.CapDrop,
    cap_add: host.CapAdd ?? [],
    no_new_privileges: true,
    seccomp_profile_path: seccompFile,
    mask: host.MaskedPaths,
    read_only_filesystem: host.ReadonlyRootfs,
    mounts: [...Object.entries(host.Tmpfs ?? {}).map(scratch), ...binds(host.Mounts ?? [])],
    volumes: (host.Mounts ?? []).filter(({ Type }) => Type === "volume").map(volume),
    shm_size: host.ShmSize,
    sysctl: host.Sysctls,
    r_limits: [
      ...(host.Ulimits ?? []).map(({ Name, Soft, Hard }) => ({ type: Name, soft: Soft, hard: Hard })),
      { type: "nproc", soft: nproc, hard: nproc },
    ],
    oom_score_adj: host.OomScoreAdj,
    resource_limits: resources(host),
    ...(plan.host.runtime === null ? {} : { oci_runtime: plan.host.runtime }),
  };
}

const pair = (line: string): readonly [string, string] => {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
};

const PRIVATE = { nsmode: "private" };

/** With rootless Podman the caller has the same uid inside, because files of the workspace belong to the caller. */
const namespaces = ({ host }: BoxPlan): Fields => ({
  netns: { nsmode: "none" },
  ipcns: PRIVATE,
  pidns: PRIVATE,
  utsns: PRIVATE,
  cgroupns: PRIVATE,
  ...(host.podman?.rootless === true ? { userns: { nsmode: "keep-id" } } : {}),
});

type HostConfig = ReturnType<typeof containerSpec>["HostConfig"];
type Mount = NonNullable<HostConfig["Mounts"]>[number];

/**
 * The engine has no words for owner and number of files: appended to the size they go to the kernel unchanged, and the
 * box reports whether they hold.
 */
function scratch([destination, text]: [string, string]): Fields {
  const words = text.split(",");
  const sized = words.filter((word) => /^(?:size|nr_inodes|uid|gid)=/.test(word));
  const others = words.filter((word) => !sized.includes(word));
  return {
    destination,
    type: "tmpfs",
    source: "tmpfs",
    options: [...others, "notmpcopyup", sized.join(",")],
  };
}

const binds = (mounts: readonly Mount[]): readonly Fields[] =>
  mounts
    .filter(({ Type }) => Type === "bind")
    .map(({ Source, Target, ReadOnly }) => ({
      destination: Target,
      source: Source,
      type: "bind",
      options: [ReadOnly === true ? "ro" : "rw", "bind", "rprivate"],
    }));

const volume = ({ Source, Target, ReadOnly }: Mount): Fields => ({
  Name: Source,
  Dest: Target,
  Options: [ReadOnly === true ? "ro" : "rw", "nocopy", "rprivate"],
});

/** In microseconds. */
export const PERIOD = 100_000;

export const quotaOf = (nanoCpus: number): number => Math.round((nanoCpus / 1e9) * PERIOD);

const resources = (host: HostConfig): Fields => ({
  memory: {
    limit: host.Memory,
    swap: host.MemorySwap,
    ...(host.MemorySwappiness === undefined ? {} : { swappiness: host.MemorySwappiness }),
  },
  cpu: { shares: host.CpuShares, quota: quotaOf(host.NanoCpus ?? 0), period: PERIOD },
  pids: { limit: host.PidsLimit },
});

/**
 * Compares what the engine hands to its runtime (the bundle's config.json, in OCI's form) with the plan: one line for
 * each deviation. Fields that the plan does not name must be empty, and unknown fields are deviations.
 */
export function ociDifferences(plan: BoxPlan, config: unknown): readonly string[] {
  const { process, root, linux, mounts, annotations, ...others } = fieldsOf(config);
  return [
    ...unknownLines("", others, ["ociVersion", "hostname"]),
    ...annotationLines(fieldsOf(annotations)),
    ...processLines(plan, fieldsOf(process)),
    ...same(
      "root.readonly",
      fieldsOf(root)["readonly"] === true,
      containerSpec(plan).HostConfig.ReadonlyRootfs,
    ),
    ...linuxLines(plan, fieldsOf(linux)),
    ...mountLines(plan, asList(mounts).map(fieldsOf)),
  ];
}

const valueText = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, 200)}… (${text.length} characters)` : text;
};

const same = (name: string, found: unknown, planned: unknown): readonly string[] =>
  isDeepStrictEqual(found, planned) ? [] : [`${name} is ${valueText(found)}, planned ${valueText(planned)}`];

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "" || value === 0) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

const unknownLines = (where: string, found: Fields, known: readonly string[]): readonly string[] =>
  Object.entries(found)
    .filter(([name, value]) => !known.includes(name) && !isEmpty(value))
    .map(([name, value]) => `${where}${name} is ${valueText(value)}, planned nothing`);

/** Notes of the engine to itself; others instruct the runtime, for example to keep the groups of whoever starts it. */
const NOTES =
  /^(?:io\.podman\.annotations\.|io\.container\.manager$|io\.kubernetes\.cri-o\.Created$|org\.opencontainers\.image\.)/;

const annotationLines = (found: Fields): readonly string[] =>
  Object.keys(found)
    .filter((name) => !NOTES.test(name))
    .map((name) => `annotations has ${name}`);

const PROCESS = "user args env cwd capabilities rlimits noNewPrivileges oomScoreAdj".split(" ");
/** Walls that a machine may have besides; the engine chooses their names. */
const LABELS = ["selinuxLabel", "apparmorProfile"];

function processLines(plan: BoxPlan, found: Fields): readonly string[] {
  const { uid, gid, additionalGids } = fieldsOf(found["user"]);
  const profile = found["apparmorProfile"];
  const unconfined = profile === undefined || profile === "" || profile === "unconfined";
  return [
    ...unknownLines("process.", found, [...PROCESS, ...LABELS]),
    ...same("process.args", found["args"], commandOf(plan)),
    ...same("process.cwd", found["cwd"], "/"),
    ...same("process.user", { uid, gid }, plan.user),
    ...same(
      "process.user.additionalGids",
      asList(additionalGids).filter((one) => one !== plan.user.gid),
      [],
    ),
    ...same("process.noNewPrivileges", found["noNewPrivileges"], true),
    ...same("process.oomScoreAdj", found["oomScoreAdj"], containerSpec(plan).HostConfig.OomScoreAdj),
    ...capabilityLines(plan, fieldsOf(found["capabilities"])),
    ...rlimitLines(asList(found["rlimits"]).map(fieldsOf)),
    ...(plan.host.apparmor && unconfined ? ["process.apparmorProfile is nothing, planned one"] : []),
  ];
}

function capabilityLines({ makesImage }: BoxPlan, found: Fields): readonly string[] {
  const allowed = makesImage === true ? Object.keys(PACKAGE_CAPABILITIES).map((name) => `CAP_${name}`) : [];
  return Object.entries(found).flatMap(([set, names]) =>
    asList(names)
      .filter((name) => !allowed.includes(String(name)))
      .map((name) => `process.capabilities.${set} has ${String(name)}`),
  );
}

/** The engine itself limits the number of a user's processes. */
function rlimitLines(found: readonly Fields[]): readonly string[] {
  const there = new Map(found.map(({ type, soft, hard }) => [String(type), { soft, hard }]));
  const wanted = Object.entries(ULIMITS).map(
    ([name, most]) => [`RLIMIT_${name.toUpperCase()}`, most] as const,
  );
  const known = new Set(["RLIMIT_NPROC", ...wanted.map(([name]) => name)]);
  return [
    ...wanted.flatMap(([name, most]) =>
      same(`process.rlimits.${name}`, there.get(name), { soft: most, hard: most }),
    ),
    ...[...there.keys()].filter((name) => !known.has(name)).map((name) => `process.rlimits has ${name}`),
  ];
}

const LINUX =
  "sysctl resources namespaces seccomp maskedPaths readonlyPaths cgroupsPath uidMappings gidMappings mountLabel".split(
    " ",
  );
const NAMESPACES = ["cgroup", "ipc", "mount", "network", "pid", "uts"];

function linuxLines(plan: BoxPlan, found: Fields): readonly string[] {
  const { MaskedPaths = [], ReadonlyPaths = [], Sysctls = {} } = containerSpec(plan).HostConfig;
  const masked = asList(found["maskedPaths"]);
  const covered = new Set([...masked, ...asList(found["readonlyPaths"])]);
  const rootless = plan.host.podman?.rootless === true;
  const namespaces = asList(found["namespaces"]).map(fieldsOf);
  return [
    ...unknownLines("linux.", found, LINUX),
    ...same(
      "linux.namespaces",
      namespaces.map(({ type }) => String(type)).toSorted(),
      (rootless ? [...NAMESPACES, "user"] : NAMESPACES).toSorted(),
    ),
    ...namespaces
      .filter(({ path }) => !isEmpty(path))
      .map(({ type, path }) => `linux.namespaces: ${String(type)} is another's: ${valueText(path)}`),
    ...(rootless ? [] : unknownLines("linux.", { uid: found["uidMappings"], gid: found["gidMappings"] }, [])),
    ...MaskedPaths.filter((path) => !masked.includes(path)).map((path) => `${path} is not masked`),
    ...ReadonlyPaths.filter((path) => !covered.has(path)).map((path) => `${path} is not read-only`),
    ...sysctlLines(Sysctls, fieldsOf(found["sysctl"])),
    ...resourceLines(plan, fieldsOf(found["resources"])),
    ...seccompLines(plan.seccomp, fieldsOf(found["seccomp"])),
  ];
}

/** Concerns only the box's own network, where nothing is: who may open a socket for echo requests. */
const OWN_SYSCTL = "net.ipv4.ping_group_range";

const sysctlLines = (planned: Fields, found: Fields): readonly string[] => [
  ...Object.entries(planned).flatMap(([name, value]) => same(`linux.sysctl.${name}`, found[name], value)),
  ...unknownLines("linux.sysctl.", found, [...Object.keys(planned), OWN_SYSCTL]),
];

function resourceLines(plan: BoxPlan, found: Fields): readonly string[] {
  const { HostConfig: host } = containerSpec(plan);
  const { limit, swap, swappiness, ...memory } = fieldsOf(found["memory"]);
  const { shares, quota, period, ...cpu } = fieldsOf(found["cpu"]);
  const at = "linux.resources.";
  return [
    ...unknownLines(at, found, ["devices", "memory", "cpu", "pids"]),
    ...unknownLines(`${at}memory.`, memory, ["disableOOMKiller"]),
    ...unknownLines(`${at}cpu.`, cpu, []),
    ...(isEmpty(memory["disableOOMKiller"]) ? [] : [`${at}memory.disableOOMKiller is set`]),
    ...same(`${at}memory.limit`, limit, host.Memory),
    ...same(`${at}memory.swap`, swap, host.MemorySwap),
    ...same(`${at}memory.swappiness`, swappiness, host.MemorySwappiness),
    ...same(`${at}pids`, fieldsOf(found["pids"])["limit"], host.PidsLimit),
    ...same(`${at}cpu.shares`, shares, host.CpuShares),
    ...same(`${at}cpu.quota`, { quota, period }, { quota: quotaOf(host.NanoCpus ?? 0), period: PERIOD }),
    ...asList(found["devices"])
      .filter((rule) => fieldsOf(rule)["allow"] !== false)
      .map((rule) => `${at}devices: ${valueText(rule)}`),
  ];
}

interface Rule {
  readonly names?: readonly string[];
  readonly action?: string;
  readonly errnoRet?: number;
  readonly args?: readonly Fields[];
}

/** A rule without the parts that have no meaning: its comment, and zeros in place of missing numbers. */
const ruleText = ({ names = [], action = "", errnoRet, args }: Rule): string =>
  JSON.stringify([
    names.toSorted(),
    action,
    errnoRet ?? null,
    (args ?? []).map(({ index, value, valueTwo, op }) => [index, value ?? 0, valueTwo ?? 0, op]),
  ]);

interface ArchMap {
  readonly architecture: string;
  readonly subArchitectures?: readonly string[];
}

function seccompLines(profile: string, found: Fields): readonly string[] {
  const planned = JSON.parse(profile) as Fields;
  const { archMap, syscalls, defaultAction, ...others } = planned;
  const { architectures, syscalls: kept, ...rest } = found;
  const [wanted, there] = [syscalls, kept].map((rules) => asList(rules).map((one) => ruleText(one as Rule)));
  const known = asList(archMap).map((one) => one as ArchMap);
  const archs = asList(architectures).map(String);
  const complete = known.some(({ architecture, subArchitectures = [] }) =>
    isDeepStrictEqual(archs.toSorted(), [architecture, ...subArchitectures].toSorted()),
  );
  return [
    ...same("linux.seccomp", rest, { ...others, defaultAction }),
    ...(isDeepStrictEqual(wanted?.toSorted(), there?.toSorted())
      ? []
      : ["linux.seccomp.syscalls differ from the plan"]),
    ...(complete ? [] : [`linux.seccomp.architectures are ${valueText(archs)}`]),
  ];
}

/** Mounts of each container: kernel file systems, shared memory, and two files of its own. */
const ENGINE_MOUNTS =
  "/proc /sys /dev /dev/pts /dev/mqueue /dev/shm /sys/fs/cgroup /etc/hostname /etc/resolv.conf".split(" ");

function mountLines(plan: BoxPlan, found: readonly Fields[]): readonly string[] {
  const scratch = Object.keys(containerSpec(plan).HostConfig.Tmpfs ?? {});
  const planned = new Map(mountsOf(plan).map((one) => [one.Target, one]));
  return [
    ...[...scratch, ...planned.keys()]
      .filter((path) => !found.some(({ destination }) => destination === path))
      .map((path) => `not mounted: ${path}`),
    ...found.flatMap((mount) => {
      const { destination, source, type, options } = mount;
      const words = asList(options).map(String);
      const at = String(destination);
      const wanted = planned.get(at);
      if (wanted === undefined)
        return [...scratch, ...ENGINE_MOUNTS].includes(at)
          ? []
          : [`mounted but not planned: ${valueText(mount)}`];
      return [
        ...(wanted.Type === "bind" ? same(`${at}: source`, source, wanted.Source) : []),
        ...same(`${at}: type`, type, "bind"),
        ...same(`${at}: read-only`, words.includes("ro"), wanted.ReadOnly === true),
        ...words
          // A volume is the engine's own: nothing else is mounted below it.
          .filter((word) => word !== "rbind" || wanted.Type === "bind")
          .filter((word) => /^(?:rbind|r?shared|r?slave|copy|U|O|idmap.*)$/.test(word))
          .map((word) => `${at}: ${word}`),
      ];
    }),
  ];
}
