import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import type Docker from "dockerode";
import type {
  ContainerCreateOptions,
  HealthConfig,
  HostConfig,
  NetworkCreateOptions,
  VolumeCreateOptions,
} from "dockerode";
import { warningHealth, type Health, healthy } from "../core/errors.ts";

/** A container beside the boxes, published on 127.0.0.1 only. */
export interface SidecarService {
  readonly image: string;
  /** The image's own command when left out. */
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: readonly { readonly host: number; readonly container: number }[];
  /** Named volumes of the project. */
  readonly volumes: readonly { readonly volume: string; readonly target: string }[];
  readonly healthcheck?: Healthcheck;
  readonly memoryBytes: number;
  readonly restart: "no" | "unless-stopped";
}

interface Healthcheck {
  readonly test: readonly ["CMD", ...string[]];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly startPeriodMs: number;
  readonly retries: number;
}

/** Services that share a network, with the names and labels that `docker compose` gives a project. */
export interface SidecarProject<Name extends string = string> {
  readonly name: string;
  readonly services: Readonly<Record<Name, SidecarService>>;
}

export type SidecarName = "qdrant" | "ollama";

const GIB = 2 ** 30;

/** The same as in `docker-compose.yml`, for people who use compose directly; a test compares the two. */
export const SIDECARS: SidecarProject<SidecarName> = {
  name: "harness",
  services: {
    qdrant: {
      image: "qdrant/qdrant:v1.19.0",
      environment: { QDRANT__TELEMETRY_DISABLED: "true", QDRANT__LOG_LEVEL: "WARN" },
      ports: [
        { host: 6333, container: 6333 },
        { host: 6334, container: 6334 },
      ],
      volumes: [{ volume: "qdrant_storage", target: "/qdrant/storage" }],
      healthcheck: {
        // The image has bash but neither curl nor wget.
        test: [
          "CMD",
          "bash",
          "-c",
          String.raw`exec 3<>/dev/tcp/127.0.0.1/6333 && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && read -r line <&3 && [[ $line == *' 200'* ]]`,
        ],
        intervalMs: 5000,
        timeoutMs: 3000,
        startPeriodMs: 30_000,
        retries: 6,
      },
      memoryBytes: GIB,
      restart: "unless-stopped",
    },
    // A graphics card is added when the container is planned, if the engine can pass one on.
    ollama: {
      image: "ollama/ollama:0.32.15",
      environment: {},
      ports: [{ host: 11_434, container: 11_434 }],
      volumes: [{ volume: "ollama_models", target: "/root/.ollama" }],
      healthcheck: {
        test: ["CMD", "ollama", "list"],
        intervalMs: 5000,
        timeoutMs: 5000,
        startPeriodMs: 30_000,
        retries: 6,
      },
      memoryBytes: 12 * GIB,
      restart: "unless-stopped",
    },
  },
};

/** Compose's own labels, so that both tools see the same project, and ours. */
export const SIDECAR_LABEL = {
  project: "com.docker.compose.project",
  service: "com.docker.compose.service",
  volume: "com.docker.compose.volume",
  network: "com.docker.compose.network",
  number: "com.docker.compose.container-number",
  oneOff: "com.docker.compose.oneoff",
  hash: "com.docker.compose.config-hash",
  /** Set only by compose. */
  composeVersion: "com.docker.compose.version",
  /** Ours: a thing without it is not kept, changed or removed. */
  sidecar: "dev.harness.sidecar",
} as const;

/** How one sidecar ended up. None of these ends a run. */
export interface Sidecar {
  readonly service: string;
  readonly state: "running" | "unhealthy" | "no-image" | "failed";
  readonly detail: string;
}

/** What serves if a sidecar does not. */
const FALLBACKS: Readonly<Record<string, string>> = {
  qdrant: "the embedded index serves instead",
  ollama: "an Ollama on the host serves instead, if there is one",
};

/** A sidecar as the set-up reports it: never a failure, because harness works without it. */
export function healthOfSidecar({ service, state, detail }: Sidecar): Health {
  const id = `sidecar.${service}`;
  if (state === "running") return healthy(id, detail);
  const instead = FALLBACKS[service];
  return warningHealth(id, instead === undefined ? detail : `${detail}; ${instead}`);
}

/** The requests to the engine for one service; the same values give the same plan. */
export interface SidecarPlan {
  readonly service: string;
  readonly project: string;
  readonly image: string;
  /** The container's name. */
  readonly name: string;
  /** Hash of everything in `container`: if it differs, the container must be made anew. */
  readonly hash: string;
  /** The published addresses as a person types them: 127.0.0.1:6333. */
  readonly addresses: readonly string[];
  readonly container: ContainerCreateOptions;
  readonly network: NetworkCreateOptions;
  readonly volumes: readonly VolumeCreateOptions[];
}

const LOOPBACK = "127.0.0.1";

/** A container's share of a graphics card. The service itself does not mention it, because machines differ. */
function gpuOptions(gpu: Gpu | null): {
  readonly env: readonly string[];
  readonly host: Partial<HostConfig>;
} {
  if (gpu === null) return { env: [], host: {} };
  if (gpu.kind === "nvidia")
    return { env: [], host: { DeviceRequests: [{ Driver: "nvidia", Count: -1, Capabilities: [["gpu"]] }] } };
  const devices = gpu.devices.map((PathOnHost) => ({
    PathOnHost,
    PathInContainer: PathOnHost,
    CgroupPermissions: "rw",
  }));
  return { env: ["OLLAMA_VULKAN=1"], host: { Devices: devices } };
}

export function planSidecar<Name extends string>(
  project: SidecarProject<Name>,
  service: Name,
  gpu: Gpu | null = null,
): SidecarPlan {
  const wanted = project.services[service];
  const gpuParts = gpuOptions(gpu);
  const name = `${project.name}-${service}-1`;
  const network = `${project.name}_default`;
  const labels = { [SIDECAR_LABEL.project]: project.name, [SIDECAR_LABEL.sidecar]: service };
  const bare: ContainerCreateOptions = {
    name,
    Image: wanted.image,
    Env: [...Object.entries(wanted.environment).map(([key, value]) => `${key}=${value}`), ...gpuParts.env],
    ...(wanted.command === undefined ? {} : { Cmd: [...wanted.command] }),
    ...(wanted.healthcheck === undefined ? {} : { Healthcheck: healthOf(wanted.healthcheck) }),
    Labels: {
      ...labels,
      [SIDECAR_LABEL.service]: service,
      [SIDECAR_LABEL.number]: "1",
      [SIDECAR_LABEL.oneOff]: "False",
    },
    ExposedPorts: Object.fromEntries(wanted.ports.map(({ container }) => [`${container}/tcp`, {}])),
    HostConfig: {
      NetworkMode: network,
      PortBindings: bindingsOf(wanted),
      Mounts: wanted.volumes.map(({ volume, target }) => ({
        Type: "volume",
        Source: `${project.name}_${volume}`,
        Target: target,
        ReadOnly: false,
      })),
      Memory: wanted.memoryBytes,
      RestartPolicy: { Name: wanted.restart },
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true"],
      ...gpuParts.host,
    },
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [service, name] } } },
  };
  const hash = createHash("sha256").update(JSON.stringify(bare)).digest("hex");
  return {
    service,
    project: project.name,
    image: wanted.image,
    name,
    hash,
    addresses: wanted.ports.map(({ host }) => `${LOOPBACK}:${host}`),
    container: { ...bare, Labels: { ...bare.Labels, [SIDECAR_LABEL.hash]: hash } },
    network: {
      Name: network,
      Driver: "bridge",
      CheckDuplicate: true,
      Labels: { ...labels, [SIDECAR_LABEL.network]: "default", [SIDECAR_LABEL.sidecar]: "default" },
    },
    volumes: wanted.volumes.map(({ volume }) => ({
      Name: `${project.name}_${volume}`,
      Labels: { ...labels, [SIDECAR_LABEL.volume]: volume, [SIDECAR_LABEL.sidecar]: volume },
    })),
  };
}

type Bindings = Record<string, { HostIp: string; HostPort: string }[]>;

const bindingsOf = ({ ports }: SidecarService): Bindings =>
  Object.fromEntries(
    ports.map(({ host, container }) => [`${container}/tcp`, [{ HostIp: LOOPBACK, HostPort: String(host) }]]),
  );

/** The engine counts in nanoseconds. */
const healthOf = (check: Healthcheck): HealthConfig => ({
  Test: [...check.test],
  Interval: check.intervalMs * 1e6,
  Timeout: check.timeoutMs * 1e6,
  StartPeriod: check.startPeriodMs * 1e6,
  Retries: check.retries,
});

/** The container of a plan, if it runs; null if it does not, or if the engine cannot tell. */
export async function runningSidecar(
  api: Docker,
  { name, service }: SidecarPlan,
): Promise<{ readonly gpu: boolean } | null> {
  try {
    const { State, Config, HostConfig } = await api.getContainer(name).inspect();
    if (!State.Running || Config.Labels[SIDECAR_LABEL.sidecar] !== service) return null;
    return { gpu: (HostConfig.DeviceRequests ?? []).length > 0 };
  } catch {
    return null;
  }
}

/** A graphics card that a container can be given, or why an existing card cannot be given. */
type FoundGpu =
  | { readonly kind: "nvidia" }
  | { readonly kind: "dri"; readonly devices: readonly string[] }
  /** There is a card, but the engine has no runtime to pass it on. */
  | { readonly kind: "not-handed-on" }
  | { readonly kind: "none" };

/** The part of a card that a sidecar is given. */
export type Gpu = Extract<FoundGpu, { readonly kind: "nvidia" | "dri" }>;

export const isGpu = (found: FoundGpu): found is Gpu => found.kind === "nvidia" || found.kind === "dri";

export const describeGpu = ({ kind }: Gpu): string =>
  kind === "nvidia" ? "the NVIDIA graphics card" : "the graphics card behind /dev/dri";

/**
 * Asks the engine and looks at the devices of this machine. NVIDIA's cards need a runtime of the engine; others are
 * passed on as devices, which are known only for an engine on this machine. Never throws: what cannot be found out
 * counts as missing.
 */
export async function findGpu(api: Docker, host: string, devices = "/dev"): Promise<FoundGpu> {
  const info = (await api.info().catch(() => ({}))) as {
    readonly Runtimes?: Readonly<Record<string, unknown>> | null;
  };
  if (Object.hasOwn(info.Runtimes ?? {}, "nvidia")) return { kind: "nvidia" };
  if (!host.startsWith("unix:")) return { kind: "none" };
  const [top, cards] = await Promise.all([namesIn(devices), namesIn(`${devices}/dri`)]);
  // Its device in /dev/dri is of no use to a container without NVIDIA's own libraries.
  if (top.includes("nvidia0")) return { kind: "not-handed-on" };
  if (!cards.some((name) => name.startsWith("renderD"))) return { kind: "none" };
  return {
    kind: "dri",
    devices: ["dri", ...(top.includes("kfd") ? ["kfd"] : [])].map((name) => `${devices}/${name}`),
  };
}

const namesIn = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => []);
