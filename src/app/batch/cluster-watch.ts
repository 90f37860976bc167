import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import {
  type BatchCluster,
  ClusterTrouble,
  inRanges,
  type OnPod,
  type SeenJob,
  type SeenPod,
} from "../../kubernetes/batch-cluster.ts";
import { BATCH_LABEL, batchName } from "../../kubernetes/batch-job.ts";
import type { RowResult } from "../../render/batch-results.ts";
import type { BatchRow } from "./batch-rows.ts";
import { type Asking, type Clock, describeJob, retryWhileAway, PATIENCE_MS } from "./cluster-trouble.ts";
import { podResult } from "./pod-row.ts";
import { firstLines } from "../../core/wording.ts";
import { loopDifferences } from "../../kubernetes/pod-readback.ts";

/**
 * Watches a batch in a cluster to its end. The Job decides what runs when, so a watcher may die and start again at any
 * time, and several may watch.
 */
interface WatchedBatch extends Asking {
  readonly cluster: BatchCluster;
  /** Uid of the batch's Job. */
  readonly uid: string;
  /** The template that its pods must match. */
  readonly template: unknown;
  readonly rows: readonly BatchRow[];
  /** Indexes of rows whose results are already kept. */
  readonly known: ReadonlySet<number>;
  readonly onResult: (result: RowResult) => Promise<void>;
}

/** Between two looks at the Job: after a pod has ended, and otherwise. */
const BUSY_MS = 1000;
const QUIET_MS = 15_000;

/** How the watch ended; rows without a result have not finished. */
type WatchEnd = "ended" | "deleted";

export async function watchBatch(batch: WatchedBatch, signal: AbortSignal): Promise<WatchEnd> {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const rows = new KnownRows(batch);
  const watching = keepWatching(batch, rows, both);
  try {
    return await Promise.race([
      settleAll(batch, rows, both),
      // Settles only by failing.
      watching,
    ]);
  } finally {
    over.abort();
    await watching.catch(() => undefined);
  }
}

/** Keeps the known pods up to date: a list, then a watch of changes, then a new list if the watch broke off. */
async function keepWatching(batch: WatchedBatch, rows: KnownRows, signal: AbortSignal): Promise<never> {
  const { cluster, hash } = batch;
  const onPod: OnPod = (pod, object) => rows.see(pod, object);
  for (let version = "", lists = 0, watches = 0; ; watches += 1) {
    signal.throwIfAborted();
    if (version === "") {
      const list = (): Promise<{ readonly version: string }> => cluster.listPods({ hash }, onPod, signal);
      ({ version } = await retryWhileAway(batch, list, signal, lists > 0));
      lists += 1;
      rows.listed();
    }
    const from = version;
    const next = await retryWhileAway(
      batch,
      async () => {
        try {
          return await cluster.watchPods(hash, from, onPod, signal);
        } catch (thrown) {
          if (thrown instanceof ClusterTrouble && thrown.kind === "expired") return "expired" as const;
          throw thrown;
        }
      },
      signal,
      watches > 0,
    );
    version = next === "expired" ? "" : next.version;
    // A pause between requests, in case the server ends each watch at once.
    await batch.clock.sleep(BUSY_MS, signal);
  }
}

async function settleAll(batch: WatchedBatch, rows: KnownRows, signal: AbortSignal): Promise<WatchEnd> {
  const { cluster, hash, clock, uid } = batch;
  const stalled = new StallWatch(batch);
  await rows.whenListed(signal);
  for (;;) {
    const job = await retryWhileAway(batch, () => cluster.readJob(batchName(hash), signal), signal, true);
    if (job?.uid !== uid) return "deleted";
    await catchUp(batch, rows, job, signal);
    for (const result of rows.settle(job)) await batch.onResult(result);
    if (job.ended !== undefined) return "ended";
    if (rows.changed !== undefined) {
      await retryWhileAway(batch, () => cluster.suspendJob(batchName(hash), signal), signal);
      throw changedError(rows.changed, hash);
    }
    await stalled.look(job, rows, signal);
    await rows.whenMoved(clock, signal);
  }
}

/** If more rows than this have finished, one request for all pods is cheaper. */
const MAX_SINGLE_REQUESTS = 10;

/**
 * Brings the pods of finished rows up to date with the Job: the watch may lag behind the Job, or may have been
 * restarted.
 */
async function catchUp(
  batch: WatchedBatch,
  rows: KnownRows,
  job: SeenJob,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, hash } = batch;
  const onPod: OnPod = (pod, object) => rows.see(pod, object);
  const unknown = rows.unknown(job);
  const labels =
    unknown.length > MAX_SINGLE_REQUESTS ? [{ hash }] : unknown.map((index) => ({ hash, index }));
  for (const of of labels)
    await retryWhileAway(batch, () => cluster.listPods(of, onPod, signal), signal, true);
}

/** What is known of each row's last pod; finished rows are forgotten. */
class KnownRows {
  readonly #batch: WatchedBatch;
  readonly #ended: Set<number>;
  readonly #last = new Map<number, SeenPod>();
  /** The last pod of each row that ended by itself. */
  readonly #over = new Map<number, SeenPod>();
  readonly #reported = new Set<string>();
  readonly #pods: PodComparison;
  readonly #listed = Promise.withResolvers<void>();
  #moved = Promise.withResolvers<void>();
  #hasRun = false;

  constructor(batch: WatchedBatch) {
    this.#batch = batch;
    this.#ended = new Set(batch.known);
    this.#pods = new PodComparison(batch.template);
  }

  listed(): void {
    this.#listed.resolve();
  }

  async whenListed(signal: AbortSignal): Promise<void> {
    await Promise.race([this.#listed.promise, aborted(signal)]);
  }

  get changed(): ChangedPod | undefined {
    return this.#pods.changed;
  }

  see(pod: SeenPod, object: unknown): void {
    const { index, job } = pod;
    if (job !== this.#batch.uid || this.#ended.has(index) || index >= this.#batch.rows.length) return;
    if (this.#pods.look(pod, object)) this.#moved.resolve();
    this.#noteEnd(pod);
    const before = this.#last.get(index);
    if (!isNews(pod, before)) return;
    this.#last.set(index, pod);
    if (pod.phase !== "waiting") this.#hasRun = true;
    if (isOver(pod) && (before === undefined || before.name !== pod.name || !isOver(before)))
      this.#moved.resolve();
  }

  #noteEnd(pod: SeenPod): void {
    const { index, gone, ending, before } = pod;
    if (isOver(pod) && !gone && !ending && before >= (this.#over.get(index)?.before ?? 0))
      this.#over.set(index, pod);
  }

  /** Finished rows that have not been reported, whose last pod may not have been seen. */
  unknown({ completed, failed }: SeenJob): readonly number[] {
    return [...this.#batch.rows.keys()].filter(
      (index) =>
        !this.#ended.has(index) &&
        this.#last.get(index)?.phase !== "succeeded" &&
        (inRanges(failed, index) || inRanges(completed, index)),
    );
  }

  /** The results of rows that have finished by now. */
  settle(job: SeenJob): readonly RowResult[] {
    const results: RowResult[] = [];
    for (const [index, row] of this.#batch.rows.entries()) {
      if (this.#ended.has(index)) continue;
      const pod = this.#deciding(index);
      const done = pod?.phase === "succeeded" || inRanges(job.completed, index);
      if (done || inRanges(job.failed, index)) {
        results.push(done ? doneResult(row, pod) : podResult(row, pod));
        this.#ended.add(index);
        this.#last.delete(index);
        this.#over.delete(index);
      } else if (pod?.phase === "failed") this.#tellRetry(row, pod);
    }
    return results;
  }

  /**
   * The pod whose end is that of its row, once the Job has decided. After an outage a controller may create a second pod
   * for the same try, and removes it again.
   */
  #deciding(index: number): SeenPod | undefined {
    const [last, over] = [this.#last.get(index), this.#over.get(index)];
    return over !== undefined && over.before >= (last?.before ?? 0) ? over : last;
  }

  #tellRetry(row: BatchRow, pod: SeenPod): void {
    if (this.#reported.has(pod.name)) return;
    this.#reported.add(pod.name);
    const { cause, reason } = podResult(row, pod);
    const why = visibleLine(reason.split("\n")[0] ?? "");
    this.#batch.warn(
      `row ${row.row} has failed (${cause ?? "lost"}); its Job decides whether it is retried: ${why}`,
    );
  }

  /** The waiting pods, whether any pod is running, and whether any was, or ended, since this was last asked. */
  standing(): {
    readonly waiting: readonly SeenPod[];
    readonly isRunning: boolean;
    readonly hasRun: boolean;
  } {
    const pods = [...this.#last.values()];
    const isRunning = pods.some(({ phase, gone }) => phase === "running" && !gone);
    const hasRun = isRunning || this.#hasRun;
    this.#hasRun = false;
    return { waiting: pods.filter(({ phase, gone }) => phase === "waiting" && !gone), isRunning, hasRun };
  }

  /** Resolves once a pod has ended, else after a while. */
  async whenMoved(clock: Clock, signal: AbortSignal): Promise<void> {
    await clock.sleep(BUSY_MS, signal);
    const stop = new AbortController();
    await Promise.race([
      this.#moved.promise,
      clock.sleep(QUIET_MS, AbortSignal.any([signal, stop.signal])).catch(() => undefined),
    ]);
    stop.abort();
    signal.throwIfAborted();
    this.#moved = Promise.withResolvers<void>();
  }
}

/** Whether the pod adds to what is known. A pod that was cleaned away or replaced has nothing to add. */
function isNews(pod: SeenPod, before: SeenPod | undefined): boolean {
  if (before === undefined) return !pod.gone;
  // A list sorts pods by name, not by age.
  if (pod.before < before.before) return false;
  if (pod.gone) return before.name === pod.name && !isOver(before);
  return before.name === pod.name || !isOver(pod) || isOver(before);
}

const isOver = ({ phase }: SeenPod): boolean => phase === "succeeded" || phase === "failed";

/** The Job counts the row as done, although its pod, and the pod's message with it, may be gone by then. */
function doneResult(row: BatchRow, pod: SeenPod | undefined): RowResult {
  const result = podResult(row, pod);
  if (result.exit_code === EXIT.done) return result;
  const reason = "its pod is gone; its result is with the saved results";
  return { ...result, status: "done", exit_code: EXIT.done, cause: null, reason };
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason);
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });

/** Notices that nothing begins and says why: each reason once, and after a while ends the batch with it. */
class StallWatch {
  readonly #batch: WatchedBatch;
  readonly #reported = new Set<string>();
  #since: number;

  constructor(batch: WatchedBatch) {
    this.#batch = batch;
    this.#since = batch.clock.now();
  }

  async look(job: SeenJob, rows: KnownRows, signal: AbortSignal): Promise<void> {
    const { clock } = this.#batch;
    if (job.suspended) {
      this.#since = clock.now();
      return this.#tell(
        job.queued
          ? "the batch waits in its queue"
          : "the Job is suspended: its pods are created once somebody resumes it",
      );
    }
    const { waiting, isRunning, hasRun } = rows.standing();
    if (hasRun) this.#since = clock.now();
    const why = waiting.length > 0 ? reasonsOf(waiting) : isRunning ? [] : await this.#whyNone(signal);
    for (const each of why) this.#tell(each);
    if (clock.now() - this.#since <= PATIENCE_MS) return;
    const last = why.at(-1) ?? "its pods are not created, and no reason is reported";
    throw new HarnessError(
      EXIT.sandbox,
      `no pod of the batch has run for ${PATIENCE_MS / 60_000} minutes: ${last}`,
      `${describeJob(this.#batch.hash)}; nothing is lost: once that is fixed, --resume watches it again`,
    );
  }

  async #whyNone(signal: AbortSignal): Promise<readonly string[]> {
    const { cluster, hash } = this.#batch;
    const reasons = await retryWhileAway(
      this.#batch,
      () => cluster.whyNoPods(batchName(hash), signal),
      signal,
    );
    return reasons.map((text) =>
      /exceeded quota/.test(text)
        ? `a quota of the namespace is used up: ${visibleLine(text)}`
        : visibleLine(text),
    );
  }

  #tell(text: string): void {
    if (this.#reported.has(text)) return;
    this.#reported.add(text);
    this.#batch.warn(text);
  }
}

const WORDS = {
  image: "an image cannot be pulled",
  place: "no node has room",
  other: "a pod cannot start",
} as const;

const reasonsOf = (waiting: readonly SeenPod[]): readonly string[] => [
  ...new Set(
    waiting.flatMap(({ waiting: what }) =>
      what === undefined ? [] : [`${WORDS[what.kind]}: ${visibleLine(what.why)}`],
    ),
  ),
];

/** A pod that the cluster made differently from its Job. */
interface ChangedPod {
  readonly name: string;
  readonly lines: readonly string[];
}

/** Compares each pod of a batch once with its template, while the pod may still do something. */
class PodComparison {
  changed: ChangedPod | undefined;
  readonly #template: unknown;
  readonly #looked = new Set<string>();

  constructor(template: unknown) {
    this.#template = template;
  }

  /** Whether this is the first pod that differs. */
  look({ name, gone, ending, phase }: SeenPod, object: unknown): boolean {
    if (gone || ending || (phase !== "waiting" && phase !== "running")) return false;
    if (this.changed !== undefined || this.#looked.has(name)) return false;
    this.#looked.add(name);
    const lines = loopDifferences(this.#template, object);
    if (lines.length > 0) this.changed = { name, lines };
    return lines.length > 0;
  }
}

const MAX_SHOWN = 6;

const listOf = (lines: readonly string[]): string =>
  firstLines(lines, MAX_SHOWN, visibleLine)
    .map((line) => `\n    ${line}`)
    .join("");

const leaveOut = `exclude pods with the label ${BATCH_LABEL} from the cluster's admission webhooks and policies`;

/**
 * A changed pod is refused as a changed box is: an added container could take the model's key, another account could do
 * more than a loop may.
 */
const changedError = ({ name, lines }: ChangedPod, hash: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `the pod ${visibleLine(name)} differs from its Job's template, so the batch has been stopped:${listOf(lines)}`,
    `${leaveOut}; kubectl patch job ${batchName(hash)} -p '{"spec":{"suspend":false}}'; then --resume`,
  );

/** For a Job that is only tried. */
export const changedTemplate = (lines: readonly string[]): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `the cluster would create different pods from those requested, so nothing was started:${listOf(lines)}`,
    leaveOut,
  );
