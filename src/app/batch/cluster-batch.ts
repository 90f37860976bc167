import { randomUUID } from "node:crypto";
import type { Settings } from "../../config/settings-schema.ts";
import { readEngineAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { batchClient, ClusterRequests } from "../../kubernetes/batch-client.ts";
import { Cluster, type ClusterAddress, clusterOf, manifestYaml } from "../../kubernetes/cluster.ts";
import { type BatchEnd, type RowResult, type RowSummary, summaryOf } from "../../render/batch-results.ts";
import type { Host } from "../host.ts";
import type { BatchRow } from "./batch-rows.ts";
import { clusterPlan, manifestsOf, secretNote } from "./cluster-plan.ts";
import { rowEnvironments } from "./pod-row.ts";
import { type Asking, type Clock, retryWhileAway, realClock } from "./cluster-trouble.ts";
import { changedTemplate, watchBatch } from "./cluster-watch.ts";
import type { BatchCluster, SeenJob } from "../../kubernetes/batch-cluster.ts";
import { loopDifferences, lostFields } from "../../kubernetes/pod-readback.ts";
import { batchJob, batchName, type BatchPlan, batchRows } from "../../kubernetes/batch-job.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";
import { openBatchFolder } from "./batch-folder.ts";
import { codeOf } from "./batch-run.ts";

/** `harness batch --on kubernetes`, from its flags. */
export interface ClusterCommand {
  readonly on: string;
  readonly rows: readonly BatchRow[];
  readonly settings: Settings;
  readonly flags: Readonly<Record<string, unknown>> & {
    readonly jobs: number;
    readonly retries: number;
    readonly resume: boolean;
    readonly tag?: string | undefined;
  };
}

const NEXT = "--on kubernetes, or kubernetes:[//CONTEXT][/NAMESPACE]";

function named({ on }: ClusterCommand): ClusterAddress {
  const read = readEngineAddress(on === "kubernetes" ? "kubernetes:" : on);
  if (read.kind === "address" && read.address.kind === "kubernetes") return read.address;
  throw new HarnessError(EXIT.usage, `--on ${on} is not a cluster`, NEXT);
}

const planOf = (
  { rows, settings, flags }: ClusterCommand,
  { host, namespace, warn }: { host: Host; namespace: string; warn: (text: string) => void },
): ReturnType<typeof clusterPlan> =>
  clusterPlan({
    rows,
    settings,
    flags,
    namespace,
    jobs: flags.jobs,
    retries: flags.retries,
    tag: flags.tag ?? "",
    environments: rowEnvironments({ host, settings, warn }),
  });

/** Asks no cluster and needs none: without a named namespace, `default` is written. */
export async function printedManifests(
  host: Host,
  command: ClusterCommand,
  warn: (text: string) => void,
): Promise<string> {
  const namespace = named(command).namespace ?? "default";
  return manifestYaml(manifestsOf(await planOf(command, { host, namespace, warn })));
}

export async function runOnCluster(
  host: Host,
  command: ClusterCommand,
  telling: {
    /** Where results are kept on this machine. */
    readonly folder: string;
    readonly warn: (text: string) => void;
    readonly onResult: (result: RowResult, ended: number) => void;
  },
  signal: AbortSignal,
): Promise<BatchEnd> {
  const { config, namespace } = await clusterOf(named(command), { env: host.env, home: host.places.home });
  const plan = await planOf(command, { host, namespace, warn: telling.warn });
  const { rows, flags, settings } = command;
  const note = secretNote(settings, namespace);
  if (note !== undefined) telling.warn(note);
  const cluster = batchClient(new ClusterRequests(new Cluster(config, namespace, 0)), namespace);
  return runClusterBatch({ ...telling, cluster, plan, rows, resume: flags.resume, clock: realClock }, signal);
}

/** `harness batch --on kubernetes`: the first command makes the Job; all others only watch it. */
interface ClusterBatch {
  readonly cluster: BatchCluster;
  readonly plan: BatchPlan;
  readonly rows: readonly BatchRow[];
  /** Where results are kept on this machine; all other files stay where the loops keep them. */
  readonly folder: string;
  readonly resume: boolean;
  readonly clock: Clock;
  readonly warn: (text: string) => void;
  readonly onResult: (result: RowResult, ended: number) => void;
}

export async function runClusterBatch(batch: ClusterBatch, signal: AbortSignal): Promise<BatchEnd> {
  const { rows, warn, plan, resume } = batch;
  await using folder = await openBatchFolder(batch.folder, resume);
  const ended: RowSummary[] = rows.flatMap(({ id }) => folder.earlier.get(id) ?? []);
  const known = new Set(rows.flatMap(({ id }, index) => (folder.earlier.has(id) ? [index] : [])));
  const asking = { clock: batch.clock, warn, hash: plan.hash, troubles: new Map<symbol, string>() };
  const onResult = async (result: RowResult): Promise<void> => {
    await folder.add(result);
    ended.push(summaryOf(result));
    batch.onResult(result, ended.length);
  };
  const state = { mayExist: false };
  try {
    const { uid, template } = await prepareJob(batch, asking, signal, state);
    const { cluster } = batch;
    const end = await watchBatch({ ...asking, uid, template, cluster, rows, known, onResult }, signal);
    if (end === "deleted")
      warn(`the Job ${batchName(plan.hash)} was deleted: --resume creates it again for the remaining rows`);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
    warn(
      state.mayExist
        ? `the batch continues in the cluster: --resume watches it, kubectl delete job ${batchName(plan.hash)} ends it`
        : "nothing was started in the cluster; a batch that was started there before continues",
    );
  }
  return {
    rows: rows.length,
    ended,
    usage: ended.reduce((sum, { usage }) => (usage === null ? sum : sumUsage(sum, usage)), NO_USAGE),
    spent: undefined,
    signal: signal.aborted ? codeOf(signal) : undefined,
  };
}

/**
 * Returns a Job with all its rows, continuing from wherever preparation stopped: the Job is made suspended, gets its
 * rows, and only then begins. Each step may be repeated, also by several commands at once.
 */
async function prepareJob(
  batch: ClusterBatch,
  asking: Asking,
  signal: AbortSignal,
  state: { mayExist: boolean },
): Promise<SeenJob> {
  const { cluster, plan, resume, warn } = batch;
  const name = batchName(plan.hash);
  const read = (): Promise<SeenJob | undefined> =>
    retryWhileAway(asking, () => cluster.readJob(name, signal), signal);
  let job = await read();
  state.mayExist = job !== undefined;
  if (job !== undefined && !resume) throw alreadyExists(plan, job);
  if (job === undefined) {
    await refuseOlder(batch, asking, signal);
    // Distinguishes our own request, if its answer was lost, from a request of another command.
    const by = randomUUID();
    state.mayExist = true;
    await retryWhileAway(asking, () => cluster.createJob(batchJob(plan), by, signal), signal);
    job = await read();
    if (job !== undefined && job.by !== by && !resume) throw alreadyExists(plan, job);
    if (job === undefined)
      throw new HarnessError(
        EXIT.sandbox,
        `the Job ${name} disappeared right after it was created`,
        `kubectl get job ${name}`,
      );
    warn(
      `created the Job ${name} in the namespace ${plan.namespace}: ${plan.rows.length} rows, ${plan.jobs} at a time`,
    );
  } else warn(`found the Job ${name} in the namespace ${plan.namespace}`);
  if (job.completions !== plan.rows.length)
    throw new HarnessError(
      EXIT.usage,
      `the Job ${name} has ${job.completions} rows, this batch has ${plan.rows.length}`,
      `kubectl get job ${name} -o yaml`,
    );
  if (job.ready) return job;
  for (const rows of batchRows(plan, job.uid)) await createRowObjects(batch, asking, rows, signal);
  const start = !job.queued;
  await retryWhileAway(asking, () => cluster.readyJob(name, { start }, signal), signal);
  return job;
}

/** Leftovers of an earlier Job of the same name are deleted with it, which takes a moment. */
const CLEANUP_MS = 60_000;
const LOOK_MS = 2000;

async function createRowObjects(
  { cluster, clock }: ClusterBatch,
  asking: Asking,
  rows: ReturnType<typeof batchRows>[number],
  signal: AbortSignal,
): Promise<void> {
  const since = clock.now();
  for (;;) {
    const how = await retryWhileAway(asking, () => cluster.createRows(rows, signal), signal);
    if (how !== "of another") return;
    const name = rows.metadata?.name ?? "";
    if (clock.now() - since > CLEANUP_MS)
      throw new HarnessError(
        EXIT.sandbox,
        `the ConfigMap ${name} already exists and belongs to no existing Job`,
        `kubectl delete configmap ${name}; then --resume`,
      );
    await clock.sleep(LOOK_MS, signal);
  }
}

const alreadyExists = ({ hash, namespace }: BatchPlan, job: SeenJob): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `this batch already exists in the namespace ${namespace} as the Job ${batchName(hash)}${job.ended === undefined ? "" : ", and has ended"}`,
    "--resume watches it and shows its results; --tag NAME starts another batch of the same rows",
  );

/** An older cluster drops fields that it does not know, and would run something else. */
async function refuseOlder(
  { cluster, plan }: ClusterBatch,
  asking: Asking,
  signal: AbortSignal,
): Promise<void> {
  const wanted = batchJob(plan);
  const would = await retryWhileAway(asking, () => cluster.tryJob(wanted, signal), signal);
  // Another command made the Job meanwhile; that is reported where the Job is read.
  if (would === undefined) return;
  const lost = lostFields(wanted.spec, would.spec);
  if (lost.length > 0)
    throw new HarnessError(
      EXIT.sandbox,
      `the cluster would create a different Job from the one requested, without ${lost.slice(0, 6).join(", ")}`,
      "use a cluster of version 1.33 or later; if it already is, check what its admission webhooks and policies change",
    );
  const added = loopDifferences(wanted.spec?.template, would.spec?.template);
  if (added.length > 0) throw changedTemplate(added);
  const has = await retryWhileAway(
    asking,
    () => cluster.hasServiceAccount(plan.serviceAccount, signal),
    signal,
  );
  if (!has)
    throw new HarnessError(
      EXIT.usage,
      `there is no service account ${plan.serviceAccount} in the namespace ${plan.namespace}`,
      "run once, with the rights to do so: harness batch … --print-manifests | kubectl apply -l dev.harness.part=rights -f -",
    );
}
