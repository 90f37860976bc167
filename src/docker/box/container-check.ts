import { isDeepStrictEqual } from "node:util";
import { type Fields, fieldsOf, isFields } from "../../core/raw-data.ts";
import {
  type BoxPlan,
  commandOf,
  containerSpec,
  MASKED_PATHS,
  mountsOf,
  PACKAGE_CAPABILITIES,
  READ_ONLY_PATHS,
} from "../container-spec.ts";
import {
  type BoxReport,
  hostLines,
  isGvisorRuntime,
  limitLines,
  type MountPoint,
  networkLines,
  processLines,
  readMountinfo,
  type SeenFile,
} from "../../boxes/runner-report.ts";
import { isInside } from "../../core/file-names.ts";

/**
 * Whether a container is as planned, according to three witnesses: the engine's report (here for Docker, in
 * podman-spec.ts for Podman), the box's own report, and the kernel's table of mounts.
 */

/** The parts of the engine's report of a container that are checked here. */
export interface Inspected {
  readonly [field: string]: unknown;
  readonly Image?: unknown;
  readonly Config?: unknown;
  readonly HostConfig?: unknown;
  readonly Mounts?: unknown;
  readonly State?: { readonly Pid?: unknown };
}

/**
 * Compares what the engine made of the plan with the plan: one line for each deviation. Fields that the plan does not
 * name must be empty, so that an option of a newer engine is a deviation until it is known here.
 */
export function inspectedDifferences(plan: BoxPlan, inspected: Inspected): readonly string[] {
  const { HostConfig: host, ...config } = fieldsOf(containerSpec(plan));
  const found = fieldsOf(inspected.Config);
  return [
    ...compare("HostConfig", fieldsOf(host), fieldsOf(inspected.HostConfig), HOST_READERS),
    ...compare("Config", config, found, CONFIG_READERS),
    ...environmentLines(config["Env"], found["Env"]),
    ...labelLines(fieldsOf(config["Labels"]), fieldsOf(found["Labels"])),
    ...mountLines(plan, inspected.Mounts),
    ...identityLines(plan, inspected),
  ];
}

type Reader = (value: unknown, planned: unknown) => unknown;

const ignored: Reader = () => undefined;

/** Lists whose order has no meaning for the engine. */
const unordered: Reader = (value) =>
  Array.isArray(value) && value.length > 0
    ? value.map((one) => JSON.stringify(withoutEmpty(one))).toSorted()
    : withoutEmpty(value);

const entries = (list: unknown): readonly (readonly [string, string])[] =>
  (Array.isArray(list) ? list.map(String) : []).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  });

const HOST_READERS: Readonly<Record<string, Reader>> = {
  CapDrop: unordered,
  CapAdd: (value, planned) =>
    unordered(Array.isArray(value) ? value.map((one) => String(one).replace(/^CAP_/, "")) : value, planned),
  SecurityOpt: unordered,
  MaskedPaths: unordered,
  ReadonlyPaths: unordered,
  Mounts: unordered,
  Ulimits: unordered,
  // In tables, a key without a value counts.
  Tmpfs: (value) => value ?? undefined,
  Sysctls: (value) => value ?? undefined,
  // If the plan leaves the runtime to the engine, the report names its choice: only runtimes that isolate are accepted.
  Runtime: (value, planned) =>
    planned === undefined && ["runc", "crun", "runsc", "io.containerd.runc.v2"].includes(String(value))
      ? undefined
      : withoutEmpty(value),
  Isolation: (value) => (value === "default" ? undefined : withoutEmpty(value)),
};

const CONFIG_READERS: Readonly<Record<string, Reader>> = {
  Env: ignored,
  Labels: ignored,
  // The image adds its intervals to a health check that never runs.
  Healthcheck: (value) => withoutEmpty(fieldsOf(value)["Test"]),
  // Settings of the image without effect here: no port is published, nothing is built, the end is a kill.
  ExposedPorts: ignored,
  OnBuild: ignored,
  Shell: ignored,
  StopSignal: ignored,
};

function compare(
  title: string,
  wanted: Fields,
  found: Fields,
  readers: Readonly<Record<string, Reader>>,
): readonly string[] {
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(found)])].toSorted();
  return names.flatMap((name) => {
    const read = readers[name] ?? (wanted[name] === undefined ? unlessEmpty : withoutEmpty);
    const [plan, fact] = [read(wanted[name], wanted[name]), read(found[name], wanted[name])];
    if (isDeepStrictEqual(plan, fact)) return [];
    return [`${title}.${name} is ${valueText(fact)}, planned ${valueText(plan)}`];
  });
}

/** A field that no plan asked for must be empty as it stands: in a table, a key alone has a meaning. */
function unlessEmpty(value: unknown): unknown {
  const filled = isFields(value) ? Object.keys(value).length > 0 : withoutEmpty(value) !== undefined;
  return filled ? value : undefined;
}

/** The value without its empty parts, so that an omitted default equals one that is spelled out. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((one: unknown) => withoutEmpty(one));
    return items.every((one) => one === undefined) ? undefined : items;
  }
  if (typeof value === "object" && value !== null) {
    const kept = Object.entries(value)
      .map(([name, inner]) => [name, withoutEmpty(inner)] as const)
      .filter(([, inner]) => inner !== undefined)
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  }
  return value === null || value === "" || value === 0 || value === false ? undefined : value;
}

function valueText(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
}

/** Variables that decide what a program loads or runs before its first line. No image may set them. */
const LOADING_VARIABLES =
  /^(LD_|NODE_(?!VERSION$)|GIT_|BASH_|DYLD_|GCONV_PATH$|GLIBC_TUNABLES$|ENV$|SHELLOPTS$|IFS$|OPENSSL_|DOCKER_)/;

/** The engine adds the image's variables to ours. Those that cannot affect the runner are allowed. */
export function environmentLines(wanted: unknown, found: unknown): readonly string[] {
  const ours = new Map(entries(wanted));
  const theirs = entries(found);
  const missing = [...ours].filter(
    ([name, value]) => !theirs.some((one) => isDeepStrictEqual(one, [name, value])),
  );
  const names = theirs.map(([name]) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const loading = names.filter((name) => !ours.has(name) && LOADING_VARIABLES.test(name));
  return [
    ...missing.map(([name, value]) => `Config.Env lacks ${name}=${value}`),
    ...twice.map((name) => `Config.Env has ${name} more than once`),
    ...loading.map((name) => `the image sets ${name}, which decides what programs load: use another image`),
  ];
}

/** Containers are looked up by these labels. The image may add labels of its own. */
export const labelLines = (wanted: Fields, found: Fields): readonly string[] =>
  Object.keys(wanted)
    .filter((name) => wanted[name] !== found[name])
    .map((name) => `Config.Labels.${name} is ${valueText(found[name])}, planned ${valueText(wanted[name])}`);

const mountLine = (type: unknown, from: unknown, to: unknown, writable: boolean): string =>
  `${String(type)} ${valueText(from)} at ${valueText(to)}, ${writable ? "writable" : "read-only"}`;

/** The mounts as the engine reports them, including volumes that an image declares. */
export function mountLines(plan: BoxPlan, found: unknown): readonly string[] {
  const wanted = mountsOf(plan).map((one) =>
    mountLine(one.Type, one.Source, one.Target, one.ReadOnly !== true),
  );
  const there = (Array.isArray(found) ? found.map(fieldsOf) : []).map((one) =>
    mountLine(
      one["Type"],
      one["Type"] === "volume" ? one["Name"] : one["Source"],
      one["Destination"],
      one["RW"] !== false,
    ),
  );
  return [
    ...wanted.filter((one) => !there.includes(one)).map((one) => `not mounted: ${one}`),
    ...there.filter((one) => !wanted.includes(one)).map((one) => `mounted but not planned: ${one}`),
  ];
}

function identityLines(plan: BoxPlan, inspected: Inspected): readonly string[] {
  const networks = Object.keys(fieldsOf(fieldsOf(inspected["NetworkSettings"])["Networks"]));
  const planned = plan.mode === "danger-full-access" ? "bridge" : "none";
  const command = [inspected["Path"], ...((inspected["Args"] ?? []) as readonly unknown[])];
  const confined: readonly unknown[] = [undefined, "", plan.host.apparmor ? "docker-default" : "unconfined"];
  return [
    ...networks.filter((name) => name !== planned).map((name) => `a network was joined: ${name}`),
    ...(isDeepStrictEqual(command, commandOf(plan)) ? [] : [`it would run ${valueText(command)}`]),
    ...(withoutEmpty(inspected["ExecIDs"]) === undefined ? [] : ["something else was started in it"]),
    ...(confined.includes(inspected["AppArmorProfile"])
      ? []
      : [`AppArmorProfile is ${valueText(inspected["AppArmorProfile"])}`]),
    ...(plan.image.startsWith("sha256:") && inspected.Image !== plan.image
      ? [`Image is ${valueText(inspected.Image)}, planned ${plan.image}`]
      : []),
  ];
}

/** Compares the box's report with the plan and with what the host sees at the same paths; one line for each deviation. */
export function reportDifferences(
  plan: BoxPlan,
  report: BoxReport,
  host: readonly SeenFile[],
): readonly string[] {
  if (isGvisor(plan))
    return [
      ...gvisorLines(plan, report),
      ...networkLines(plan.mode === "danger-full-access", report),
      ...hostLines(report),
    ];
  return [
    ...processLines(processOf(plan), report.status),
    ...mountinfoLines(plan, report.mountinfo),
    ...networkLines(plan.mode === "danger-full-access", report),
    ...limitLines(report.rlimits),
    ...fileLines(plan, report.stats, host),
    ...hostLines(report),
  ];
}

const processOf = ({ user, makesImage }: BoxPlan): Parameters<typeof processLines>[0] => ({
  user,
  ...(makesImage === true ? { capabilities: Object.values(PACKAGE_CAPABILITIES) } : {}),
});

/** A bind mount must show the same file that the host sees at that path. Volumes are exempt: they are not host files. */
function fileLines(
  plan: BoxPlan,
  reported: readonly SeenFile[],
  host: readonly SeenFile[],
): readonly string[] {
  const bound = mountsOf(plan).filter(({ Type }) => Type === "bind");
  return bound.flatMap(({ Target }) => {
    const [inside, outside] = [reported, host].map((files) =>
      nameOf(files.find(({ path }) => path === Target)),
    );
    if (inside === outside && inside !== "unknown") return [];
    return [`${Target} is ${inside} in the box and ${outside} on the host`];
  });
}

const nameOf = (file: SeenFile | undefined): string =>
  file === undefined ? "unknown" : `device ${file.dev} inode ${file.ino}`;

export const isGvisor = ({ host }: BoxPlan): boolean => isGvisorRuntime(host.runtime);

/**
 * The box's own report if gVisor is its kernel: identity, capabilities, and each planned mount as planned. Limits and
 * inodes are those of another kernel; for these only the engine's report counts.
 */
function gvisorLines(plan: BoxPlan, { status, mountinfo }: BoxReport): readonly string[] {
  const { points, strange } = readMountinfo(mountinfo);
  return [
    ...processLines(plan, status, { gvisor: true }),
    ...strange.map((line) => `a mount that cannot be read: ${line}`),
    ...plannedLines(plan, points),
    ...points
      .filter(({ type, path }) => type === "9p" && !isExpected(plan, path))
      .map(({ path }) => `${path}: was not planned`),
  ];
}

function plannedLines(plan: BoxPlan, points: readonly MountPoint[]): readonly string[] {
  const root = { Target: "/", ReadOnly: plan.mode !== "danger-full-access" };
  return [root, ...mountsOf(plan)].flatMap(({ Target, ReadOnly }) => {
    const wanted = ReadOnly === true ? "ro" : "rw";
    const point = points.find(({ path }) => path === Target);
    if (point === undefined) return [`${Target} is not a mount of its own`];
    return point.options.has(wanted) ? [] : [`${Target}: not ${wanted} (${[...point.options].join(",")})`];
  });
}

const ENGINE_FILES: ReadonlySet<string> = new Set(["/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"]);

const isExpected = (plan: BoxPlan, path: string): boolean =>
  ENGINE_FILES.has(path) || mountsOf(plan).some(({ Target }) => Target === path);

/**
 * Compares the kernel's table of a box's mounts with the planned ones and those that every engine adds; any other is a
 * deviation.
 */
export function mountinfoLines(plan: BoxPlan, mountinfo: string): readonly string[] {
  const { points: all, strange } = readMountinfo(mountinfo);
  const points = plan.host.podman === undefined ? all : withoutMasks(all);
  const expected = expectations(plan);
  const twice = points.filter(({ path }, index) => points.findIndex((one) => one.path === path) !== index);
  const absent = [...expected.keys()].filter((path) => !points.some((point) => point.path === path));
  return [
    ...strange.map((line) => `a mount that cannot be read: ${line}`),
    ...twice.map(({ path }) => `${path} is mounted more than once`),
    ...absent.map((path) => `${path} is not a mount of its own`),
    ...points.flatMap((point) => {
      const fault = (expected.get(point.path) ?? engineMount)(point);
      return fault === undefined ? [] : [`${point.path}: ${fault}`];
    }),
  ];
}

/** Why a mount is not as planned, or undefined. */
type MountCheck = (point: MountPoint) => string | undefined;

function expectations(plan: BoxPlan): ReadonlyMap<string, MountCheck> {
  const { ReadonlyRootfs, Tmpfs = {} } = containerSpec(plan).HostConfig;
  return new Map<string, MountCheck>([
    ["/", (point) => flags(point, ReadonlyRootfs === true ? ["ro"] : ["rw"])],
    ["/proc", engineMount],
    ["/proc/sys", engineMount],
    ["/dev", engineMount],
    ["/sys", engineMount],
    ["/dev/shm", engineMount],
    ...Object.entries(Tmpfs).map(([path, options]): [string, MountCheck] => [path, scratch(options)]),
    ...mountsOf(plan).map(({ Target, ReadOnly }): [string, MountCheck] => [
      Target,
      (point) =>
        ENGINE_TYPES.has(point.type) && point.root === "/"
          ? `a ${point.type} lies over it`
          : flags(point, [ReadOnly === true ? "ro" : "rw"]),
    ]),
  ]);
}

const ENGINE_TYPES = new Set(["proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2"]);

function flags(point: MountPoint, wanted: readonly string[]): string | undefined {
  const gone = wanted.filter((option) => !point.options.has(option));
  if (gone.length > 0) return `not ${gone.join(", not ")} (${[...point.options].join(",")})`;
  return point.shared ? "mounts inside it propagate to the host" : undefined;
}

/** Size and inodes are capped as planned; the kernel rounds a size up to whole pages. */
const scratch =
  (planned: string): MountCheck =>
  (point) => {
    if (point.type !== "tmpfs") return `is ${point.type}, planned tmpfs`;
    const words = planned.split(",");
    for (const name of ["size", "nr_inodes"]) {
      const exact = sizeIn(words, name);
      const most = name === "size" ? Math.ceil(exact / 65_536) * 65_536 : exact;
      const real = sizeIn(point.superOptions, name);
      if (!(real <= most)) return `${name} is ${real}, planned ${most}`;
    }
    return flags(point, ["rw", ...words.filter((word) => ["nosuid", "nodev", "noexec"].includes(word))]);
  };

const sizeIn = (options: readonly string[], name: string): number =>
  sizeOf(options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1));

function sizeOf(text = ""): number {
  const [, digits, unit = ""] = /^(\d+)([kmg]?)$/.exec(text) ?? [];
  return Number(digits) * ({ k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }[unit] ?? 1);
}

/** What every engine mounts in every container: kernel file systems, its three files in /etc, masked paths. */
function engineMount(point: MountPoint): string | undefined {
  const { path, type } = point;
  const plain = KERNEL_MOUNTS.get(path);
  if (plain !== undefined) {
    if (type !== plain.type || point.root !== "/")
      return `is ${type} of ${point.root}, planned ${plain.type}`;
    return flags(point, plain.flags);
  }
  if (isInside("/sys/fs/cgroup", path)) return cgroups(point);
  if (READ_ONLY_PATHS.includes(path)) return type === "proc" ? flags(point, ["ro"]) : `is ${type}`;
  if (isMask(point)) return undefined;
  if (/^\/etc\/(resolv\.conf|hostname|hosts)$/.test(path) && /\/[0-9a-f]{64}\//.test(point.root))
    return flags(point, []);
  return `was not planned (${type} of ${point.root})`;
}

const KERNEL_MOUNTS: ReadonlyMap<string, { readonly type: string; readonly flags: readonly string[] }> =
  new Map([
    ["/proc", { type: "proc", flags: ["nosuid", "nodev", "noexec"] }],
    ["/sys", { type: "sysfs", flags: ["ro", "nosuid", "nodev", "noexec"] }],
    ["/dev", { type: "tmpfs", flags: ["nosuid"] }],
    ["/dev/pts", { type: "devpts", flags: ["nosuid", "noexec"] }],
    ["/dev/mqueue", { type: "mqueue", flags: ["nosuid", "nodev", "noexec"] }],
    ["/dev/shm", { type: "tmpfs", flags: ["nosuid", "nodev", "noexec"] }],
  ]);

/** Cgroups version 2 is one mount; version 1 is a folder with one mount for each controller. */
function cgroups(point: MountPoint): string | undefined {
  if (point.path === "/sys/fs/cgroup" && point.type === "tmpfs") return flags(point, []);
  return /^cgroup2?$/.test(point.type) ? flags(point, ["ro"]) : `is ${point.type}`;
}

/** A masked path is an empty read-only folder or the null device. */
const isMask = (point: MountPoint): boolean => MASKED_PATHS.includes(point.path) && isCover(point);

const isCover = ({ type, root, options }: MountPoint): boolean =>
  (type === "tmpfs" && root === "/" && options.has("ro")) || (root === "/null" && /^(dev)?tmpfs$/.test(type));

/** Podman masks its own list of paths and then the requested ones, even the same; a path masked twice is masked. */
const withoutMasks = (points: readonly MountPoint[]): readonly MountPoint[] =>
  points.filter(
    (point, index) =>
      !(isInside("/proc", point.path) || isInside("/sys", point.path)) ||
      !isCover(point) ||
      (MASKED_PATHS.includes(point.path) && points.findIndex(({ path }) => path === point.path) === index),
  );
