import { HarnessError, reasonOf } from "../core/errors.ts";
import { ApiFailure, type Cluster } from "./cluster.ts";
import { field } from "./pod-readback.ts";
import { isRunning, type PodState, refusalOf } from "./pod-failure.ts";
import {
  BOX,
  CLAIM_LABEL,
  type JsonObject,
  NAME_LABEL,
  ownedBy,
  podLabels,
  type PodPlan,
  podSpec,
} from "./pod-spec.ts";
import { servesKind, servesSandboxes } from "./sandbox-resource.ts";
import { createdAt, podIfAny, type Starting } from "./pod-watch.ts";

/**
 * Boxes from a SandboxWarmPool of kubernetes-sigs/agent-sandbox: its pods run before they are needed, with only a
 * waiting runner. A SandboxClaim takes one of them for good; the pod is deleted with its claim and never given back.
 */
const API = "extensions.agents.x-k8s.io/v1beta1";

/** The path of the namespace's claims. */
export const CLAIMS = (cluster: Cluster): string => cluster.at("sandboxclaims", `apis/${API}`);
const POOLS = (cluster: Cluster): string => cluster.at("sandboxwarmpools", `apis/${API}`);

/** Without Sandboxes there are no claims, and nothing is asked. */
export const servesClaims = async (cluster: Cluster): Promise<boolean> =>
  (await servesSandboxes(cluster)) &&
  (await servesKind(cluster, { api: API, name: "sandboxclaims", kind: "SandboxClaim" }));

/** Thrown if the pool gives no box; a pod of its own may still do. */
export class NotFromPool extends Error {
  override readonly name = "NotFromPool";
}

/** Whether the pool has a pod that waits. */
export async function hasWaiting(cluster: Cluster, pool: string): Promise<boolean> {
  try {
    const ready = field(await cluster.call(`${POOLS(cluster)}/${pool}`), "status", "readyReplicas");
    return typeof ready === "number" && ready > 0;
  } catch (thrown) {
    if (thrown instanceof ApiFailure) throw new NotFromPool(thrown.message, { cause: thrown });
    throw thrown;
  }
}

const [FIRST_LOOK_MS, LAST_LOOK_MS] = [30, 500];
/** A waiting pod is given at once or hardly ever. */
const CLAIMED_MS = 15_000;

interface Claiming extends Starting {
  readonly pool: string;
  /** Expiry of the claim on the cluster's clock: its controller then removes the claim and its pod. */
  readonly until: Date;
}

/** The pod that the controller gives for a claim with the box's name. */
export async function claimedPod(
  cluster: Cluster,
  plan: PodPlan,
  { pool, until, ...starting }: Claiming,
): Promise<PodState> {
  const { name } = plan;
  const { signal } = starting;
  const { now, wait } = cluster.time;
  const look = (): Promise<unknown> => cluster.call(`${CLAIMS(cluster)}/${name}`, { signal });
  await createdAt(cluster, CLAIMS(cluster), claimSpec(plan, pool, until), { ...starting, look }).catch(
    throwNotFromPool,
  );
  const deadline = now() + CLAIMED_MS;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(2 * pause, LAST_LOOK_MS)) {
    const claim = await look().catch(throwNotFromPool);
    const sandboxName = field(claim, "status", "sandbox", "name");
    if (sandboxName === name) throw new NotFromPool("it has no waiting pods left");
    if (typeof sandboxName === "string" && sandboxName !== "") {
      const pod = await podIfAny(cluster, { name: sandboxName }, signal);
      if (pod !== undefined && isGiven(pod, sandboxName, name)) return pod;
    }
    const why = refusalIn(claim);
    if (why !== undefined || now() > deadline) throw new NotFromPool(why ?? "its controller assigned none");
    await wait(pause, signal);
  }
}

const throwNotFromPool = (thrown: unknown): never => {
  const failure = thrown instanceof HarnessError ? thrown.cause : thrown;
  if (failure instanceof ApiFailure) throw new NotFromPool(failure.message, { cause: failure });
  throw refusalOf(thrown);
};

/** The labels come later: until then the pod is not known to be ours. */
const isGiven = (pod: PodState, sandbox: string, name: string): boolean =>
  field(pod, "metadata", "labels", CLAIM_LABEL) === name &&
  isRunning(pod, BOX) &&
  (pod.metadata?.ownerReferences ?? []).some(
    (one) => one.controller === true && one.kind === "Sandbox" && field(one, "name") === sandbox,
  );

/** A refusal that waiting does not cure. */
function refusalIn(claim: unknown): string | undefined {
  const conditions = field(claim, "status", "conditions");
  const ready: unknown = Array.isArray(conditions)
    ? conditions.find((one) => field(one, "type") === "Ready")
    : undefined;
  const reason = field(ready, "reason");
  const isOver = ["InvalidMetadata", "TemplateNotFound", "WarmPoolNotFound", "ClaimExpired"].includes(
    String(reason),
  );
  return isOver ? `its controller says: ${String(field(ready, "message"))}` : undefined;
}

/** With the controller's default settings, labels of a pool's pod may be of one domain only. */
function claimSpec(plan: PodPlan, pool: string, until: Date): JsonObject {
  const { name, namespace, owner, labels, annotations } = plan;
  return {
    apiVersion: API,
    kind: "SandboxClaim",
    metadata: {
      name,
      namespace,
      ...ownedBy(owner),
      labels: { ...labels, [NAME_LABEL]: name },
      annotations: { ...annotations },
    },
    spec: {
      warmPoolRef: { name: pool },
      lifecycle: { shutdownTime: until.toISOString().replace(/\.\d+Z$/, "Z"), shutdownPolicy: "Delete" },
      additionalPodMetadata: { labels: podLabels(plan), annotations: { ...annotations } },
    },
  };
}

/** Rejects a pod that has waited so long that it would end before the box does. */
export async function refuseTooOld(
  cluster: Cluster,
  pod: PodState,
  { deadlineMs }: Pick<PodPlan, "deadlineMs">,
): Promise<void> {
  const begun = Date.parse(String(field(pod, "status", "startTime")));
  const most = Number(field(pod, "spec", "activeDeadlineSeconds")) * 1000;
  const left = begun + most - (await cluster.now());
  if (!(left >= deadlineMs)) throw new NotFromPool("its pod has waited too long and would end too early");
}

export interface PoolWish {
  readonly pool: string;
  readonly replicas: number;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * The pool for boxes of this plan, created once by somebody with the right to do so. Its policy allows no traffic in or
 * out.
 */
export function poolObjects(plan: PodPlan, { pool, replicas, labels }: PoolWish): readonly JsonObject[] {
  const metadata = { name: pool, namespace: plan.namespace, labels };
  const spec = podSpec({ ...plan, kind: "Claim" })["spec"] ?? {};
  return [
    {
      apiVersion: API,
      kind: "SandboxTemplate",
      metadata,
      spec: {
        podTemplate: { spec },
        service: false,
        networkPolicyManagement: "Managed",
        networkPolicy: {},
      },
    },
    {
      apiVersion: API,
      kind: "SandboxWarmPool",
      metadata,
      // Pods of an older template are replaced.
      spec: { replicas, sandboxTemplateRef: { name: pool }, updateStrategy: { type: "Recreate" } },
    },
  ];
}

/** Explains why a box has a pod of its own although there is a pool. */
export const poolWarning = (pool: string, thrown: NotFromPool): string =>
  `no box from the warm pool ${pool}: ${reasonOf(thrown)}; the box gets a pod of its own`;
