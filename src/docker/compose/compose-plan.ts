import { createHash } from "node:crypto";
import type Docker from "dockerode";
import type {
  Container,
  ContainerCreateOptions,
  ContainerInspectInfo,
  HealthConfig,
  HostConfig,
  NetworkCreateOptions,
  VolumeCreateOptions,
} from "dockerode";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { ComposeFile, Service } from "./compose-file.ts";
import { engineSays, ensureVolume, statusOf, unlessGone } from "./shared-compose.ts";
import { LABEL } from "./sidecar.ts";

/** What the engine is asked for, for one service; the same text in the file gives the same plan. */
export interface SidecarPlan {
  readonly service: string;
  readonly project: string;
  readonly image: string;
  /** The container's name. */
  readonly name: string;
  /** Of everything in `container`: another hash means that the container must be made anew. */
  readonly hash: string;
  /** What is published, as a person types it: 127.0.0.1:6333. */
  readonly addresses: readonly string[];
  readonly container: ContainerCreateOptions;
  readonly network: NetworkCreateOptions;
  readonly volumes: readonly VolumeCreateOptions[];
}

/** Plans for the named services; without names, for those under no profile. */
export function planSidecars(file: ComposeFile, names?: readonly string[]): readonly SidecarPlan[] {
  const all = Object.keys(file.services);
  const unknown = names?.find((name) => !Object.hasOwn(file.services, name));
  if (unknown !== undefined)
    throw new HarnessError(EXIT.usage, `${file.path}: no service ${unknown}; there is ${all.join(", ")}`);
  const chosen = names ?? all.filter((name) => file.services[name]?.profiles.length === 0);
  return chosen.flatMap((name) => {
    const service = file.services[name];
    return service === undefined ? [] : [planOne(file, name, service)];
  });
}

function planOne(file: ComposeFile, service: string, wanted: Service): SidecarPlan {
  const project = file.name;
  const name = `${project}-${service}-1`;
  const network = networkOf(file);
  const bare = containerOf(file, wanted, { name, service, network: network.Name });
  const hash = createHash("sha256").update(JSON.stringify(bare)).digest("hex");
  return {
    service,
    project,
    image: wanted.image,
    name,
    hash,
    addresses: wanted.ports.map(({ address, host }) => `${bracketed(address)}:${host}`),
    container: { ...bare, Labels: { ...bare.Labels, [LABEL.hash]: hash } },
    network,
    volumes: wanted.volumes.map(({ volume }) => volumeOf(file, volume)),
  };
}

const bracketed = (address: string): string => (address.includes(":") ? `[${address}]` : address);
const projectName = (file: ComposeFile, name: string): string => `${file.name}_${name}`;

const networkOf = (file: ComposeFile): NetworkCreateOptions => ({
  Name: projectName(file, "default"),
  Driver: "bridge",
  CheckDuplicate: true,
  Labels: {
    ...file.networks.default?.labels,
    [LABEL.project]: file.name,
    [LABEL.network]: "default",
    [LABEL.sidecar]: "default",
  },
});

const volumeOf = (file: ComposeFile, volume: string): VolumeCreateOptions => ({
  Name: projectName(file, volume),
  Labels: {
    ...file.volumes[volume]?.labels,
    [LABEL.project]: file.name,
    [LABEL.volume]: volume,
    [LABEL.sidecar]: volume,
  },
});

interface Names {
  readonly name: string;
  readonly service: string;
  readonly network: string;
}

function containerOf(file: ComposeFile, wanted: Service, names: Names): ContainerCreateOptions {
  const { command, entrypoint, user, healthcheck } = wanted;
  return {
    name: names.name,
    Image: wanted.image,
    Env: Object.entries(wanted.environment).map(([key, value]) => `${key}=${value}`),
    ...(command === undefined ? {} : { Cmd: [...command] }),
    ...(entrypoint === undefined ? {} : { Entrypoint: [...entrypoint] }),
    ...(user === undefined ? {} : { User: user }),
    ...(healthcheck === undefined ? {} : { Healthcheck: healthOf(healthcheck) }),
    Labels: {
      ...wanted.labels,
      [LABEL.project]: file.name,
      [LABEL.service]: names.service,
      [LABEL.number]: "1",
      [LABEL.oneOff]: "False",
      [LABEL.sidecar]: names.service,
    },
    ExposedPorts: Object.fromEntries(
      wanted.ports.map(({ container, protocol }) => [`${container}/${protocol}`, {}]),
    ),
    HostConfig: hostOf(file, wanted, names.network),
    NetworkingConfig: {
      EndpointsConfig: { [names.network]: { Aliases: [names.service, names.name] } },
    },
  };
}

function hostOf(file: ComposeFile, wanted: Service, network: string): HostConfig {
  return {
    NetworkMode: network,
    PortBindings: bindingsOf(wanted),
    Mounts: wanted.volumes.map(({ volume, target, readOnly }) => ({
      Type: "volume",
      Source: projectName(file, volume),
      Target: target,
      ReadOnly: readOnly,
    })),
    ...(wanted.mem_limit === undefined ? {} : { Memory: wanted.mem_limit }),
    RestartPolicy: { Name: wanted.restart },
    CapDrop: [...wanted.cap_drop],
    SecurityOpt: [...wanted.security_opt],
    ReadonlyRootfs: wanted.read_only,
    Tmpfs: Object.fromEntries(wanted.tmpfs.map(tmpfsOf)),
  };
}

function bindingsOf({ ports }: Service): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const { address, host, container, protocol } of ports)
    (bindings[`${container}/${protocol}`] ??= []).push({ HostIp: address, HostPort: String(host) });
  return bindings;
}

/** `/tmp` or `/tmp:size=64m,mode=1777`. */
function tmpfsOf(text: string): readonly [string, string] {
  const colon = text.indexOf(":");
  return colon === -1 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
}

/** The engine counts in nanoseconds; an absent bound is the engine's own. */
function healthOf(check: NonNullable<Service["healthcheck"]>): HealthConfig {
  const { test, interval, timeout, start_period: start, retries } = check;
  return {
    Test: [...test],
    ...(interval === undefined ? {} : { Interval: interval * 1e6 }),
    ...(timeout === undefined ? {} : { Timeout: timeout * 1e6 }),
    ...(start === undefined ? {} : { StartPeriod: start * 1e6 }),
    ...(retries === undefined ? {} : { Retries: retries }),
  };
}

/** Seconds for a sidecar to write its data down before it is killed. */
const STOP_SECONDS = 10;

/** Makes the container of a plan and starts it. One that did not start leaves no container behind. */
export async function placeContainer(
  api: Docker,
  plan: SidecarPlan,
  abortSignal: AbortSignal,
): Promise<Container> {
  for (const volume of plan.volumes) await ensureVolume(api, volume, abortSignal);
  const container = await api.createContainer({ ...plan.container, abortSignal });
  try {
    await startContainer(container, plan, abortSignal);
    return container;
  } catch (thrown) {
    await unlessGone(container.remove({ force: true, v: true }));
    throw thrown;
  }
}

/** Starts it unless it runs (304); where a port is taken, says which. */
export async function startContainer(
  container: Container,
  plan: SidecarPlan,
  abortSignal: AbortSignal,
): Promise<void> {
  try {
    await container.start({ abortSignal });
  } catch (thrown) {
    abortSignal.throwIfAborted();
    if (statusOf(thrown) === 304) return;
    throw new Error(startFailure(engineSays(reasonOf(thrown)), plan), { cause: thrown });
  }
}

/** True when a stopped container can never start again because its network was made anew since. */
export const lostItsNetwork = (thrown: unknown): boolean => /^network \S+ not found/.test(reasonOf(thrown));

/** A port that is taken, by the engine's words or compose's; any other reason as it stands. */
export function startFailure(reason: string, plan: SidecarPlan): string {
  if (!/port is already allocated|address already in use/i.test(reason)) return reason;
  const taken = plan.addresses.find((address) =>
    [":", " "].some((end) => reason.includes(`${address}${end}`)),
  );
  return `${taken ?? plan.addresses.join(" or ")} is in use by another program`;
}

/** Stops and removes it. Anonymous volumes go with it, named ones stay. */
export async function removeContainer(
  api: Docker,
  { Id }: Pick<ContainerInspectInfo, "Id">,
  abortSignal: AbortSignal,
): Promise<void> {
  const container = api.getContainer(Id);
  await unlessGone(container.stop({ t: STOP_SECONDS, abortSignal }));
  await unlessGone(container.remove({ force: true, v: true }));
}
