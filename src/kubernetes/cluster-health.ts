import { warningHealth, unhealthy, type Health, healthy, reasonOf } from "../core/errors.ts";
import { hasWaiting, NEXT_SANDBOX, sandboxRefusal, type SandboxWish } from "./agent-sandbox.ts";
import { boxRules, checkedRights } from "./cluster-rights.ts";
import { ApiFailure, type Cluster } from "./cluster.ts";
import { field } from "./pod-readback.ts";
import type { OwnBox } from "./pod-spec.ts";

/** Checks for `doctor` whether the cluster offers what boxes need; creates nothing. */
export async function clusterHealth(
  cluster: Cluster,
  {
    runtimeClass,
    sandboxResource,
    warmPool,
  }: {
    readonly runtimeClass: string | null;
    readonly sandboxResource: SandboxWish;
    readonly warmPool: string | null;
  },
): Promise<readonly Health[]> {
  const api = await apiHealth(cluster);
  if (api.state === "fail") return [api];
  const runtime = runtimeClass === null ? [] : [runtimeHealth(cluster, runtimeClass)];
  const pool = warmPool === null ? [] : [poolHealth(cluster, warmPool)];
  const { boxes, notes } = await sandboxHealth(cluster, sandboxResource);
  return [
    api,
    ...notes,
    ...(await Promise.all([rightsHealth(cluster, boxes, warmPool !== null), ...pool, ...runtime])),
  ];
}

interface Boxes {
  readonly boxes: OwnBox;
  readonly notes: readonly Health[];
}

/** Whether boxes are Sandboxes, and the reason if not. */
async function sandboxHealth(cluster: Cluster, wish: SandboxWish): Promise<Boxes> {
  if (wish === "never") return { boxes: "Pod", notes: [] };
  const boxes = wish === "always" ? "Sandbox" : "Pod";
  try {
    const why = await sandboxRefusal(cluster);
    if (why === undefined)
      return { boxes: "Sandbox", notes: [healthy("sandbox_resource", "each box is a Sandbox")] };
    if (wish === "auto")
      return { boxes, notes: [healthy("sandbox_resource", `boxes are bare pods: ${why}`)] };
    return { boxes, notes: [unhealthy("sandbox_resource", why, NEXT_SANDBOX)] };
  } catch (thrown) {
    const why = `cannot find out whether boxes can be Sandboxes: ${reasonOf(thrown)}`;
    return { boxes, notes: [unhealthy("sandbox_resource", why, NEXT_SANDBOX)] };
  }
}

const NEXT_API = "kubectl cluster-info   (or another one: --engine kubernetes://CONTEXT)";

async function apiHealth(cluster: Cluster): Promise<Health> {
  const at = `${cluster.server}, namespace ${cluster.namespace}`;
  try {
    const version = field(await cluster.call("/version"), "gitVersion");
    if (typeof version === "string") return healthy("engine", `Kubernetes ${version} at ${at}`);
    return unhealthy("engine", `what answers at ${at} is not a Kubernetes API`, NEXT_API);
  } catch (thrown) {
    const why = `the cluster at ${at} does not report its version: ${reasonOf(thrown)}`;
    return unhealthy("engine", why, NEXT_API);
  }
}

async function rightsHealth(cluster: Cluster, boxes: OwnBox, pool: boolean): Promise<Health> {
  try {
    const { asked, missing } = await checkedRights(cluster, boxRules(boxes, pool));
    return missing.length === 0
      ? healthy("rights", `all ${asked} that a box needs in ${cluster.namespace}`)
      : unhealthy("rights", `rights missing in ${cluster.namespace}: ${missing.join(", ")}`, NEXT_RIGHTS);
  } catch (thrown) {
    return unhealthy("rights", `the cluster does not report your rights: ${reasonOf(thrown)}`, NEXT_RIGHTS);
  }
}

/** A box that gets no pod from the pool has a pod of its own: a missing pool makes nothing fail. */
async function poolHealth(cluster: Cluster, name: string): Promise<Health> {
  try {
    return (await hasWaiting(cluster, name))
      ? healthy("warm_pool", `${name} has waiting pods`)
      : warningHealth("warm_pool", `${name} has no waiting pods: boxes get pods of their own`);
  } catch (thrown) {
    return warningHealth("warm_pool", `${name} cannot be looked up: ${reasonOf(thrown)}`);
  }
}

const NEXT_RIGHTS = "kubectl auth can-i --list   (docs/kubernetes.md has the role that a box needs)";

/** Runtime classes belong to the whole cluster, so not everybody may read them; a pod reveals a missing one anyway. */
async function runtimeHealth(cluster: Cluster, name: string): Promise<Health> {
  try {
    await cluster.call(`/apis/node.k8s.io/v1/runtimeclasses/${encodeURIComponent(name)}`);
    return healthy("runtime_class", name);
  } catch (thrown) {
    const status = thrown instanceof ApiFailure ? thrown.status : 0;
    if (status === 404)
      return unhealthy(
        "runtime_class",
        `the cluster has no runtime class ${name}`,
        "kubectl get runtimeclass   (kubernetes.runtime_class)",
      );
    return warningHealth("runtime_class", `${name} cannot be looked up: ${reasonOf(thrown)}`);
  }
}
