import { randomBytes } from "node:crypto";
import { type BoxIdentity, boxLabels } from "../boxes/box-labels.ts";
import { podUserOf, type Workspace } from "../boxes/box-workspace.ts";
import { thisProcess } from "../boxes/life/owner.ts";
import type { NearNetwork } from "../boxes/network-relay.ts";
import type { Mode } from "../core/decision.ts";
import type { Cluster } from "./cluster.ts";
import { HOME_LABEL, homeOf } from "./own-pods.ts";
import type { PodState } from "./pod-failure.ts";
import { readbackDifferences } from "./pod-readback.ts";
import type { JsonObject, PodOwner, PodPlan } from "./pod-spec.ts";
import { createdPod, type Starting } from "./pod-watch.ts";
import { boxKind, sandboxPod, sandboxSpec, type SandboxWish } from "./sandbox-resource.ts";
import { claimedPod, NotFromPool, refuseTooOld } from "./warm-pool.ts";

/** From the request for a box in a cluster to its plan, and to the pod for it. */

export interface PodMaker {
  readonly cluster: Cluster;
  readonly uid: number;
  readonly home: string;
  readonly stateDir: string;
  /** The pod that this process runs in, if any. */
  readonly pod: PodOwner | null;
  readonly onWarning: (text: string) => void;
}

export interface PodRequest {
  readonly workspace: string;
  readonly mode: Mode;
  readonly limits: { readonly memory: number; readonly cpus: number | null; readonly pids: number };
  readonly watchChanges: boolean;
  /** The session that keeps the box's changes; null: they end with the box. */
  readonly keep: string | null;
  /** Opens on this side what was granted or will be. */
  readonly network?: () => Promise<NearNetwork & { readonly remove: () => Promise<void> }>;
  /** Environment variables for the commands of the box. */
  readonly env?: Readonly<Record<string, string>>;
  /** What the settings say about the cluster. */
  readonly wants: Pick<
    PodPlan,
    | "image"
    | "pullPolicy"
    | "pullSecret"
    | "runtimeClass"
    | "seccomp"
    | "nodeSelector"
    | "brought"
    | "disk"
    | "deadlineMs"
  > & {
    readonly startMs: number;
    /** How long to wait for a pod that fits on no node. */
    readonly scheduleMs: number;
    /** Whether the pod is created directly or by the controller of a Sandbox. */
    readonly sandboxResource: SandboxWish;
    /** A pool whose pods may become boxes; null: each box has a pod of its own. */
    readonly warmPool: string | null;
    /**
     * HOST:PORT that pods in the cluster can reach if allowed; the API server and the node's kubelet are tried anyway.
     */
    readonly probe: string | null;
  };
}

export async function planOf(
  { cluster, uid, stateDir, pod }: PodMaker,
  { mode, limits, wants, keep, network }: PodRequest & { readonly mode: PodPlan["mode"] },
  workspace: Workspace,
): Promise<PodPlan> {
  const name = `harness-${randomBytes(8).toString("hex")}`;
  const owner = await thisProcess();
  const identity: BoxIdentity = {
    workspace: workspace.path,
    uid,
    owner,
    session: keep ?? name,
    created: new Date().toISOString(),
    isolation: "copy",
    mode,
  };
  const annotations = boxLabels(identity);
  // Labels hold only short words; paths and times stand in annotations.
  const labels = Object.fromEntries(
    Object.entries(annotations).filter(([, value]) =>
      /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/.test(value),
    ),
  );
  return {
    ...wants,
    kind: await boxKind(cluster, wants.sandboxResource),
    name,
    namespace: cluster.namespace,
    owner: pod,
    mode,
    user: podUserOf(workspace),
    workspace: workspace.path,
    network: network !== undefined,
    limits: { ...limits, cpus: limits.cpus ?? 1 },
    labels: { ...labels, [HOME_LABEL]: await homeOf(stateDir) },
    annotations,
  };
}

/** A request with its plan. */
interface PlannedRequest {
  readonly maker: PodMaker;
  readonly request: PodRequest;
  readonly plan: PodPlan;
}

/**
 * Creates the pod, or the object that creates it; that object is removed automatically some time after the pod's
 * deadline.
 */
export async function createdFor(
  { maker, request, plan }: PlannedRequest,
  spec: JsonObject,
  signal: AbortSignal,
): Promise<PodState> {
  const { scheduleMs, startMs, deadlineMs } = request.wants;
  const starting = { signal, scheduleMs, onWarning: maker.onWarning };
  if (plan.kind === "Pod") return createdPod(maker.cluster, plan, spec, starting);
  if (plan.kind === "Claim") return podFromPool({ maker, request, plan }, spec, starting);
  // By the cluster's clock: this machine's clock may show any time.
  const until = new Date((await maker.cluster.now(signal)) + scheduleMs + startMs + deadlineMs + HOUR_MS);
  return sandboxPod(maker.cluster, plan, sandboxSpec(spec, until), starting);
}

const HOUR_MS = 3_600_000;

/** A waiting pod from the pool, if it matches the plan and has enough time left for the box. */
async function podFromPool(
  { maker, request, plan }: PlannedRequest,
  spec: JsonObject,
  starting: Starting,
): Promise<PodState> {
  const { warmPool, startMs, deadlineMs } = request.wants;
  const { cluster } = maker;
  const until = new Date((await cluster.now(starting.signal)) + startMs + deadlineMs);
  const pod = await claimedPod(cluster, plan, { ...starting, pool: warmPool ?? "", until });
  const lines = readbackDifferences(spec, pod, plan.kind);
  if (lines.length > 0)
    throw new NotFromPool(`its pods do not match the plan for this box: ${lines.slice(0, 3).join("; ")}`);
  await refuseTooOld(cluster, pod, plan);
  return pod;
}
