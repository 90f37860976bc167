import { statfs } from "node:fs/promises";
import path from "node:path";
import { formatSize } from "../core/text/bounds.ts";
import { ailing, broken, type Health, healthy } from "../core/health.ts";
import { answered, askInfo, askVersion, type Engine, isPodman, lackOfPodman } from "./engine.ts";
import { imageExists, wantedImage } from "./images/build-image.ts";
import { checkImage } from "./images/image-needs.ts";

/** The fields of the engine's own description that the checks read. */
interface EngineInfo {
  readonly Driver?: string;
  readonly CgroupVersion?: string;
  readonly CgroupDriver?: string;
  readonly MemoryLimit?: boolean;
  readonly PidsLimit?: boolean;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly DefaultRuntime?: string;
  readonly RuncCommit?: { readonly ID?: string };
  readonly KernelVersion?: string;
  readonly OperatingSystem?: string;
  readonly DockerRootDir?: string;
  readonly Rootless?: boolean;
}

interface Components {
  readonly Components?: readonly { readonly Name: string; readonly Version: string }[];
}

const MIN_API = "1.41";

export async function engineHealth(engine: Engine): Promise<readonly Health[]> {
  const { api } = engine;
  const [info, { Components: components }] = await answered(
    async (signal) =>
      [(await askInfo(api, signal)) as EngineInfo, (await askVersion(api, signal)) as Components] as const,
  );
  const runc =
    components?.find(({ Name }) => Name === "runc" || Name === "crun")?.Version ?? "version unknown";
  return [versionHealth(engine, info), runtimeHealth(info, runc), ...readInfo(info)];
}

/** Parts of a version are numbers: 1.5 is older than 1.41. */
function atLeast(version: string, oldest: string): boolean {
  const [major = Number.NaN, minor = 0] = version.split(".").map(Number);
  const [needMajor = 0, needMinor = 0] = oldest.split(".").map(Number);
  return major > needMajor || (major === needMajor && minor >= needMinor);
}

function versionHealth(engine: Engine, info: EngineInfo): Health {
  const { version, endpoint } = engine;
  const detail = `${version.name} ${version.version}, API ${version.api}, at ${endpoint.host}`;
  const lack = isPodman(engine) ? lackOfPodman(engine, info) : undefined;
  if (lack !== undefined)
    return broken("engine", `${detail}: ${lack}`, "use rootful Podman, or Docker: docs/engines.md");
  if (atLeast(version.api, MIN_API)) return healthy("engine", detail);
  return broken("engine", `${detail}: older than API ${MIN_API}`, "update the engine to 20.10 or later");
}

function runtimeHealth(info: EngineInfo, runc: string): Health {
  const runtimes = Object.keys(info.Runtimes ?? {});
  const gvisor = runtimes.includes("runsc") ? "gVisor is there" : "no gVisor";
  return healthy("runtime", `${info.DefaultRuntime ?? "runc"} ${runc}; ${gvisor}`);
}

/** Pure. */
export function readInfo(info: EngineInfo): readonly Health[] {
  return [storageHealth(info), cgroupHealth(info), securityHealth(info)];
}

function storageHealth({ Driver = "unknown" }: EngineInfo): Health {
  if (Driver !== "vfs") return healthy("storage", Driver);
  return ailing(
    "storage",
    "vfs: every container copies its whole image",
    "put the engine's data on ext4, xfs or btrfs",
  );
}

function cgroupHealth({
  CgroupVersion = "1",
  CgroupDriver = "",
  MemoryLimit,
  PidsLimit,
}: EngineInfo): Health {
  const detail = `version ${CgroupVersion}, driver ${CgroupDriver}`;
  const gone = [...(MemoryLimit === false ? ["memory"] : []), ...(PidsLimit === false ? ["pids"] : [])];
  if (gone.length === 0) return healthy("cgroup", detail);
  const remedy = "run the engine as root, or boot with cgroup v2 and systemd";
  return broken("cgroup", `${detail}: no limit on ${gone.join(" and ")} can be set`, remedy);
}

function securityHealth({ SecurityOptions }: EngineInfo): Health {
  const names = (SecurityOptions ?? []).map((option) => /name=([a-z]+)/.exec(option)?.[1] ?? option);
  if (!names.includes("seccomp"))
    return broken("security", "the engine has no seccomp", "use an engine and a kernel with seccomp");
  const module = names.find((name) => name === "apparmor" || name === "selinux");
  return healthy("security", `${names.join(", ")}${module === undefined ? "; no AppArmor or SELinux" : ""}`);
}

/** Checks the sandbox image, ours or the user's own. */
export async function imageHealth(engine: Engine, root: string, own: string | null): Promise<Health> {
  if (own === null) {
    const { tag, present } = await wantedImage(engine, root);
    return present ? healthy("image", tag) : broken("image", `${tag} is not built`, "harness sandbox build");
  }
  if (!(await imageExists(engine, own)))
    return broken(
      "image",
      `${own} is not on this engine`,
      `docker pull ${own}   (or: harness config set image null)`,
    );
  const { missing, absent, node } = await checkImage(engine, root, own);
  if (missing.length > 0)
    return broken("image", `${own} lacks ${missing.join(", ")}`, "harness config set image null");
  if (absent.length > 0) return ailing("image", `${own}, without ${absent.join(", ")}`);
  return healthy("image", node === "" ? own : `${own}, Node ${node}`);
}

const GiB = 2 ** 30;

/** Free space where files are kept; for a folder that does not exist yet, the space of its nearest parent. */
export async function diskHealth(id: string, folder: string): Promise<Health> {
  const { bavail, bsize } = (await statfs(folder).catch(() => undefined)) ?? { bavail: undefined, bsize: 0 };
  if (bavail === undefined) {
    const parent = path.dirname(folder);
    return parent === folder ? ailing(id, "free space is unknown") : diskHealth(id, parent);
  }
  const free = bavail * bsize;
  const detail = `${formatSize(free)} free in ${folder}`;
  if (free < GiB) return broken(id, detail, "free some space: docker system df; docker image prune");
  return free < 5 * GiB ? ailing(id, detail, "docker system df; docker image prune") : healthy(id, detail);
}
