import type { ContainerStatus, Pod } from "./manifest.ts";
import type { SeenPod } from "./batch-cluster.ts";

const INDEX = "batch.kubernetes.io/job-completion-index";
const FAILURES = "batch.kubernetes.io/job-index-failure-count";
/** Failures that do not count as tries. */
const IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";

/** What a pod of a batch tells about its row; undefined for a pod without an index. */
export function podSeen(object: unknown, gone: boolean): SeenPod | undefined {
  if (typeof object !== "object" || object === null) return undefined;
  const { metadata = {}, status = {} } = object as Pod;
  const { annotations = {}, labels = {}, name = "", ownerReferences = [], deletionTimestamp } = metadata;
  const named = annotations[INDEX] ?? labels[INDEX];
  if (named === undefined || !/^\d{1,6}$/.test(named)) return undefined;
  const [failures, ignored] = [numberIn(annotations[FAILURES]), numberIn(annotations[IGNORED])];
  const before = failures + ignored;
  const job = ownerReferences.find(({ controller }) => controller === true)?.uid ?? "";
  const ending = deletionTimestamp !== undefined;
  return { index: Number(named), name, job, gone, ending, failures, before, ...stateOf(status) };
}

const numberIn = (note = "0"): number => Number(note) || 0;

function stateOf(
  status: NonNullable<Pod["status"]>,
): Pick<SeenPod, "phase" | "waiting" | "end" | "reason" | "disrupted" | "ms"> {
  const { initContainerStatuses = [], containerStatuses = [], conditions = [], reason = "" } = status;
  const containers = [...initContainerStatuses, ...containerStatuses];
  const phase = PHASES[status.phase ?? ""] ?? "waiting";
  return {
    phase,
    waiting: phase === "waiting" ? waitingFor(containers, status) : undefined,
    end: endOf(containers),
    reason,
    disrupted: conditions.some(({ type, status: holds }) => type === "DisruptionTarget" && holds === "True"),
    ms: timeOf(status.startTime, containers.at(-1)?.state?.terminated?.finishedAt),
  };
}

/** Zero for a pod that never began or has not ended. */
function timeOf(startTime = "", finishedAt = ""): number {
  const ms = Date.parse(finishedAt) - Date.parse(startTime);
  return Number.isNaN(ms) ? 0 : Math.max(0, ms);
}

function endOf(containers: readonly ContainerStatus[]): SeenPod["end"] {
  return (
    containers
      .flatMap(({ name, state }) => {
        const ended = state?.terminated;
        if (ended === undefined || ended === null) return [];
        const { exitCode: code, reason = "", message = "", signal } = ended;
        const killed = code === 0 && signal !== undefined;
        return [{ container: name, code: killed ? 128 + signal : code, reason, message }];
      })
      // A successful clone is no end; the end of the loop always is.
      .findLast(({ container, code }) => container === "loop" || code !== 0)
  );
}

const PHASES: Readonly<Record<string, SeenPod["phase"]>> = {
  Pending: "waiting",
  Running: "running",
  Succeeded: "succeeded",
  Failed: "failed",
};

const IMAGE: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
]);

const UNMADE: ReadonlySet<string> = new Set(["CreateContainerConfigError", "CreateContainerError"]);

function waitingFor(
  containers: readonly ContainerStatus[],
  status: NonNullable<Pod["status"]>,
): SeenPod["waiting"] {
  for (const { state } of containers) {
    const { reason = "", message = "" } = state?.waiting ?? {};
    const kind = IMAGE.has(reason) ? "image" : UNMADE.has(reason) ? "other" : undefined;
    if (kind !== undefined) return { kind, why: message === "" ? reason : message };
  }
  const unplaced = (status.conditions ?? []).find(
    ({ type, status: holds }) => type === "PodScheduled" && holds === "False",
  );
  return unplaced === undefined
    ? undefined
    : { kind: "place", why: unplaced.message ?? unplaced.reason ?? "no node has room for it" };
}
