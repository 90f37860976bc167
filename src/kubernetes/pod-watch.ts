import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { formatDuration } from "../core/wording.ts";
import { ApiFailure, type Cluster, isLost, isThere } from "./cluster.ts";
import { amountOf } from "./pod-readback.ts";
import type { JsonObject, PodPlan } from "./pod-spec.ts";

type Named = Pick<PodPlan, "name">;

/** The complete pod as the cluster has it now; fails if it is gone. */
export async function podOf(cluster: Cluster, named: Named, signal?: AbortSignal): Promise<PodState> {
  const found = await podIfAny(cluster, named, signal);
  if (found === undefined) throw failureError({ word: "deleted", why: "the pod is gone" });
  return found;
}

/** The same, but undefined if there is no such pod. */
export async function podIfAny(
  cluster: Cluster,
  { name }: Named,
  signal?: AbortSignal,
): Promise<PodState | undefined> {
  try {
    return (await cluster.call(`${cluster.at("pods")}/${name}`, { signal })) as PodState;
  } catch (thrown) {
    if (thrown instanceof ApiFailure && thrown.status === 404) return undefined;
    // An aborted caller gets its own reason instead of a refusal.
    signal?.throwIfAborted();
    throw refusalOf(thrown);
  }
}

const QUOTA_LOOK_MS = 2000;
/** Between two watches, in case each ends at once. */
const NEXT_WATCH_MS = 500;

/** Creates a pod; returns it as the cluster made it. */
export const createdPod = (
  cluster: Cluster,
  plan: Named,
  body: JsonObject,
  starting: Starting,
): Promise<PodState> =>
  createdAt(cluster, cluster.at("pods"), body, {
    ...starting,
    look: () => podOf(cluster, plan, starting.signal),
  });

interface Making<T> extends Starting {
  /** Reads the object if it exists already. */
  readonly look: () => Promise<T>;
}

/**
 * Creates an object. Waits for room in a quota, as for a node: others end. The name is ours alone: if the object
 * exists, an earlier request created it and its answer was lost.
 */
export async function createdAt<T>(
  cluster: Cluster,
  where: string,
  body: JsonObject,
  { signal, scheduleMs, onWarning, look }: Making<T>,
): Promise<T> {
  const { now, wait } = cluster.time;
  const deadline = now() + scheduleMs;
  for (let warned = false; ; warned = true) {
    try {
      return (await cluster.call(where, { method: "POST", body, signal })) as T;
    } catch (thrown) {
      if (isThere(thrown)) return await look();
      if (!mayFit(thrown) || now() > deadline) throw refusalOf(thrown);
      if (!warned)
        onWarning(
          `the namespace's quota has no room for the box yet: ${thrown.message}; waiting up to ${formatDuration(scheduleMs)}`,
        );
      await wait(QUOTA_LOOK_MS, signal);
    }
  }
}

/** Whether the object would fit into the quota if nobody else used it. */
export function mayFit(thrown: unknown): thrown is ApiFailure {
  if (!(thrown instanceof ApiFailure)) return false;
  const match = /exceeded quota: [^,]*, requested: (.*), used: .*, limited: (.*)$/.exec(thrown.message);
  const [requested, limited] = [amountsIn(match?.[1]), amountsIn(match?.[2])];
  return (
    requested.size > 0 &&
    [...requested].every(([name, amount]) => amount <= (limited.get(name) ?? Number.NEGATIVE_INFINITY))
  );
}

const amountsIn = (text = ""): ReadonlyMap<string, number> =>
  new Map(
    text.split(",").flatMap((pair): readonly [string, number][] => {
      const [name = "", value] = pair.split("=");
      const amount = amountOf(value);
      return amount === undefined ? [] : [[name, amount]];
    }),
  );

/** How to wait for a starting pod. */
export interface Starting {
  /** Aborts when the pod should have started. */
  readonly signal: AbortSignal;
  /** Time limit for a pod that fits on no node; the scheduler's reason is reported at once. */
  readonly scheduleMs: number;
  readonly onWarning: (text: string) => void;
}

/**
 * The pod, once this container runs. Looks, then watches from there; if the server ends the watch or calls it too old,
 * looks again.
 */
export async function untilRunning(
  cluster: Cluster,
  pod: Named,
  container: string,
  starting: Starting,
): Promise<PodState> {
  const latest: { last: PodState } = { last: {} };
  using place = new NodeWait(starting);
  const signal = AbortSignal.any([starting.signal, place.late]);
  try {
    for (;;) {
      latest.last = await podOf(cluster, pod, signal);
      const watching = { latest, container, signal, place };
      if (isReady(latest.last, watching) || (await watchUntilReady(cluster, pod, watching)))
        return latest.last;
      await cluster.time.wait(NEXT_WATCH_MS, signal);
    }
  } catch (thrown) {
    if (!signal.aborted || thrown instanceof HarnessError) throw thrown;
    const why = `it did not start in time (${latest.last.status?.phase ?? "unknown"})`;
    throw failureError(podFailure(latest.last) ?? { word: "ended", why }, thrown);
  }
}

/** Waits for a node with room. Each reason of the scheduler is reported once. */
class NodeWait implements Disposable {
  readonly #starting: Starting;
  readonly #late = new AbortController();
  readonly #reported = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(starting: Starting) {
    this.#starting = starting;
  }

  get late(): AbortSignal {
    return this.#late.signal;
  }

  look(why: string | undefined): void {
    if (why === undefined) return this[Symbol.dispose]();
    const { scheduleMs, onWarning } = this.#starting;
    this.#timer ??= setTimeout(() => this.#late.abort(), scheduleMs);
    if (this.#reported.has(why)) return;
    this.#reported.add(why);
    onWarning(`no node has room for the box yet: ${why}; waiting up to ${formatDuration(scheduleMs)}`);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

interface Watching {
  readonly latest: { last: PodState };
  readonly container: string;
  readonly signal: AbortSignal;
  readonly place: NodeWait;
}

/** False if the watch ended before the container ran. */
async function watchUntilReady(cluster: Cluster, { name }: Named, watching: Watching): Promise<boolean> {
  const { latest, signal } = watching;
  const query = new URLSearchParams({
    watch: "1",
    fieldSelector: `metadata.name=${name}`,
    resourceVersion: latest.last.metadata?.resourceVersion ?? "",
    timeoutSeconds: "60",
  });
  try {
    for await (const event of cluster.watch(`${cluster.at("pods")}?${query.toString()}`, signal)) {
      const { type, object } = event as { readonly type?: string; readonly object?: PodState };
      if (type === "ERROR" || object === undefined) return false;
      if (type === "DELETED")
        throw failureError({ word: "deleted", why: "the pod was removed while it started" });
      latest.last = object;
      if (isReady(object, watching)) return true;
    }
  } catch (thrown) {
    if (thrown instanceof ApiFailure && thrown.status !== 410) throw refusalOf(thrown);
    if (!isLost(thrown) && !(thrown instanceof ApiFailure)) throw thrown;
  }
  return false;
}

/** A pod that fits nowhere now may fit when others end, so that is waited for; no other failure gets better. */
function isReady(pod: PodState, { container, place }: Watching): boolean {
  if (isRunning(pod, container)) return true;
  const failure = podFailure(pod);
  if (failure !== undefined && failure.word !== "unschedulable") throw failureError(failure);
  place.look(failure?.why);
  return false;
}

/** Each cause has its own word, by which scripts and people distinguish causes. */
type Word =
  | "not authorised"
  | "quota"
  | "webhook refusal"
  | "image cannot be pulled"
  | "no seccomp profile"
  | "no pod made"
  | "unschedulable"
  | "evicted"
  | "out of memory"
  | "deadline"
  | "deleted"
  | "watch expired"
  | "refused"
  | "ended";

interface Failure {
  readonly word: Word;
  readonly why: string;
}

const NEXT: Readonly<Record<Word, string>> = {
  "not authorised": "kubectl auth can-i create pods   (docs/kubernetes.md has the role that a box needs)",
  quota: "kubectl describe resourcequota   (or ask for less: --memory, --cpus)",
  "webhook refusal":
    "ask the cluster's administrator what it admits; docs/kubernetes.md describes the pod of a box",
  "image cannot be pulled":
    "name one that the nodes can pull: harness config set kubernetes '{\"image\": …}'",
  "no seccomp profile":
    'install it on every node (docs/kubernetes.md explains how), or: harness config set kubernetes \'{"seccomp": "RuntimeDefault", …}\'',
  "no pod made":
    'kubectl get pods --namespace agent-sandbox-system   (or bare pods: harness config set kubernetes \'{"sandbox_resource": "never", …}\')',
  unschedulable:
    "kubectl get nodes   (or ask for less: --memory, --cpus; kubernetes.node_selector; or wait longer: kubernetes.schedule_timeout)",
  evicted: "the node ran short of a resource: try again, or ask for less: --memory, --cpus",
  "out of memory": "give the box more: --memory",
  deadline: "allow more time: kubernetes.deadline",
  deleted: "somebody removed the pod: start again",
  "watch expired": "start again",
  refused: "kubectl get events",
  ended: "kubectl get events",
};

export const failureError = ({ word, why }: Failure, cause?: unknown): HarnessError =>
  new HarnessError(EXIT.sandbox, `no pod as a box: ${word}: ${why}`, NEXT[word], cause);

/** The meaning of the API server's refusal to create something. */
export function refusalOf(thrown: unknown): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const why = reasonOf(thrown);
  return failureError({ word: thrown instanceof ApiFailure ? wordOf(thrown) : "refused", why }, thrown);
}

export function wordOf({ status, message }: ApiFailure): Word {
  if (/admission webhook .* denied|denied (?:the )?request|violates PodSecurity/i.test(message))
    return "webhook refusal";
  if (/exceeded quota|must specify .*(?:limits|requests)/i.test(message)) return "quota";
  if (status === 401 || status === 403) return "not authorised";
  if (status === 410) return "watch expired";
  return "refused";
}

/** The part of a pod that describes its state. */
export interface PodState {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly {
      readonly kind?: string;
      readonly uid?: string;
      readonly controller?: boolean;
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly hostIP?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly {
      readonly type?: string;
      readonly status?: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly ContainerState[];
    readonly initContainerStatuses?: readonly ContainerState[];
  };
}

interface ContainerState {
  readonly name?: string;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: {
      readonly reason?: string;
      readonly message?: string;
      readonly exitCode?: number;
    };
  };
}

const IMAGE =
  /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ImageInspectError|RegistryUnavailable|SignatureValidationFailed)$/;
const STUCK = /^(?:CreateContainerConfigError|CreateContainerError|RunContainerError|CrashLoopBackOff)$/;

export const isRunning = ({ status }: PodState, container: string): boolean =>
  [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].some(
    ({ name, state }) => name === container && state?.running !== undefined,
  );

/** Why this pod cannot be or remain a box; undefined as long as it can. */
export const podFailure = (pod: PodState): Failure | undefined => {
  const states = statesOf(pod);
  return waitingFailure(states) ?? phaseFailure(pod) ?? endedFailure(pod, states) ?? unscheduled(pod);
};

type StateOfContainer = NonNullable<ContainerState["state"]>;

const statesOf = ({ status = {} }: PodState): readonly StateOfContainer[] =>
  [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].flatMap(
    ({ state }) => state ?? [],
  );

function waitingFailure(states: readonly StateOfContainer[]): Failure | undefined {
  for (const { waiting } of states) {
    const { reason = "", message = "" } = waiting ?? {};
    const why = message === "" ? reason : message;
    if (IMAGE.test(reason)) return { word: "image cannot be pulled", why };
    if (STUCK.test(reason)) return { word: /seccomp/i.test(why) ? "no seccomp profile" : "refused", why };
  }
  return undefined;
}

const REASONS: Readonly<Record<string, Word>> = { Evicted: "evicted", DeadlineExceeded: "deadline" };

function phaseFailure({ metadata, status = {} }: PodState): Failure | undefined {
  const word = REASONS[status.reason ?? ""];
  if (word !== undefined) return { word, why: status.message ?? status.reason ?? "" };
  return metadata?.deletionTimestamp === undefined
    ? undefined
    : { word: "deleted", why: "the pod is being removed" };
}

function endedFailure({ status = {} }: PodState, states: readonly StateOfContainer[]): Failure | undefined {
  if (states.some(({ terminated }) => terminated?.reason === "OOMKilled"))
    return { word: "out of memory", why: "the pod's memory limit was reached" };
  if (status.phase !== "Failed" && status.phase !== "Succeeded") return undefined;
  const ended = states.find(({ terminated }) => terminated !== undefined)?.terminated;
  return { word: "ended", why: ended?.message ?? `its first process ended with ${ended?.exitCode ?? "?"}` };
}

function unscheduled({ status = {} }: PodState): Failure | undefined {
  const found = status.conditions?.find(
    ({ type, status: is, reason }) => type === "PodScheduled" && is === "False" && reason === "Unschedulable",
  );
  return found && { word: "unschedulable", why: found.message ?? "" };
}
