import { HarnessError, reasonOf } from "../core/errors.ts";
import {
  type BatchCluster,
  ClusterTrouble,
  type SeenJob,
  type SeenPod,
  type TroubleKind,
} from "./batch-cluster.ts";
import { BATCH_LABEL } from "./batch-job.ts";
import {
  ApiFailure,
  type Cluster,
  type ContainerStatus,
  isOvertaken,
  isThere,
  type Job,
  type Method,
  type Pod,
} from "./cluster.ts";
import { field } from "./pod-readback.ts";
import { waitingTimeout } from "../platform/waits.ts";

/** Annotation that marks the rows of the Job as complete. */
const READY = "dev.harness.ready";
const BY = "dev.harness.made-by";
const PAGE = "500";
/** Of a list whose pages become too old to continue. */
const MAX_RESTARTS = 3;

/** A `BatchCluster` over the cluster's API server. */
export const batchClient = (requests: ClusterRequests, namespace: string): BatchCluster => ({
  ...jobCalls(requests, namespace),
  ...podCalls(requests, `/api/v1/namespaces/${namespace}/pods`),
});

type PodCalls = Pick<BatchCluster, "listPods" | "watchPods">;

function jobCalls(requests: ClusterRequests, namespace: string): Omit<BatchCluster, keyof PodCalls> {
  const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
  const core = `/api/v1/namespaces/${namespace}`;
  const maps = `${core}/configmaps`;
  const make = async (request: ClusterRequest, signal: AbortSignal): Promise<"made" | "there"> =>
    (await unlessThere(() => requests.ask(request, signal))) === undefined ? "there" : "made";
  return {
    tryJob: async (job, signal) => {
      const trial = { method: "POST", path: jobs, query: { dryRun: "All" }, body: job } as const;
      return (await unlessThere(() => requests.ask(trial, signal)))?.body as Job | undefined;
    },
    createJob: (job, by, signal) => {
      const metadata = { ...job.metadata, annotations: { ...job.metadata?.annotations, [BY]: by } };
      return make({ method: "POST", path: jobs, body: { ...job, metadata } }, signal);
    },
    createRows: async (rows, signal) => {
      if ((await make({ method: "POST", path: maps, body: rows }, signal)) === "made") return "made";
      const path = `${maps}/${rows.metadata?.name ?? ""}`;
      const { status, body } = await requests.ask({ method: "GET", path, expected: [404] }, signal);
      const found = field(body, "metadata", "ownerReferences", "0", "uid");
      const own = rows.metadata?.ownerReferences?.[0]?.uid;
      return status === 404 || (found !== undefined && found !== own) ? "of another" : "there";
    },
    readJob: async (name, signal) => {
      const { status, body } = await requests.ask(
        { method: "GET", path: `${jobs}/${name}`, expected: [404] },
        signal,
      );
      return status === 404 ? undefined : jobSeen(body as Job);
    },
    readyJob: async (name, { start }, signal) => {
      const body = {
        metadata: { annotations: { [READY]: "yes" } },
        ...(start ? { spec: { suspend: false } } : {}),
      };
      await requests.ask({ method: "PATCH", path: `${jobs}/${name}`, body }, signal);
    },
    suspendJob: async (name, signal) => {
      const body = { spec: { suspend: true } };
      await requests.ask({ method: "PATCH", path: `${jobs}/${name}`, body, expected: [404] }, signal);
    },
    hasServiceAccount: async (name, signal) => {
      const path = `${core}/serviceaccounts/${name}`;
      const { status } = await requests.ask({ method: "GET", path, expected: [404] }, signal);
      return status !== 404;
    },
    whyNoPods: async (name, signal) => {
      const query = {
        fieldSelector: `involvedObject.name=${name},involvedObject.kind=Job,type=Warning`,
        limit: PAGE,
      };
      const { body } = await requests.ask({ method: "GET", path: `${core}/events`, query }, signal);
      const items = field(body, "items");
      const messages = (Array.isArray(items) ? (items as readonly unknown[]) : []).map((item) =>
        field(item, "message"),
      );
      return [...new Set(messages.filter((text) => typeof text === "string"))].slice(-3);
    },
  };
}

/** Undefined if the object to be created exists already. */
async function unlessThere(ask: () => Promise<ClusterAnswer>): Promise<ClusterAnswer | undefined> {
  try {
    return await ask();
  } catch (thrown) {
    if (thrown instanceof ClusterTrouble && isThere(thrown.cause)) return undefined;
    throw thrown;
  }
}

const INDEX = "batch.kubernetes.io/job-completion-index";

const podsOf = (hash: string, index?: number): Readonly<Record<string, string>> => ({
  labelSelector: `${BATCH_LABEL}=${hash}${index === undefined ? "" : `,${INDEX}=${index}`}`,
});

function podCalls(requests: ClusterRequests, path: string): PodCalls {
  return {
    listPods: async ({ hash, index }, onPod, signal) => {
      let next: unknown;
      let restarts = 0;
      for (;;) {
        const query = {
          ...podsOf(hash, index),
          limit: PAGE,
          ...(typeof next === "string" ? { continue: next } : {}),
        };
        const expected = typeof next === "string" ? [410] : [];
        const { status, body } = await requests.ask({ method: "GET", path, query, expected }, signal);
        if (status === 410) {
          // The first page is too old to continue the list: start again, but not for ever.
          restarts += 1;
          if (restarts > MAX_RESTARTS) throw new ClusterTrouble("away", "its list of pods is always too old");
          next = undefined;
          continue;
        }
        const items = field(body, "items");
        for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) reportPod(item, onPod);
        next = field(body, "metadata", "continue");
        if (typeof next !== "string" || next === "")
          return { version: text(field(body, "metadata", "resourceVersion")) };
      }
    },
    watchPods: async (hash, from, onPod, signal) => {
      const state = { version: from, expired: false };
      const query = { ...podsOf(hash), resourceVersion: from };
      const onEvent = (event: unknown): void => {
        const type = field(event, "type");
        const object = field(event, "object");
        if (type === "ERROR") {
          state.expired = true;
          return;
        }
        const version = field(object, "metadata", "resourceVersion");
        if (typeof version === "string") state.version = version;
        if (type === "ADDED" || type === "MODIFIED" || type === "DELETED")
          reportPod(object, onPod, type === "DELETED");
      };
      try {
        await requests.watch({ path, query }, onEvent, signal);
      } catch (thrown) {
        if (thrown instanceof ClusterTrouble && thrown.kind === "expired") return "expired";
        throw thrown;
      }
      return state.expired ? "expired" : { version: state.version };
    },
  };
}

function reportPod(object: unknown, onPod: Parameters<BatchCluster["listPods"]>[1], gone = false): void {
  const pod = podSeen(object, gone);
  if (pod !== undefined) onPod(pod, object);
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function jobSeen({ metadata, spec, status }: Job): SeenJob {
  const { annotations = {}, labels = {}, uid } = metadata ?? {};
  return {
    uid: text(uid),
    by: text(annotations[BY]),
    completions: spec?.completions ?? 0,
    ready: annotations[READY] === "yes",
    suspended: spec?.suspend === true,
    queued: labels["kueue.x-k8s.io/queue-name"] !== undefined,
    completed: text(status?.completedIndexes),
    failed: text(status?.failedIndexes),
    template: spec?.template,
    ...endOfJob(status?.conditions ?? []),
  };
}

function endOfJob(
  conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
  }[],
): Pick<SeenJob, "ended" | "reason"> {
  const last = conditions.find(
    ({ type, status }) => status === "True" && (type === "Complete" || type === "Failed"),
  );
  if (last === undefined) return { ended: undefined, reason: "" };
  return {
    ended: last.type === "Complete" ? "complete" : "failed",
    reason: [last.reason, last.message].filter(Boolean).join(": "),
  };
}

const FAILURES = "batch.kubernetes.io/job-index-failure-count";
/** Failures that do not count as tries. */
const IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";

/** What a pod of a batch tells about its row; undefined for a pod without an index. */
function podSeen(object: unknown, gone: boolean): SeenPod | undefined {
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
    end: endOfPod(containers),
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

function endOfPod(containers: readonly ContainerStatus[]): SeenPod["end"] {
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
  "SignatureValidationFailed",
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

/** A request of a batch to the API server. Every failure has a kind; the batch decides how long to wait for each. */
interface ClusterRequest {
  readonly method: Method;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Status codes outside the 200s that are no trouble. */
  readonly expected?: readonly number[];
}

interface ClusterAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Time limit for an answer. */
const ANSWER_MS = 30_000;

export class ClusterRequests {
  readonly #cluster: Cluster;

  /** `cluster` must not wait or retry by itself. */
  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async ask(request: ClusterRequest, signal: AbortSignal): Promise<ClusterAnswer> {
    const { method, body, expected = [] } = request;
    const late = waitingTimeout(ANSWER_MS);
    try {
      const bounded = AbortSignal.any([signal, late]);
      return {
        status: 200,
        body: await this.#cluster.call(whereOf(request), { method, body, signal: bounded }),
      };
    } catch (thrown) {
      if (thrown instanceof ApiFailure && expected.includes(thrown.status))
        return { status: thrown.status, body: undefined };
      throw troubleOf(thrown, signal, late);
    }
  }

  /** Passes on the events of a watch until it ends: a server ends each watch after some minutes. */
  async watch(
    { path, query }: Pick<ClusterRequest, "path" | "query">,
    onEvent: (event: unknown) => void,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const where = whereOf({ path, query: { ...query, watch: "true", allowWatchBookmarks: "true" } });
      for await (const event of this.#cluster.watch(where, signal)) onEvent(event);
    } catch (thrown) {
      throw troubleOf(thrown, signal);
    }
  }
}

const whereOf = ({ path, query = {} }: Pick<ClusterRequest, "path" | "query">): string =>
  Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query).toString()}`;

/** Converts an error; if the caller has aborted, returns the caller's own reason. */
function troubleOf(thrown: unknown, signal: AbortSignal, late?: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (thrown instanceof ApiFailure) return refusal(thrown);
  const why = late?.aborted === true ? `no answer in ${ANSWER_MS / 1000} s` : reasonOf(thrown);
  // An error about a bad kubeconfig has its own message.
  if (thrown instanceof HarnessError && thrown.cause === undefined) return thrown;
  return new ClusterTrouble("away", why, { cause: thrown });
}

const KIND_OF_STATUS: ReadonlyMap<number, TroubleKind> = new Map<number, TroubleKind>([
  [400, "invalid"],
  [401, "unauthorised"],
  [403, "forbidden"],
  [404, "no_namespace"],
  [409, "invalid"],
  [410, "expired"],
  [413, "invalid"],
  [422, "invalid"],
]);

/** Unclear refusals count as "away" and are retried: a proxy on the way, a server that is ending, a busy server. */
function refusal(failure: ApiFailure): ClusterTrouble {
  const { status, message, retryAfterMs } = failure;
  const kind = isOvertaken(failure) ? "away" : (KIND_OF_STATUS.get(status) ?? "away");
  return new ClusterTrouble(
    kind === "forbidden" && /exceeded quota/.test(message) ? "quota" : kind,
    message,
    {
      cause: failure,
      retryAfterMs,
    },
  );
}
