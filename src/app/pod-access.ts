import type { Settings } from "../config/settings-schema.ts";
import { engineText } from "../core/engine-address.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { OwnedBox } from "../core/ports.ts";
import { type Cluster, clusterOf } from "../kubernetes/cluster.ts";
import {
  listPods,
  type ListedPod,
  type PodLeftover,
  reapPods,
  removeBoxPod,
} from "../kubernetes/own-pods.ts";
import { startPodBox } from "../kubernetes/start-pod-box.ts";
import type { BoxOpening } from "./box-access.ts";
import type { Host } from "./host.ts";
import type { ClusterName } from "./named-engine.ts";
/** Opens boxes as pods of a cluster. Loaded only where a cluster is named: the client of its API is large. */

const clusterNamed = ({ env, places }: Host, address: ClusterName): Promise<Cluster> =>
  clusterOf(address, { env, home: places.home });

/** A verified box over a copy of the workspace, as the settings want it. */
export async function openPodFor(
  opening: BoxOpening,
  address: ClusterName,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { host, settings, workspace, watchChanges, keep, warn } = opening;
  refuseUnable(opening, address);
  const cluster = await clusterNamed(host, address);
  const { mode, memory, cpus, pids, kubernetes } = settings;
  const { home, state } = host.places;
  const maker = { cluster, uid: host.uid, home, stateDir: state, onWarning: warn };
  const wants = {
    image: imageOf(settings),
    pullPolicy: kubernetes.pull_policy,
    pullSecret: kubernetes.pull_secret,
    runtimeClass: kubernetes.runtime_class,
    seccomp: kubernetes.seccomp,
    nodeSelector: kubernetes.node_selector,
    disk: kubernetes.disk,
    deadlineMs: kubernetes.deadline,
    startMs: kubernetes.start_timeout,
    probe: kubernetes.probe,
  };
  const request = { workspace, mode, limits: { memory, cpus, pids }, watchChanges, keep, wants };
  return startPodBox(maker, request, signal);
}

function imageOf({ image, kubernetes }: Settings): string {
  const named = image ?? kubernetes.image;
  if (named !== null) return named;
  throw new HarnessError(
    EXIT.usage,
    "no image is named for pods: the nodes of a cluster have none of this machine's",
    'push the sandbox image to a registry they pull from, then: harness config set kubernetes \'{"image": "REGISTRY/harness-sandbox:TAG"}\'',
  );
}

/** What is asked for and cannot be had there is said before anything is made. */
function refuseUnable({ settings, runtime }: BoxOpening, address: ClusterName): void {
  const { allow_domains, secrets, isolation, env } = settings;
  const refused = (what: string, next: string): never => {
    throw new HarnessError(EXIT.usage, `${what}: ${engineText(address)}`, next);
  };
  if (isolation !== "copy")
    refused(
      "a cluster sees no file of this machine, and this wants a box over the folder itself",
      "use an engine of this machine for it: --engine unix:///var/run/docker.sock",
    );
  if (allow_domains.length > 0 || Object.keys(secrets).length > 0)
    refused(
      "boxes in a cluster reach nothing: no network and no secret can be granted there yet",
      "leave --allow-domain and --secret out, or use an engine of containers",
    );
  if (env !== null && env !== "none")
    refused(
      "environments are volumes of an engine of containers, and no pod has them",
      "leave --env out (--env none where a setting says it), and name an image that has what is wanted: --image",
    );
  if (runtime !== null)
    refused(
      "--runtime is the word of an engine of containers",
      'name the cluster\'s: harness config set kubernetes \'{"runtime_class": "gvisor"}\'',
    );
}

/** Those of this user that were made from here, the oldest first. */
export const ownPods = async (host: Host, address: ClusterName): Promise<readonly ListedPod[]> =>
  listPods(await clusterNamed(host, address), { uid: host.uid, stateDir: host.places.state });

export const removePod = async (host: Host, address: ClusterName, id: string): Promise<boolean> =>
  removeBoxPod(await clusterNamed(host, address), id);

/** Removes what runs that are gone have left there. */
export const sweepPods = async (host: Host, address: ClusterName): Promise<readonly PodLeftover[]> =>
  reapPods(await clusterNamed(host, address), { uid: host.uid, stateDir: host.places.state });
