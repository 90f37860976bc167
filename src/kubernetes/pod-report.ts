import { type MountPoint, readMountinfo } from "../boxes/runner/mountinfo.ts";
import {
  type BoxReport,
  hostLines,
  isGvisorRuntime,
  limitLines,
  processLines,
} from "../boxes/runner/runner-report.ts";
import { isInside } from "../core/file-names.ts";
import { placesBeside, type PodPlan, scratchOf } from "./pod-spec.ts";

/** Compares the box's own report with the plan, one line per deviation. The network is proven elsewhere. */
export function podReportDifferences(plan: PodPlan, report: BoxReport): readonly string[] {
  const kernel = { gvisor: isGvisorRuntime(plan.runtimeClass) };
  return [
    ...processLines(plan, report.status, kernel),
    ...limitLines(report.rlimits, kernel),
    ...hostLines(report),
    ...mountLines(plan, report.mountinfo),
  ];
}

function mountLines(plan: PodPlan, text: string): readonly string[] {
  const { points, strange } = readMountinfo(text);
  const at = (path: string): MountPoint | undefined => points.findLast((point) => point.path === path);
  const scratch = scratchOf(plan).map(({ path }) => path);
  const beside = placesBeside(plan);
  const readOnly = plan.mode === "read-only";
  return [
    ...strange.map((line) => `a mount that cannot be read: ${line}`),
    ...must(at("/"), "/", { options: ["ro"] }),
    ...scratch.flatMap((path) => must(at(path), path, { type: "tmpfs", options: ["rw"] })),
    ...beside.flatMap((path) => must(at(path), path, { options: ["rw"] })),
    ...must(at(plan.workspace), plan.workspace, { options: [readOnly ? "ro" : "rw"] }),
    ...points
      .filter(
        ({ path }) => path !== "/" && path !== plan.workspace && ![...scratch, ...beside].includes(path),
      )
      .flatMap((point) => strangerLines(point)),
  ];
}

function must(
  point: MountPoint | undefined,
  path: string,
  { type, options }: { readonly type?: string; readonly options: readonly string[] },
): readonly string[] {
  if (point === undefined) return [`${path} is not a mount of its own`];
  if (type !== undefined && point.type !== type) return [`${path}: is ${point.type}, planned ${type}`];
  const gone = options.filter((option) => !point.options.has(option));
  return gone.length > 0 ? [`${path}: not ${gone.join(", not ")}`] : [];
}

const KERNEL = new Set(["proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2"]);
/** Files that the kubelet and the runtime mount, one each. */
const FILES = /^\/(?:etc\/(?:hosts|hostname|resolv\.conf)|dev\/termination-log)$/;

/**
 * Unplanned mounts are allowed only for kernel file systems below the kernel's own folders, and for four files. Any
 * other mount is reported.
 */
function strangerLines({ path, type, root }: MountPoint): readonly string[] {
  const own = ["/proc", "/sys", "/dev"].some((folder) => isInside(folder, path));
  if (FILES.test(path) || (own && KERNEL.has(type))) return [];
  return [`${path}: was not planned (${type} of ${root})`];
}

/** Whether the box has only its own loopback device: then there is nothing to prove. */
export function isAlone({ netdev, route }: Pick<BoxReport, "netdev" | "route">): boolean {
  const devices = netdev
    .split("\n")
    .slice(2)
    .map((line) => line.split(":", 1)[0]?.trim() ?? "");
  const others = devices.filter((name) => name !== "" && name !== "lo" && !FALLBACK.test(name));
  return (
    others.length === 0 &&
    route
      .split("\n")
      .slice(1)
      .every((line) => line.trim() === "")
  );
}

/** Devices that the host's tunnel modules add to every network namespace: down, and leading nowhere. */
const FALLBACK = /^(tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/;
