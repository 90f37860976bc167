import type { ContainerCreateOptions } from "dockerode";

/** What one container is to run; everything else about it is fixed here. */
export interface BoxPlan {
  readonly image: string;
  readonly argv: readonly string[];
  /** Mounted at its own absolute path; none for a container that only looks at its image. */
  readonly workspace?: {
    readonly path: string;
    readonly uid: number;
    readonly gid: number;
    readonly writable: boolean;
  };
  readonly memory: number;
  readonly pids: number;
  readonly labels: Readonly<Record<string, string>>;
}

const NOBODY = 65_534;
const MiB = 2 ** 20;

/** A pure function from the plan to the container: no network, no capabilities, read-only root. */
export function containerSpec(plan: BoxPlan): ContainerCreateOptions {
  const { uid, gid } = plan.workspace ?? { uid: NOBODY, gid: NOBODY };
  return {
    Image: plan.image,
    Entrypoint: [...plan.argv],
    Cmd: [],
    User: `${uid}:${gid}`,
    WorkingDir: plan.workspace?.path ?? "/",
    Env: environment(),
    Hostname: "sandbox",
    NetworkDisabled: true,
    AttachStdin: false,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: false,
    Tty: false,
    StopTimeout: 1,
    Healthcheck: { Test: ["NONE"] },
    Labels: { ...plan.labels, "dev.harness.box": "1" },
    HostConfig: hostConfig(plan, uid, gid),
  };
}

/** Built from empty: nothing of the host's environment is inherited. */
const environment = (): string[] => [
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "HOME=/home/box",
  "LANG=C.UTF-8",
  "TERM=dumb",
  "CI=1",
  "GIT_TERMINAL_PROMPT=0",
  "GIT_OPTIONAL_LOCKS=0",
  "GIT_CONFIG_GLOBAL=/dev/null",
];

function hostConfig(
  plan: BoxPlan,
  uid: number,
  gid: number,
): NonNullable<ContainerCreateOptions["HostConfig"]> {
  const owned = `uid=${uid},gid=${gid}`;
  const scratch = `rw,nosuid,nodev,exec,size=${Math.floor(plan.memory / 4)},nr_inodes=100000,${owned}`;
  return {
    NetworkMode: "none",
    Dns: ["127.0.0.1"],
    DnsSearch: ["."],
    IpcMode: "private",
    CapDrop: ["ALL"],
    Privileged: false,
    SecurityOpt: ["no-new-privileges"],
    ReadonlyRootfs: true,
    Tmpfs: { "/tmp": `${scratch},mode=1777`, "/home/box": `${scratch},mode=0700` },
    Mounts: workspaceMount(plan),
    Memory: plan.memory,
    MemorySwap: plan.memory,
    PidsLimit: plan.pids,
    OomScoreAdj: 500,
    Ulimits: [
      { Name: "nofile", Soft: 4096, Hard: 4096 },
      { Name: "core", Soft: 0, Hard: 0 },
    ],
    ShmSize: 64 * MiB,
    LogConfig: { Type: "none", Config: {} },
    RestartPolicy: { Name: "no" },
    AutoRemove: false,
  };
}

function workspaceMount({ workspace }: BoxPlan): NonNullable<ContainerCreateOptions["HostConfig"]>["Mounts"] {
  if (workspace === undefined) return [];
  const { path, writable } = workspace;
  const options = { Propagation: "rprivate", NonRecursive: true } as const;
  return [{ Type: "bind", Source: path, Target: path, ReadOnly: !writable, BindOptions: options }];
}
