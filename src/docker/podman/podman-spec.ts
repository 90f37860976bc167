import { containerSpec, type BoxPlan } from "../container-spec.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Values that depend on this machine rather than on the plan. */
export interface PodmanOptions {
  /** A file that the engine reads the seccomp profile from, because it takes no text. */
  readonly seccompFile: string;
  /**
   * The most processes of one user on the whole host: the engine sets this limit itself, to a number that it may not be
   * allowed to set.
   */
  readonly nproc: number;
}

/** More than any box has, and no more than any service of the engine may set. */
export const MOST_PROCESSES = 32_768;

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
