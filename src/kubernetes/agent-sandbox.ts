import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { formatDuration } from "../core/wording.ts";
import { checkedRights, SANDBOX_RULE } from "./cluster-rights.ts";
import { ApiFailure, type Cluster } from "./cluster.ts";
import { field } from "./pod-readback.ts";
import {
  BOX,
  CLAIM_LABEL,
  type JsonObject,
  NAME_LABEL,
  type OwnBox,
  ownedBy,
  podLabels,
  type PodOwner,
  type PodPlan,
  podSpec,
} from "./pod-spec.ts";
import {
  createdAt,
  failureError,
  isRunning,
  mayFit,
  podIfAny,
  type PodState,
  refusalOf,
  type Starting,
  wordOf,
} from "./pod-watch.ts";

/**
 * A box as a Sandbox of kubernetes-sigs/agent-sandbox: a Sandbox holds the pod as a template, and its controller
 * creates the pod under the same name, with the Sandbox as its owner. Supported from 0.5 on, which serves v1beta1.
 */
const SANDBOX_API = "agents.x-k8s.io/v1beta1";

/** The path of the namespace's Sandboxes. */
export const SANDBOXES = (cluster: Cluster): string => cluster.at("sandboxes", `apis/${SANDBOX_API}`);

/** `auto`: if the cluster has Sandboxes and allows them. */
export type SandboxWish = "auto" | "never" | "always";

export async function boxKind(cluster: Cluster, wish: SandboxWish): Promise<OwnBox> {
  if (wish === "never") return "Pod";
  const why = await sandboxRefusal(cluster);
  if (why === undefined) return "Sandbox";
  if (wish === "auto") return "Pod";
  throw new HarnessError(EXIT.sandbox, `boxes cannot be Sandboxes: ${why}`, NEXT_SANDBOX);
}

export const NEXT_SANDBOX = `kubectl api-resources --api-group agents.x-k8s.io   (or bare pods: kubernetes.sandbox_resource "auto"; docs/kubernetes.md has the role)`;

/** Why no box here can be a Sandbox; undefined if one can. */
export async function sandboxRefusal(cluster: Cluster): Promise<string | undefined> {
  if (!(await servesSandboxes(cluster))) return `the cluster does not serve Sandbox of ${SANDBOX_API}`;
  try {
    const { missing } = await checkedRights(cluster, [SANDBOX_RULE]);
    return missing.length === 0
      ? undefined
      : `rights missing in ${cluster.namespace}: ${missing.join(", ")} (agents.x-k8s.io)`;
  } catch (thrown) {
    if (!isRefused(thrown)) throw refusalOf(thrown);
    return `the cluster does not report your rights: ${thrown.message}`;
  }
}

export const servesSandboxes = (cluster: Cluster): Promise<boolean> =>
  servesKind(cluster, { api: SANDBOX_API, name: "sandboxes", kind: "Sandbox" });

interface ServedKind {
  /** Group and version. */
  readonly api: string;
  readonly name: string;
  readonly kind: string;
}

/** Asks once per cluster object; after a failure the next caller asks again. */
function servesKind(cluster: Cluster, wanted: ServedKind): Promise<boolean> {
  const { serves } = cluster;
  const known = serves.get(wanted.api);
  if (known !== undefined) return known;
  const asking = discovered(cluster, wanted);
  serves.set(wanted.api, asking);
  asking.catch(() => serves.delete(wanted.api));
  return asking;
}

/** A kind that may not be discovered counts as missing: then there is nothing of ours either. */
async function discovered(cluster: Cluster, { api, name, kind }: ServedKind): Promise<boolean> {
  try {
    const resources = field(await cluster.call(`/apis/${api}`), "resources");
    return (
      Array.isArray(resources) &&
      resources.some((one) => field(one, "name") === name && field(one, "kind") === kind)
    );
  } catch (thrown) {
    if (isRefused(thrown)) return false;
    throw refusalOf(thrown);
  }
}

const isRefused = (thrown: unknown): thrown is ApiFailure =>
  thrown instanceof ApiFailure && (thrown.status === 403 || thrown.status === 404);

/**
 * The Sandbox with the pod as its template. The pod's own deadline ends the box; at `until` the controller removes the
 * Sandbox and whatever pod it created since. No Service: nobody shall find a box by name.
 */
export function sandboxSpec(pod: JsonObject, until: Date): JsonObject {
  const metadata = pod["metadata"] as JsonObject;
  const { labels = {}, annotations = {} } = metadata;
  return {
    apiVersion: SANDBOX_API,
    kind: "Sandbox",
    metadata,
    spec: {
      podTemplate: { metadata: { labels, annotations }, spec: pod["spec"] ?? {} },
      service: false,
      shutdownTime: wholeSeconds(until),
      shutdownPolicy: "Delete",
    },
  };
}

/** A time as the API accepts it, without fractions of a second. */
const wholeSeconds = (time: Date): string => time.toISOString().replace(/\.\d+Z$/, "Z");

const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1000;
/** A controller retries at growing intervals, but looks at a new Sandbox at once. */
const ANEW_MS = 10_000;

/**
 * Creates a Sandbox and returns its pod once it exists. Reports what the controller says against the pod; a lasting
 * objection is thrown.
 */
export async function sandboxPod(
  cluster: Cluster,
  { name }: Pick<PodPlan, "name">,
  body: JsonObject,
  starting: Starting,
): Promise<PodState> {
  const { signal, scheduleMs, onWarning } = starting;
  const { now, wait } = cluster.time;
  const making = { cluster, name, body, starting };
  const uids: unknown[] = [await uidOfMade(making)];
  const deadline = now() + scheduleMs;
  const warned = new Set<string>();
  let last: ApiFailure | undefined;
  let anew = now() + ANEW_MS;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(2 * pause, LAST_LOOK_MS)) {
    const pod = await podIfAny(cluster, { name }, signal);
    // The pod of an abandoned Sandbox is deleted with it.
    if (pod !== undefined && !isOwnedBy(pod, uids.slice(0, -1)))
      return ofSandbox(pod, { name, uid: uids.at(-1) });
    const sandbox = await sandboxNamed(cluster, name, signal);
    const refusal = refusalIn(sandbox);
    last = refusal ?? last;
    if (refusal !== undefined && !mayPass(refusal)) throw refusalOf(refusal);
    if (now() > deadline) throw noPod(last, scheduleMs);
    if (refusal !== undefined && !warned.has(refusal.message))
      onWarning(`no pod of the box yet: ${refusal.message}; waiting up to ${formatDuration(scheduleMs)}`);
    warned.add(refusal?.message ?? "");
    await wait(pause, signal);
    if (!mayFit(refusal) || now() < anew) continue;
    if (await deleteSandbox(making, sandbox)) uids.push(await uidOfMade(making));
    anew = now() + ANEW_MS;
  }
}

interface Making {
  readonly cluster: Cluster;
  readonly name: string;
  readonly body: JsonObject;
  readonly starting: Starting;
}

async function uidOfMade({ cluster, name, body, starting }: Making): Promise<unknown> {
  const look = (): Promise<unknown> => sandboxNamed(cluster, name, starting.signal);
  return field(await createdAt(cluster, SANDBOXES(cluster), body, { ...starting, look }), "metadata", "uid");
}

/**
 * Deletes the Sandbox. False if it has changed meanwhile: its controller may have found room, or somebody removed it.
 */
async function deleteSandbox(
  { cluster, name, starting: { signal } }: Making,
  sandbox: unknown,
): Promise<boolean> {
  const preconditions = {
    uid: field(sandbox, "metadata", "uid"),
    resourceVersion: field(sandbox, "metadata", "resourceVersion"),
  };
  const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions };
  try {
    await cluster.call(`${SANDBOXES(cluster)}/${name}`, { method: "DELETE", body, signal });
    return true;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof ApiFailure && (thrown.status === 409 || thrown.status === 404)) return false;
    throw refusalOf(thrown);
  }
}

async function sandboxNamed(cluster: Cluster, name: string, signal: AbortSignal): Promise<unknown> {
  try {
    return await cluster.call(`${SANDBOXES(cluster)}/${name}`, { signal });
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof ApiFailure && thrown.status === 404)
      throw failureError({ word: "deleted", why: "the Sandbox is gone" }, thrown);
    throw refusalOf(thrown);
  }
}

/** The API's refusal to the controller, as if it had been sent to us. */
function refusalIn(sandbox: unknown): ApiFailure | undefined {
  const ready = readyCondition(sandbox);
  if (field(ready, "reason") !== "ReconcilerError" && field(ready, "reason") !== "MultiplePods")
    return undefined;
  const message = String(field(ready, "message")).replace(/^Error seen: /, "");
  const status = / is forbidden: /.test(message) ? 403 : 0;
  return new ApiFailure(status, "", `its controller says: ${message}`);
}

/** What the controller says about one of its objects. */
function readyCondition(object: unknown): unknown {
  const conditions = field(object, "status", "conditions");
  return Array.isArray(conditions) ? conditions.find((one) => field(one, "type") === "Ready") : undefined;
}

/** Whether to wait: the controller retries, so a conflict or a quota used by others may pass. */
const mayPass = (refusal: ApiFailure): boolean => wordOf(refusal) === "refused" || mayFit(refusal);

const noPod = (refusal: ApiFailure | undefined, ms: number): HarnessError => {
  const why = refusal?.message ?? "its controller reports nothing; check that it is running";
  return failureError({ word: "no pod made", why: `none within ${formatDuration(ms)}: ${why}` });
};

/** A pod of another owner would not be deleted with the Sandbox, and belongs to somebody else. */
function ofSandbox(pod: PodState, { name, uid }: { readonly name: string; readonly uid: unknown }): PodState {
  if (isOwnedBy(pod, [uid])) return pod;
  throw failureError({
    word: "refused",
    why: `there is already a pod ${name}, which does not belong to its Sandbox`,
  });
}

const isOwnedBy = ({ metadata }: PodState, uids: readonly unknown[]): boolean =>
  (metadata?.ownerReferences ?? []).some(
    (one) => one.controller === true && one.kind === "Sandbox" && uids.includes(one.uid),
  );

/** The object to own the policies: the pod, or its Sandbox, if that is ours alone. */
export function boxOwner({ metadata }: PodState, { name, kind }: Pick<PodPlan, "name" | "kind">): PodOwner {
  if (kind !== "Sandbox") return { name: metadata?.name ?? name, uid: metadata?.uid ?? "" };
  const uid = (metadata?.ownerReferences ?? []).find((one) => one.kind === "Sandbox")?.uid ?? "";
  return { apiVersion: SANDBOX_API, kind, name, uid };
}

/**
 * Boxes from a SandboxWarmPool of kubernetes-sigs/agent-sandbox: its pods run before they are needed, with only a
 * waiting runner. A SandboxClaim takes one of them for good; the pod is deleted with its claim and never given back.
 */
const POOL_API = "extensions.agents.x-k8s.io/v1beta1";

/** The path of the namespace's claims. */
export const CLAIMS = (cluster: Cluster): string => cluster.at("sandboxclaims", `apis/${POOL_API}`);
const POOLS = (cluster: Cluster): string => cluster.at("sandboxwarmpools", `apis/${POOL_API}`);

/** Without Sandboxes there are no claims, and nothing is asked. */
export const servesClaims = async (cluster: Cluster): Promise<boolean> =>
  (await servesSandboxes(cluster)) &&
  (await servesKind(cluster, { api: POOL_API, name: "sandboxclaims", kind: "SandboxClaim" }));

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

const FIRST_CLAIM_LOOK_MS = 30;
const LAST_CLAIM_LOOK_MS = 500;
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
  for (let pause = FIRST_CLAIM_LOOK_MS; ; pause = Math.min(2 * pause, LAST_CLAIM_LOOK_MS)) {
    const claim = await look().catch(throwNotFromPool);
    const sandboxName = field(claim, "status", "sandbox", "name");
    if (sandboxName === name) throw new NotFromPool("it has no waiting pods left");
    if (typeof sandboxName === "string" && sandboxName !== "") {
      const pod = await podIfAny(cluster, { name: sandboxName }, signal);
      if (pod !== undefined && isClaimed(pod, sandboxName, name)) return pod;
    }
    const why = claimRefusal(claim);
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
const isClaimed = (pod: PodState, sandbox: string, name: string): boolean =>
  field(pod, "metadata", "labels", CLAIM_LABEL) === name &&
  isRunning(pod, BOX) &&
  (pod.metadata?.ownerReferences ?? []).some(
    (one) => one.controller === true && one.kind === "Sandbox" && field(one, "name") === sandbox,
  );

/** A refusal that waiting does not cure. */
function claimRefusal(claim: unknown): string | undefined {
  const ready = readyCondition(claim);
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
    apiVersion: POOL_API,
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
      lifecycle: { shutdownTime: wholeSeconds(until), shutdownPolicy: "Delete" },
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

interface PoolWish {
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
      apiVersion: POOL_API,
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
      apiVersion: POOL_API,
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
