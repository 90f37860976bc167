import { HarnessError } from "../core/errors.ts";
import { ApiFailure, type Cluster, isLost } from "./cluster.ts";
import { failureError, isRunning, podFailure, type PodState, refusalOf } from "./pod-failure.ts";
import type { PodPlan } from "./pod-spec.ts";

type Named = Pick<PodPlan, "name">;

/** As the cluster has it now, whole. */
export async function podOf(cluster: Cluster, { name }: Named, signal?: AbortSignal): Promise<PodState> {
  try {
    return (await cluster.call(`${cluster.at("pods")}/${name}`, { signal })) as PodState;
  } catch (thrown) {
    if (thrown instanceof ApiFailure && thrown.status === 404)
      throw failureError({ word: "deleted", why: "the pod is gone" }, thrown);
    throw refusalOf(thrown);
  }
}

/**
 * The pod once this container of it runs. Looks, then watches from there; a watch that the server ends or calls too old
 * begins with another look.
 */
export async function running(
  cluster: Cluster,
  pod: Named,
  container: string,
  signal: AbortSignal,
): Promise<PodState> {
  const seen: { last: PodState } = { last: {} };
  try {
    for (;;) {
      seen.last = await podOf(cluster, pod, signal);
      if (isReady(seen.last, container) || (await watched(cluster, pod, { seen, container, signal })))
        return seen.last;
    }
  } catch (thrown) {
    if (!signal.aborted || thrown instanceof HarnessError) throw thrown;
    const why = `it did not start in time (${seen.last.status?.phase ?? "unknown"})`;
    throw failureError(podFailure(seen.last) ?? { word: "ended", why }, thrown);
  }
}

interface Watching {
  readonly seen: { last: PodState };
  readonly container: string;
  readonly signal: AbortSignal;
}

/** False where the watch ended before the container ran. */
async function watched(
  cluster: Cluster,
  { name }: Named,
  { seen, container, signal }: Watching,
): Promise<boolean> {
  const query = new URLSearchParams({
    watch: "1",
    fieldSelector: `metadata.name=${name}`,
    resourceVersion: seen.last.metadata?.resourceVersion ?? "",
    timeoutSeconds: "60",
  });
  try {
    for await (const event of cluster.watch(`${cluster.at("pods")}?${query.toString()}`, signal)) {
      const { type, object } = event as { readonly type?: string; readonly object?: PodState };
      if (type === "ERROR" || object === undefined) return false;
      if (type === "DELETED")
        throw failureError({ word: "deleted", why: "the pod was removed while it started" });
      seen.last = object;
      if (isReady(object, container)) return true;
    }
  } catch (thrown) {
    if (!isLost(thrown) && !(thrown instanceof ApiFailure && thrown.status === 410)) throw thrown;
  }
  return false;
}

/** A pod that fits nowhere now may fit when others end, so that is waited for; nothing else that failed gets better. */
function isReady(pod: PodState, container: string): boolean {
  if (isRunning(pod, container)) return true;
  const failure = podFailure(pod);
  if (failure !== undefined && failure.word !== "unschedulable") throw failureError(failure);
  return false;
}
