import { type BoxPlan, ULIMITS } from "../spec.ts";
import { mountsOf } from "../mounts.ts";
import { gvisorLines, isGvisor } from "./gvisor.ts";
import { mountLines } from "./mounts-seen.ts";

/** What the first process in the box says of itself. */
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

/** The box's own word against the plan and against what the host sees at the same paths; a line for each deviation. */
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

/** Real, effective, saved and for files. */
const fourTimes = (id: number): string => `${id}\t${id}\t${id}\t${id}`;

const ZERO = /^0+$/;

function processLines({ user }: BoxPlan, status: string): readonly string[] {
  const fields = new Map(
    status.split("\n").map((line) => [line.split(":", 1)[0] ?? "", line.slice(line.indexOf(":") + 1).trim()]),
  );
  const field = (name: string): string => fields.get(name) ?? "unknown";
  const must = (name: string, wanted: string): readonly string[] =>
    field(name) === wanted ? [] : [`${name} is ${field(name)}, planned ${wanted}`];
  // The kernel counts the primary group among them.
  const groups = field("Groups").split(" ");
  return [
    ...must("Uid", fourTimes(user.uid)),
    ...must("Gid", fourTimes(user.gid)),
    ...(groups.every((group) => group === "" || group === String(user.gid))
      ? []
      : [`Groups are ${field("Groups")}, planned none`]),
    ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
      .filter((name) => !ZERO.test(field(name)))
      .map((name) => `${name} is ${field(name)}, planned none`),
    ...must("NoNewPrivs", "1"),
    ...must("Seccomp", "2"),
  ];
}

/** Devices that tunnel modules of the host put into every network namespace; they are down and lead nowhere. */
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

/** What is bound from the host must be the very file that the host sees; a volume is not the host's. */
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
