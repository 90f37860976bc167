import { HarnessError } from "../core/errors.ts";
import { formatDuration } from "../core/wording.ts";
import { ApiFailure, type Cluster, isLost, isThere } from "./cluster.ts";
import { failureError, isRunning, podFailure, type PodState, refusalOf } from "./pod-failure.ts";
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
  readonly #told = new Set<string>();
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
    if (this.#told.has(why)) return;
    this.#told.add(why);
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
