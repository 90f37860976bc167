import { mountsOf } from "../mounts.ts";
import type { BoxPlan } from "../spec.ts";
import { type MountPoint, readMountinfo } from "./mountinfo.ts";

/** gVisor's runtime goes by this name, also with a platform behind it (runsc-kvm). */
export const isGvisor = ({ host }: BoxPlan): boolean => /^(?:runsc|gvisor)/.test(host.runtime ?? "");

/** What a gVisor box sees of its own is another kernel's: files of the host have other inodes there. */
interface Seen {
  readonly status: string;
  readonly mountinfo: string;
}

/**
 * The box's own word where gVisor is its kernel: identity, capabilities, and each planned mount as planned. That
 * kernel tells nothing of no-new-privileges, limits and inodes, and a seccomp profile is for the host's kernel,
 * which the box never calls; these stay with the engine's word.
 */
export function gvisorLines(plan: BoxPlan, { status, mountinfo }: Seen): readonly string[] {
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
