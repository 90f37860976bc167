import type { ConfigMap, Job } from "./cluster.ts";

/** What the coordinator of a batch needs from a cluster. Every failure is a `ClusterTrouble`. */
export interface BatchCluster {
  /** A dry run: the Job as the cluster would create it, without keeping it; undefined if a Job of this name exists. */
  readonly tryJob: (job: Job, signal: AbortSignal) => Promise<Job | undefined>;
  /** The name makes the Job unique, whoever creates it first. */
  readonly createJob: (job: Job, by: string, signal: AbortSignal) => Promise<"made" | "there">;
  readonly readJob: (name: string, signal: AbortSignal) => Promise<SeenJob | undefined>;
  /** Marks the Job's rows as complete: from now on its pods are made, unless a queue decides when. */
  readonly readyJob: (name: string, how: { readonly start: boolean }, signal: AbortSignal) => Promise<void>;
  /** `of another`: the object belongs to an earlier Job and is deleted with it. */
  readonly createRows: (rows: ConfigMap, signal: AbortSignal) => Promise<"made" | "there" | "of another">;
  readonly hasServiceAccount: (name: string, signal: AbortSignal) => Promise<boolean>;
  /** Makes no more pods of the Job and ends the running ones; ended pods stay. */
  readonly suspendJob: (name: string, signal: AbortSignal) => Promise<void>;
  /** All pods of a batch or of one index, and the cluster version at which they were read. */
  readonly listPods: (
    of: { readonly hash: string; readonly index?: number },
    onPod: OnPod,
    signal: AbortSignal,
  ) => Promise<{ readonly version: string }>;
  /** Events of the pods from that version on, until the server ends the watch; `expired` if the version is too old. */
  readonly watchPods: (
    hash: string,
    version: string,
    onPod: OnPod,
    signal: AbortSignal,
  ) => Promise<{ readonly version: string } | "expired">;
  /** The last reasons, if reported, why no pods of the Job are made. */
  readonly whyNoPods: (name: string, signal: AbortSignal) => Promise<readonly string[]>;
}

/** `object`: the complete object from the cluster. */
export type OnPod = (pod: SeenPod, object: unknown) => void;

export interface SeenJob {
  readonly uid: string;
  /** The creator of the Job. */
  readonly by: string;
  readonly completions: number;
  /** The rows were complete once: a suspension after that is deliberate. */
  readonly ready: boolean;
  readonly suspended: boolean;
  readonly queued: boolean;
  /** Indexes, as ranges: `0,3-5`. */
  readonly completed: string;
  readonly failed: string;
  /** The template of the Job's pods. */
  readonly template: unknown;
  readonly ended: "complete" | "failed" | undefined;
  readonly reason: string;
}

export interface SeenPod {
  readonly index: number;
  readonly name: string;
  /** The uid of the pod's Job: an earlier Job may have had the same name. */
  readonly job: string;
  readonly phase: "waiting" | "running" | "succeeded" | "failed";
  /** The pod was deleted. */
  readonly gone: boolean;
  /** The pod was told to end. */
  readonly ending: boolean;
  /** What the pod waits for, in the cluster's words. */
  readonly waiting: { readonly kind: "image" | "place" | "other"; readonly why: string } | undefined;
  /** The end of the container that ended the pod. */
  readonly end:
    | { readonly container: string; readonly code: number; readonly reason: string; readonly message: string }
    | undefined;
  /** Why the pod itself was ended: `Evicted`, `DeadlineExceeded` … */
  readonly reason: string;
  /** The pod was evicted or its node drained: it does not count as a try of its row. */
  readonly disrupted: boolean;
  /** How often the row had failed before this pod. */
  readonly failures: number;
  /** How many pods of the row had ended before this one: identifies the last of several without a clock. */
  readonly before: number;
  readonly ms: number;
}

export type TroubleKind =
  /** No usable answer now: ask again. */
  | "away"
  /** The version at which the watch began is too old. */
  | "expired"
  /** A quota has no room. */
  | "quota"
  /** The caller lacks the right. */
  | "forbidden"
  | "unauthorised"
  | "no_namespace"
  /** The cluster rejects such an object. */
  | "invalid";

export class ClusterTrouble extends Error {
  override readonly name = "ClusterTrouble";
  readonly kind: TroubleKind;
  /** The wait that the server asked for, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(
    kind: TroubleKind,
    message: string,
    { cause, retryAfterMs = null }: { readonly cause?: unknown; readonly retryAfterMs?: number | null } = {},
  ) {
    super(message, { cause });
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Whether an index is in `0,3-5`. */
export function inRanges(text: string, index: number): boolean {
  return text.split(",").some((range) => {
    const [from = "", to = from] = range.split("-");
    return range !== "" && Number(from) <= index && index <= Number(to);
  });
}
