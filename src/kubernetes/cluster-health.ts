import { reasonOf } from "../core/errors.ts";
import { ailing, broken, type Health, healthy } from "../core/health.ts";
import { ApiFailure, type Cluster } from "./cluster.ts";
import { LOOP_RULES } from "./loop-role.ts";

/** What boxes need of a cluster, as `doctor` tells it; nothing is made there. */
export async function clusterHealth(
  cluster: Cluster,
  { runtimeClass }: { readonly runtimeClass: string | null },
): Promise<readonly Health[]> {
  const api = await apiHealth(cluster);
  if (api.state === "fail") return [api];
  const runtime = runtimeClass === null ? [] : [runtimeHealth(cluster, runtimeClass)];
  return [api, ...(await Promise.all([rightsHealth(cluster), ...runtime]))];
}

async function apiHealth(cluster: Cluster): Promise<Health> {
  const at = `${cluster.server}, namespace ${cluster.namespace}`;
  try {
    const found = await cluster.call("/version");
    const version =
      typeof found === "object" && found !== null && "gitVersion" in found ? found.gitVersion : "";
    return healthy("engine", `Kubernetes ${String(version)} at ${at}`);
  } catch (thrown) {
    const next = "kubectl cluster-info   (or another one: --engine kubernetes://CONTEXT)";
    return broken("engine", `the cluster at ${at} does not tell its version: ${reasonOf(thrown)}`, next);
  }
}

/** Whoever may use the API at all may ask what else they may. */
async function rightsHealth(cluster: Cluster): Promise<Health> {
  const wanted = LOOP_RULES.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => ({ group: apiGroups[0] ?? "", resource, verb }))),
  );
  try {
    const answers = await Promise.all(wanted.map((right) => mayI(cluster, right)));
    const missing = wanted.filter((_, nth) => answers[nth] !== true);
    if (missing.length === 0)
      return healthy("rights", `all ${wanted.length} that a box needs in ${cluster.namespace}`);
    const words = missing.map(({ resource, verb }) => `${verb} ${resource}`).join(", ");
    return broken("rights", `in ${cluster.namespace} you may not: ${words}`, NEXT_RIGHTS);
  } catch (thrown) {
    return broken("rights", `the cluster does not say what you may: ${reasonOf(thrown)}`, NEXT_RIGHTS);
  }
}

const NEXT_RIGHTS = "kubectl auth can-i --list   (docs/scale.md has the role that a box needs)";

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

async function mayI(cluster: Cluster, { group, resource, verb }: Right): Promise<boolean> {
  const [name = "", subresource] = resource.split("/");
  const asked = { namespace: cluster.namespace, group, resource: name, verb };
  const answer = await cluster.call("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    method: "POST",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: subresource === undefined ? asked : { ...asked, subresource } },
    },
  });
  const { status } = answer as { readonly status?: { readonly allowed?: unknown } };
  return status?.allowed === true;
}

/** Classes are the whole cluster's: not everybody may read them, and a pod tells in any case. */
async function runtimeHealth(cluster: Cluster, name: string): Promise<Health> {
  try {
    await cluster.call(`/apis/node.k8s.io/v1/runtimeclasses/${encodeURIComponent(name)}`);
    return healthy("runtime_class", name);
  } catch (thrown) {
    const status = thrown instanceof ApiFailure ? thrown.status : 0;
    if (status === 404)
      return broken(
        "runtime_class",
        `the cluster has no runtime class ${name}`,
        "kubectl get runtimeclass   (kubernetes.runtime_class)",
      );
    return ailing("runtime_class", `${name} cannot be looked up: ${reasonOf(thrown)}`);
  }
}
