import type { ConfigMap, Job } from "./manifest.ts";

/** What the coordinator of a batch asks of a cluster. Every failure is a `ClusterTrouble`. */
export interface BatchCluster {
  /** What the cluster would make of it, and keeps nothing of; undefined where one of its name is there. */
  readonly tryJob: (job: Job, signal: AbortSignal) => Promise<Job | undefined>;
  /** By its name there is one alone, whoever asks first. */
  readonly createJob: (job: Job, by: string, signal: AbortSignal) => Promise<"made" | "there">;
  readonly readJob: (name: string, signal: AbortSignal) => Promise<SeenJob | undefined>;
  /** All that it needs is there: from here on its pods are made, where no queue says when. */
  readonly readyJob: (name: string, how: { readonly start: boolean }, signal: AbortSignal) => Promise<void>;
  /** `of another`: it belongs to an earlier Job, and goes with it. */
  readonly createRows: (rows: ConfigMap, signal: AbortSignal) => Promise<"made" | "there" | "of another">;
  readonly hasServiceAccount: (name: string, signal: AbortSignal) => Promise<boolean>;
  /** No more of its pods are made, and those that are there are ended; what has ended stays. */
  readonly suspendJob: (name: string, signal: AbortSignal) => Promise<void>;
  /** All pods of a batch, or of one index of it, and the state of the cluster that they were read at. */
  readonly listPods: (
    of: { readonly hash: string; readonly index?: number },
    onPod: OnPod,
    signal: AbortSignal,
  ) => Promise<{ readonly version: string }>;
  /** What happens to them from there on, until the server ends it: `expired` where that state is too old by now. */
  readonly watchPods: (
    hash: string,
    version: string,
    onPod: OnPod,
    signal: AbortSignal,
  ) => Promise<{ readonly version: string } | "expired">;
  /** Why its pods are not made, where somebody says so: the last reasons. */
  readonly whyNoPods: (name: string, signal: AbortSignal) => Promise<readonly string[]>;
}

/** `object`: all of it, as the cluster has it. */
export type OnPod = (pod: SeenPod, object: unknown) => void;

export interface SeenJob {
  readonly uid: string;
  /** Who made it. */
  readonly by: string;
  readonly completions: number;
  /** Its rows were complete once: who suspends it now does so on purpose. */
  readonly ready: boolean;
  readonly suspended: boolean;
  readonly queued: boolean;
  /** Indexes, as ranges: `0,3-5`. */
  readonly completed: string;
  readonly failed: string;
  /** What its pods are made by. */
  readonly template: unknown;
  readonly ended: "complete" | "failed" | undefined;
  readonly reason: string;
}

export interface SeenPod {
  readonly index: number;
  readonly name: string;
  /** The uid of the Job that had it made: one of the same name may have been there before. */
  readonly job: string;
  readonly phase: "waiting" | "running" | "succeeded" | "failed";
  /** It was deleted. */
  readonly gone: boolean;
  /** It is told to end. */
  readonly ending: boolean;
  /** What it waits for, in the cluster's words. */
  readonly waiting: { readonly kind: "image" | "place" | "other"; readonly why: string } | undefined;
  /** Of the container that ended it. */
  readonly end:
    | { readonly container: string; readonly code: number; readonly reason: string; readonly message: string }
    | undefined;
  /** Why the pod itself was ended: `Evicted`, `DeadlineExceeded` … */
  readonly reason: string;
  /** Its node was drained, it was evicted: it is no try of its row. */
  readonly disrupted: boolean;
  /** How often its row had failed before. */
  readonly failures: number;
  /** How many pods of its row had ended before: by no clock, of several the last one is told by this. */
  readonly before: number;
  readonly ms: number;
}

export type TroubleKind =
  /** No answer, or none that can be used now: to be asked again. */
  | "away"
  /** The state of the cluster that it began at is too old by now. */
  | "expired"
  /** There is no room for it, by a quota. */
  | "quota"
  /** Who asks may not. */
  | "forbidden"
  | "unauthorised"
  | "no_namespace"
  /** The cluster takes no such object. */
  | "invalid";

export class ClusterTrouble extends Error {
  override readonly name = "ClusterTrouble";
  readonly kind: TroubleKind;
  /** What the server asked to wait, in milliseconds. */
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

/**
 * The fields that were asked for and are not what the cluster would make: an older one leaves out what it does not know,
 * an admission changes what it does not like. What is added is not told.
 */
export function lostFields(wanted: unknown, made: unknown, at = ""): readonly string[] {
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = Array.isArray(made) ? made : [];
    return wanted.flatMap((each, nth) => lostFields(each, list[nth], `${at}[${nth}]`));
  }
  if (typeof wanted === "object" && wanted !== null) {
    if (typeof made !== "object" || made === null) return [at];
    const found = new Map(Object.entries(made));
    return Object.entries(wanted).flatMap(([key, value]) =>
      value === undefined ? [] : lostFields(value, found.get(key), at === "" ? key : `${at}.${key}`),
    );
  }
  return wanted === made || isSameQuantity(at, wanted, made) ? [] : [at];
}

/** `1000m` is `1`: a cluster writes quantities its own way. */
const isSameQuantity = (at: string, wanted: unknown, made: unknown): boolean =>
  /\.(?:requests|limits)\.|sizeLimit$/.test(at) && typeof wanted === "string" && typeof made === "string";
