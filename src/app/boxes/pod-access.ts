/** Opens boxes as pods of a cluster. Loaded only if a cluster is named: the client of its API is large. */
import { randomBytes } from "node:crypto";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { thisProcess } from "../../boxes/box-record.ts";
import { maskedBox } from "../../boxes/masked-box.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { engineText } from "../../core/addresses.ts";
import {
  warningHealth,
  unhealthy,
  EXIT,
  HarnessError,
  type Health,
  healthy,
  reasonOf,
} from "../../core/errors.ts";
import { formatDuration } from "../../core/wording.ts";
import type { ListedBox, OwnedBox } from "../../core/ports.ts";
import { folderForMounts } from "../../docker/box/account.ts";
import {
  type BoxNetwork,
  farNetworkFolder,
  type NetworkRequest,
  openNetwork,
  reapFarNetworks,
} from "../../docker/egress/box-network.ts";
import { clusterHealth } from "../../kubernetes/cluster-health.ts";
import { type Cluster, clusterOf } from "../../kubernetes/cluster.ts";
import {
  listPods,
  loopPod,
  type PodLeftover,
  podNamed,
  reapPods,
  removeBoxPod,
} from "../../kubernetes/own-pods.ts";
import { startPodBox } from "../../kubernetes/start-pod-box.ts";
import { type BoxOpening, withServices } from "./box-access.ts";
import { environmentOf } from "./own-boxes.ts";
import { podEnvironmentFor, podNoteOn, pushedImage } from "./pod-environment.ts";
import { NO_ENVIRONMENT } from "./workspace-environment.ts";
import { networkFor } from "./granted-network.ts";
import type { ClusterName, Host } from "../host.ts";

const clusterNamed = ({ env, places }: Host, address: ClusterName): Promise<Cluster> =>
  clusterOf(address, { env, home: places.home });

/** A verified box over a copy of the workspace, with the given settings. */
export async function openPodFor(
  opening: BoxOpening,
  address: ClusterName,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { host, settings, workspace, watchChanges, keep, warn } = opening;
  refuseUnable(opening, address);
  const wanted = await networkFor(opening, signal);
  const cluster = await clusterNamed(host, address);
  const environment =
    opening.ownOnly === true ? undefined : await podEnvironmentFor({ host, settings, workspace, warn });
  const { mode, memory, cpus, pids, kubernetes } = settings;
  const { home, state } = host.places;
  const pod = loopPod(host.env, cluster.namespace);
  const maker = { cluster, uid: host.uid, home, stateDir: state, pod, onWarning: warn };
  const wants = {
    image: environment?.image ?? imageOf(settings),
    pullPolicy: kubernetes.pull_policy,
    pullSecret: kubernetes.pull_secret,
    runtimeClass: kubernetes.runtime_class,
    seccomp: kubernetes.seccomp,
    nodeSelector: kubernetes.node_selector,
    brought: environment?.brought ?? [],
    disk: kubernetes.disk,
    deadlineMs: kubernetes.deadline,
    startMs: kubernetes.start_timeout,
    scheduleMs: pod === null ? kubernetes.schedule_timeout : randomised(kubernetes.schedule_timeout),
    sandboxResource: kubernetes.sandbox_resource,
    warmPool: kubernetes.warm_pool,
    probe: kubernetes.probe,
  };
  const network = wanted === undefined ? {} : { network: () => openProxyNetwork(wanted, maker) };
  const env = environment?.env ?? {};
  const common = { workspace, mode, limits: { memory, cpus, pids }, watchChanges, keep, env, wants };
  const starting = startPodBox(maker, { ...common, ...network }, signal);
  const box = await withServices(starting, environment?.services ?? [], signal);
  return maskedBox(box, wanted?.secrets ?? []);
}

/** The proxy of a pod's network, in a folder of this machine that no box mounts. */
async function openProxyNetwork(
  wanted: NetworkRequest,
  { uid, stateDir }: { readonly uid: number; readonly stateDir: string },
): Promise<BoxNetwork> {
  const mounts = await folderForMounts(uid, stateDir);
  await reapFarNetworks(mounts);
  const folder = farNetworkFolder(mounts, randomBytes(8).toString("hex"));
  const { opened } = await openNetwork(wanted, { folder, owner: await thisProcess() });
  return opened;
}

/**
 * Loops may hold the room that all of their boxes wait for. Random waits make them give up one after the other, so that
 * the next one gets the room.
 */
const randomised = (ms: number): number => ms * (1 + Math.random());

function imageOf({ image, kubernetes }: Settings): string {
  const named = image ?? kubernetes.image;
  if (named !== null) return named;
  throw new HarnessError(
    EXIT.usage,
    "no image is set for pods: the nodes of a cluster do not have this machine's images",
    'push the sandbox image to a registry they pull from, then: harness config set kubernetes \'{"image": "REGISTRY/harness-sandbox:TAG"}\'',
  );
}

/** Refuses settings that a pod cannot have, before anything is made. */
function refuseUnable({ settings, runtime }: BoxOpening, address: ClusterName): void {
  const { isolation } = settings;
  const refused = (what: string, next: string): never => {
    throw new HarnessError(EXIT.usage, `${what}: ${engineText(address)}`, next);
  };
  if (isolation !== "copy")
    refused(
      "a cluster cannot see this machine's files, and this command needs a box on the folder itself",
      "use an engine on this machine: --engine unix:///var/run/docker.sock",
    );
  if (runtime !== null)
    refused(
      "--runtime works only with a container engine, not with a cluster",
      'set the cluster\'s runtime class: harness config set kubernetes \'{"runtime_class": "NAME"}\'',
    );
}

/**
 * The cluster as `doctor` reports it: its API, the rights, the runtime class, the state of the folder's environment
 * there; then a box over an empty folder, which shows that the nodes have the image, that a pod is made as requested,
 * and that its network is closed.
 */
export async function podHealth(
  host: Host,
  settings: Settings,
  address: ClusterName,
  workspace?: string,
): Promise<readonly Health[]> {
  const cluster = await clusterNamed(host, address);
  const found = await clusterHealth(cluster, {
    runtimeClass: settings.kubernetes.runtime_class,
    sandboxResource: settings.kubernetes.sandbox_resource,
    warmPool: settings.kubernetes.warm_pool,
  });
  const image = settings.image ?? settings.kubernetes.image;
  const named =
    image === null
      ? unhealthy(
          "image",
          "no image is set for pods",
          'harness config set kubernetes \'{"image": "REGISTRY/harness-sandbox:TAG"}\'',
        )
      : healthy("image", image);
  const environment = workspace === undefined ? [] : await environmentHealth(host, settings, workspace);
  const checks = [...found, named, ...environment];
  return checks.some(({ state }) => state === "fail")
    ? checks
    : [...checks, await testBox(host, settings, address)];
}

/** Empty if no environment was built. */
async function environmentHealth(
  host: Host,
  settings: Settings,
  workspace: string,
): Promise<readonly Health[]> {
  if (settings.image !== null || settings.env === NO_ENVIRONMENT) return [];
  const folder = await realpath(workspace).catch(() => workspace);
  const record = await environmentOf(host, folder, settings.env);
  if (record === undefined) return [];
  const note = await podNoteOn({ host, settings, workspace: folder }, record);
  const image = pushedImage(record) ?? "";
  return [note === undefined ? healthy("environment", image) : warningHealth("environment", note.text)];
}

const TRUE = { words: ["true"], timeoutMs: 10_000, keep: { head: 1024, tail: 0 } };

async function testBox(host: Host, settings: Settings, address: ClusterName): Promise<Health> {
  const workspace = await mkdtemp(path.join(tmpdir(), "harness-doctor-"));
  const begun = performance.now();
  const warnings: string[] = [];
  try {
    const own = { ...settings, mode: "workspace-write", isolation: "copy" } as const;
    const plain = { ...own, allow_domains: [], secrets: {}, env: null };
    const warn = (text: string): void => void warnings.push(text);
    const opening = {
      host,
      settings: plain,
      workspace,
      watchChanges: false,
      keep: null,
      warn,
      runtime: null,
    };
    await using box = await openPodFor(opening, address, new AbortController().signal);
    const ready = formatDuration(performance.now() - begun);
    const ran = await box.exec(TRUE, new AbortController().signal);
    return ran.exit_code === 0
      ? healthy("box", `verified in ${ready}, without network`)
      : unhealthy("box", `a command in a pod failed: ${ran.reason}`, "harness sandbox shell");
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "kubectl get events";
    return unhealthy("box", [reasonOf(thrown), ...warnings].join("; "), remedy);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

/** The pods of this user that were made from this machine, oldest first. */
export const ownPods = async (host: Host, address: ClusterName): Promise<readonly ListedBox[]> =>
  listPods(await clusterNamed(host, address), { uid: host.uid, stateDir: host.places.state });

export const removePod = async (host: Host, address: ClusterName, id: string): Promise<boolean> =>
  removeBoxPod(await clusterNamed(host, address), podNamed(id));

/** Removes what dead runs have left in the cluster. */
export const sweepPods = async (host: Host, address: ClusterName): Promise<readonly PodLeftover[]> =>
  reapPods(await clusterNamed(host, address), { uid: host.uid, stateDir: host.places.state });
