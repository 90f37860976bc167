import { type MountPoint, readMountinfo } from "../../boxes/runner/mountinfo.ts";
import { isInside } from "../../core/text/file-paths.ts";
import { type BoxPlan, containerSpec, MASKED_PATHS, mountsOf, READ_ONLY_PATHS } from "../container-spec.ts";

/** Compares the mounts in the box with the planned ones and those that every engine adds; any other is a deviation. */
export function mountLines(plan: BoxPlan, mountinfo: string): readonly string[] {
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
