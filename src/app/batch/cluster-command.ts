import type { Settings } from "../../config/settings-schema.ts";
import { readEngineAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { batchClient, ClusterRequests } from "../../kubernetes/batch-client.ts";
import { Cluster, type ClusterAddress, clusterOf, manifestYaml } from "../../kubernetes/cluster.ts";
import type { BatchEnd, RowResult } from "../../render/batch-results.ts";
import type { Host } from "../host.ts";
import type { BatchRow } from "./batch-rows.ts";
import { runClusterBatch } from "./cluster-batch.ts";
import { clusterPlan, manifestsOf } from "./cluster-plan.ts";
import { secretNote } from "./loop-network.ts";
import { rowEnvironments } from "./row-environments.ts";
import { realClock } from "./cluster-watch.ts";

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
