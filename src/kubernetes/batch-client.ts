import type { Job } from "./manifest.ts";
import { BATCH_LABEL } from "./batch-job.ts";
import { type BatchCluster, ClusterTrouble, type SeenJob } from "./batch-cluster.ts";
import type { ClusterRequest, ClusterRequests } from "./cluster-requests.ts";
import { field } from "./pod-readback.ts";
import { podSeen } from "./seen-pod.ts";

/** Annotation that marks the rows of the Job as complete. */
const READY = "dev.harness.ready";
const BY = "dev.harness.made-by";
const PAGE = "500";
/** Longer than the time between bookmarks, which a server sends about once a minute. */
const SILENT_MS = 90_000;

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
  const make = async (request: ClusterRequest, signal: AbortSignal): Promise<"made" | "there"> => {
    const { status } = await requests.ask({ ...request, expected: [409] }, signal);
    return status === 409 ? "there" : "made";
  };
  return {
    tryJob: async (job, signal) => {
      const { status, body } = await requests.ask(
        { method: "POST", path: jobs, query: { dryRun: "All" }, body: job, expected: [409] },
        signal,
      );
      return status === 409 ? undefined : (body as Job);
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

const INDEX = "batch.kubernetes.io/job-completion-index";

const podsOf = (hash: string, index?: number): Readonly<Record<string, string>> => ({
  labelSelector: `${BATCH_LABEL}=${hash}${index === undefined ? "" : `,${INDEX}=${index}`}`,
});

function podCalls(requests: ClusterRequests, path: string): PodCalls {
  return {
    listPods: async ({ hash, index }, onPod, signal) => {
      let next: unknown;
      for (;;) {
        const query = {
          ...podsOf(hash, index),
          limit: PAGE,
          ...(typeof next === "string" ? { continue: next } : {}),
        };
        const { status, body } = await requests.ask({ method: "GET", path, query, expected: [410] }, signal);
        if (status === 410) {
          // The first page is too old to continue the list: start again.
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
        await requests.watch({ path, query }, onEvent, { silentMs: SILENT_MS, signal });
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
    ...endOf(status?.conditions ?? []),
  };
}

function endOf(
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
