import { type BoxPlan, mountsOf, PACKAGE_CAPABILITIES, ULIMITS } from "../container-spec.ts";
import { mountLines, type MountPoint, readMountinfo } from "./mounts-seen.ts";

/** What the first process in the box reports about itself. */
export interface BoxReport {
  readonly status: string;
  readonly mountinfo: string;
  readonly netdev: string;
  readonly route: string;
  readonly rlimits: string;
  readonly stats: readonly SeenFile[];
  readonly hostname: string;
}

export interface SeenFile {
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  readonly mode?: number;
}

/** Compares the box's report with the plan and with what the host sees at the same paths; one line for each deviation. */
export function reportDifferences(
  plan: BoxPlan,
  report: BoxReport,
  host: readonly SeenFile[],
): readonly string[] {
  if (isGvisor(plan))
    return [...gvisorLines(plan, report), ...networkLines(plan, report), ...hostLines(report)];
  return [
    ...processLines(plan, report.status),
    ...mountLines(plan, report.mountinfo),
    ...networkLines(plan, report),
    ...limitLines(report.rlimits),
    ...fileLines(plan, report.stats, host),
    ...hostLines(report),
  ];
}

const hostLines = ({ hostname }: BoxReport): readonly string[] =>
  hostname === "sandbox" ? [] : [`the host name is ${JSON.stringify(hostname)}`];

/** Real, effective, saved and file system ids. */
const fourTimes = (id: number): string => `${id}\t${id}\t${id}\t${id}`;

const ZERO = /^0+$/;
/** As the kernel writes the set of capabilities of a container that makes an image. */
const PACKAGES = Object.values(PACKAGE_CAPABILITIES)
  .reduce((mask, bit) => mask | (1 << bit), 0)
  .toString(16)
  .padStart(16, "0");

function processLines({ user, makesImage }: BoxPlan, status: string): readonly string[] {
  const fields = new Map(
    status.split("\n").map((line) => [line.split(":", 1)[0] ?? "", line.slice(line.indexOf(":") + 1).trim()]),
  );
  const field = (name: string): string => fields.get(name) ?? "unknown";
  const must = (name: string, wanted: string): readonly string[] =>
    field(name) === wanted ? [] : [`${name} is ${field(name)}, planned ${wanted}`];
  // The kernel lists the primary group among the supplementary ones.
  const groups = field("Groups").split(" ");
  return [
    ...must("Uid", fourTimes(user.uid)),
    ...must("Gid", fourTimes(user.gid)),
    ...(groups.every((group) => group === "" || group === String(user.gid))
      ? []
      : [`Groups are ${field("Groups")}, planned none`]),
    ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
      .filter((name) => !ZERO.test(field(name)) && !(makesImage === true && field(name) === PACKAGES))
      .map((name) => `${name} is ${field(name)}, planned ${makesImage === true ? PACKAGES : "none"}`),
    ...must("NoNewPrivs", "1"),
    ...must("Seccomp", "2"),
  ];
}

/** Devices that the host's tunnel modules add to every network namespace. They are down and lead nowhere. */
const FALLBACK = /^(tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/;

function networkLines(plan: BoxPlan, { netdev, route }: BoxReport): readonly string[] {
  const devices = netdev
    .split("\n")
    .slice(2)
    .filter((line) => line.trim() !== "");
  const names = devices.map((line) => line.split(":", 1)[0]?.trim() ?? "");
  const routes = route
    .split("\n")
    .slice(1)
    .filter((line) => line.trim() !== "");
  const loop = names.includes("lo") ? [] : ["there is no interface lo"];
  if (plan.mode === "danger-full-access") return loop;
  return [
    ...loop,
    ...names
      .filter((name) => name !== "lo" && !FALLBACK.test(name))
      .map((name) => `there is an interface ${name}`),
    ...routes.map((line) => `there is a route: ${line.trim().replaceAll(/\s+/g, " ")}`),
  ];
}

const LIMIT_TITLES: Readonly<Record<keyof typeof ULIMITS, string>> = {
  nofile: "Max open files",
  core: "Max core file size",
  fsize: "Max file size",
  memlock: "Max locked memory",
  msgqueue: "Max msgqueue size",
};

function limitLines(text: string): readonly string[] {
  return Object.entries(LIMIT_TITLES).flatMap(([name, title]) => {
    const most = ULIMITS[name as keyof typeof ULIMITS];
    const line = text.split("\n").find((one) => one.startsWith(`${title} `)) ?? "";
    const [, hard] = line.slice(title.length).trim().split(/\s+/);
    return hard !== undefined && /^\d+$/.test(hard) && Number(hard) <= most
      ? []
      : [`the limit ${name} is ${hard ?? "unknown"}, planned ${most}`];
  });
}

/** A bind mount must show the same file that the host sees at that path. Volumes are exempt: they are not host files. */
function fileLines(plan: BoxPlan, seen: readonly SeenFile[], host: readonly SeenFile[]): readonly string[] {
  const bound = mountsOf(plan).filter(({ Type }) => Type === "bind");
  const name = (file: SeenFile | undefined): string =>
    file === undefined ? "unknown" : `device ${file.dev} inode ${file.ino}`;
  return bound.flatMap(({ Target }) => {
    const [inside, outside] = [seen, host].map((files) => name(files.find(({ path }) => path === Target)));
    if (inside === outside && inside !== "unknown") return [];
    return [`${Target} is ${inside} in the box and ${outside} on the host`];
  });
}

/** The name of gVisor's runtime, also with a platform suffix (runsc-kvm). */
export const isGvisor = ({ host }: BoxPlan): boolean => /^(?:runsc|gvisor)/.test(host.runtime ?? "");

/** A gVisor box reports through another kernel: host files have other inode numbers there. */
interface Seen {
  readonly status: string;
  readonly mountinfo: string;
}

/**
 * The box's own word where gVisor is its kernel: identity, capabilities, and each planned mount as planned. That
 * kernel tells nothing of no-new-privileges, limits and inodes, and a seccomp profile is for the host's kernel,
 * which the box never calls; these stay with the engine's word.
 */
function gvisorLines(plan: BoxPlan, { status, mountinfo }: Seen): readonly string[] {
  const { points, strange } = readMountinfo(mountinfo);
  return [
    ...identityLines(plan, status),
    ...strange.map((line) => `a mount that cannot be read: ${line}`),
    ...plannedLines(plan, points),
    ...points
      .filter(({ type, path }) => type === "9p" && !isExpected(plan, path))
      .map(({ path }) => `${path}: was not planned`),
  ];
}

/** Real, effective, saved, of the file system. */
const four = (id: number): string => [id, id, id, id].join("\t");

function identityLines({ user }: BoxPlan, status: string): readonly string[] {
  const field = (name: string): string =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1]?.trim() ?? "unknown";
  return [
    ...(field("Uid") === four(user.uid) ? [] : [`Uid is ${field("Uid")}, planned ${user.uid}`]),
    ...(field("Gid") === four(user.gid) ? [] : [`Gid is ${field("Gid")}, planned ${user.gid}`]),
    ...(field("Groups") === String(user.gid) || field("Groups") === ""
      ? []
      : [`Groups are ${field("Groups")}, planned none`]),
    ...["CapInh", "CapPrm", "CapEff", "CapBnd"]
      .filter((name) => !/^0+$/.test(field(name)))
      .map((name) => `${name} is ${field(name)}, planned none`),
  ];
}

function plannedLines(plan: BoxPlan, points: readonly MountPoint[]): readonly string[] {
  const root = { Target: "/", ReadOnly: plan.mode !== "danger-full-access" };
  return [root, ...mountsOf(plan)].flatMap(({ Target, ReadOnly }) => {
    const wanted = ReadOnly === true ? "ro" : "rw";
    const point = points.find(({ path }) => path === Target);
    if (point === undefined) return [`${Target} is no mount of its own`];
    return point.options.has(wanted) ? [] : [`${Target}: not ${wanted} (${[...point.options].join(",")})`];
  });
}

const ENGINE_FILES: ReadonlySet<string> = new Set(["/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"]);

const isExpected = (plan: BoxPlan, path: string): boolean =>
  ENGINE_FILES.has(path) || mountsOf(plan).some(({ Target }) => Target === path);
