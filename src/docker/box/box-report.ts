import {
  type BoxReport,
  hostLines,
  isGvisorRuntime,
  limitLines,
  networkLines,
  processLines,
  type SeenFile,
} from "../../boxes/runner/runner-report.ts";
import { type BoxPlan, mountsOf, PACKAGE_CAPABILITIES } from "../container-spec.ts";
import { mountLines } from "./mounts-seen.ts";
import { type MountPoint, readMountinfo } from "../../boxes/runner/mountinfo.ts";

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
    ...mountLines(plan, report.mountinfo),
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

/** A gVisor box reports through another kernel, in which host files have other inode numbers. */
interface ReportedFacts {
  readonly status: string;
  readonly mountinfo: string;
}

/**
 * The box's own report if gVisor is its kernel: identity, capabilities, and each planned mount as planned. Limits and
 * inodes are those of another kernel; for these only the engine's report counts.
 */
function gvisorLines(plan: BoxPlan, { status, mountinfo }: ReportedFacts): readonly string[] {
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
