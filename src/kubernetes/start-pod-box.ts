import { randomBytes } from "node:crypto";
import path from "node:path";
import { type BoxIdentity, boxLabels, thisProcess } from "../boxes/box-record.ts";
import { openBox } from "../boxes/box.ts";
import { type NearNetwork, type RelayedNetwork, relayNetwork } from "../boxes/network-relay.ts";
import type { RunnerClient } from "../boxes/runner-client.ts";
import { changesIn, snapshotIn, writeFileIn } from "../boxes/runner-files.ts";
import { checkWorkspace, podUserOf, ROOT_OWNED, type Workspace } from "../boxes/workspace/box-workspace.ts";
import { commitIdentity, NOTHING_TRACKED, trackedIn } from "../boxes/workspace/git-repository.ts";
import type { Layer } from "../boxes/workspace/layer-record.ts";
import { NOTHING, protectOutside } from "../boxes/workspace/protection.ts";
import { foldPieces, holdLayer } from "../boxes/workspace/session-layer.ts";
import { refuseTooLarge } from "../boxes/workspace/workspace-archive.ts";
import { lockWorkspace } from "../boxes/workspace/workspace-lock.ts";
import type { Mode } from "../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { allChanges, BOX_HOME, type OwnedBox } from "../core/ports.ts";
import { LogKeeper } from "../core/run-record.ts";
import {
  boxKind,
  boxOwner,
  claimedPod,
  hasWaiting,
  NotFromPool,
  poolWarning,
  refuseTooOld,
  sandboxPod,
  sandboxSpec,
  type SandboxWish,
} from "./agent-sandbox.ts";
import type { Cluster } from "./cluster.ts";
import { connectBox, type ConnectedBox, refuseUnlessPlanned } from "./connect-box.ts";
import { handOver, denyAllTraffic } from "./network-proof.ts";
import { HOME_LABEL, homeOf, reapPods, removeBoxPod } from "./own-pods.ts";
import { readbackDifferences } from "./pod-readback.ts";
import {
  BOX,
  FILLER,
  isMountable,
  type JsonObject,
  NAME_LABEL,
  type PodOwner,
  type PodPlan,
  podSpec,
} from "./pod-spec.ts";
import { allBrought, pathsFromImage, fill, PodHome } from "./pod-tree.ts";
import { createdPod, podOf, type PodState, type Starting } from "./pod-watch.ts";

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

/** Starts a verified pod over a copy of the workspace: no command reaches the folder itself. */
export async function startPodBox(
  maker: PodMaker,
  request: PodRequest,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { stateDir } = maker;
  const { mode } = request;
  if (mode === "danger-full-access")
    throw new HarnessError(
      EXIT.sandbox,
      "a pod never has full access: in a cluster there is nobody to answer for it",
      "--mode workspace-write",
    );
  const workspace = await checkWorkspace({
    path: request.workspace,
    callerUid: maker.uid,
    stateDir,
    home: maker.home,
    engineRoot: "/var/lib/kubelet",
  });
  if (!isMountable(workspace.path))
    throw new HarnessError(
      EXIT.sandbox,
      `${workspace.path} cannot be the workspace of a pod: the pod uses that path itself`,
      "name another folder: --cwd DIR",
    );
  for (const text of [...workspace.warnings, ...(await protectOutside("copy", workspace, signal)).warnings])
    // Pods never run as root, whoever owns the folder.
    if (text !== ROOT_OWNED) maker.onWarning(text);
  const locks = new AsyncDisposableStack();
  // What stays ends by its deadline, and `sandbox rm --dead` reports it.
  let reaped: Promise<unknown> = Promise.resolve();
  try {
    const { path: folder, dev, ino } = workspace;
    locks.use(
      await lockWorkspace({ path: folder, dev: BigInt(dev), ino: BigInt(ino), write: false, stateDir }),
    );
    const layer =
      request.keep === null
        ? null
        : locks.use(
            await holdLayer(
              stateDir,
              {
                session: request.keep,
                workspace: folder,
                isolation: "copy",
                engine: "kubernetes",
                at: maker.cluster.address,
              },
              { warn: maker.onWarning },
            ),
          ).layer;
    if (layer !== null) await foldPieces(layer);
    await refuseTooLarge(folder, undefined, pathsFromImage(request.wants.brought, folder));
    reaped = reapPods(maker.cluster, maker).catch(() => []);
    const plan = await planOf(maker, { ...request, mode }, workspace);
    return await openFromPoolOrOwn({ maker, request, workspace, layer, plan }, { locks, reaped }, signal);
  } catch (thrown) {
    await reaped;
    await locks.disposeAsync();
    throw thrown;
  }
}

interface Making {
  readonly maker: PodMaker;
  readonly request: PodRequest;
  readonly workspace: Workspace;
  readonly layer: Layer | null;
  readonly plan: PodPlan;
}

interface Preparations {
  readonly locks: AsyncDisposableStack;
  readonly reaped: Promise<unknown>;
}

/** Opens a box from the named pool, if a fitting pod waits there; else in a pod of its own. */
async function openFromPoolOrOwn(
  making: Making,
  preparations: Preparations,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { maker, request, plan } = making;
  const { warmPool } = request.wants;
  // In a read-only box another container fills the pod first, so it can never be a waiting pod.
  if (warmPool === null || plan.mode === "read-only") return openWithCleanup(making, preparations, signal);
  try {
    if (await hasWaiting(maker.cluster, warmPool))
      return await openWithCleanup({ ...making, plan: { ...plan, kind: "Claim" } }, preparations, signal);
  } catch (thrown) {
    if (!(thrown instanceof NotFromPool)) throw thrown;
    maker.onWarning(poolWarning(warmPool, thrown));
  }
  return openWithCleanup(making, preparations, signal);
}

async function openWithCleanup(
  making: Making,
  { locks, reaped }: Preparations,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const things = new AsyncDisposableStack();
  things.defer(async () => void (await reaped));
  try {
    return await openPod(making, { locks, things }, signal);
  } catch (thrown) {
    await things.disposeAsync();
    throw thrown;
  }
}

interface Cleanup {
  readonly locks: AsyncDisposableStack;
  readonly things: AsyncDisposableStack;
}

async function openPod(making: Making, { locks, things }: Cleanup, signal: AbortSignal): Promise<OwnedBox> {
  const { maker, request, workspace, layer, plan } = making;
  const { cluster } = maker;
  const tracked = request.watchChanges ? await trackedIn(workspace.path) : NOTHING_TRACKED;
  things.defer(() => removePod(maker, plan));
  await denyAllTraffic(cluster, plan);
  const spec = podSpec(plan);
  const first = await createdFor(making, spec, signal);
  refuseUnlessPlanned("the cluster", readbackDifferences(spec, first, plan.kind));
  let handing: Promise<void> | undefined;
  const handed = (): Promise<void> => (handing ??= handOver(cluster, plan, boxOwner(first, plan)));
  // A pod that has waited is let out only once it is known that nobody was in it.
  if (plan.kind !== "Claim") handed().catch(() => undefined);
  // Nothing may be created for the box while it is removed.
  things.defer(async () => {
    await handing?.catch(() => undefined);
  });
  const pod = { name: first.metadata?.name ?? plan.name };
  const stands = async (): Promise<void> => {
    const now = await podOf(cluster, pod);
    refuseUnlessPlanned("the cluster", [
      ...otherPod(first, now),
      ...readbackDifferences(spec, now, plan.kind),
    ]);
  };
  // When a claim expires its pod is removed, without a deadline being reported.
  const over = performance.now() + (plan.kind === "Claim" ? plan.deadlineMs : Number.POSITIVE_INFINITY);
  const { client, still } = await filledBox(making, { pod, handed, stands, signal, things });
  await tellGit(maker, client);
  await still();
  const network = await networkIn(making, client, things);
  const apart = pathsFromImage(plan.brought, workspace.path).map((name) => path.join(workspace.path, name));
  if (request.watchChanges) await snapshotIn(client, workspace.path, apart);
  const home =
    layer !== null && plan.mode !== "read-only" && request.watchChanges
      ? new PodHome({ client, plan, layer, warn: maker.onWarning })
      : undefined;
  const box = await openBox({
    workspace: workspace.path,
    client,
    files: [],
    exposed: false,
    log: new LogKeeper(),
    env: request.env ?? {},
    ...(network === undefined ? {} : { network }),
    searched: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    remove: async () => {
      if (layer !== null && plan.mode !== "read-only")
        await allBrought({ client, plan, layer, warn: maker.onWarning }, home);
      await things.disposeAsync();
    },
    release: () => locks.disposeAsync(),
    protection: NOTHING,
    stateDir: maker.stateDir,
    onWarning: maker.onWarning,
    place: {
      disk: undefined,
      snapshot: true,
      changes: async () => {
        const { changes, incomplete } = await changesIn(client);
        return { changes: allChanges(home?.seen ?? new Map(), changes), incomplete };
      },
      faults: () => [],
      remove: () => Promise.resolve(),
    },
    tracked,
  });
  if (layer === null) return box;
  return {
    ...box,
    mayFollow: (reason) => !reason.includes(OUT_OF_TIME) && performance.now() < over,
    ...(home === undefined ? {} : { home: { bring: () => home.bring(), changes: () => home.changes() } }),
  };
}

/** The total time of a box does not begin anew with another box. */
const OUT_OF_TIME = "deadline: ";

interface Filling {
  readonly pod: { readonly name: string };
  readonly handed: () => Promise<void>;
  /** Rejects if the pod has been replaced or no longer matches the plan. */
  readonly stands: () => Promise<void>;
  readonly signal: AbortSignal;
  readonly things: AsyncDisposableStack;
}

/** The box with the folder in it; for a read-only box, another container has filled the folder before. */
async function filledBox(
  making: Making,
  { pod, handed, stands, signal, things }: Filling,
): Promise<ConnectedBox> {
  const { plan, request, maker } = making;
  const { scheduleMs, startMs, probe } = request.wants;
  const over = AbortSignal.any([signal, AbortSignal.timeout(startMs)]);
  const { cluster, onWarning } = maker;
  const starting = { cluster, pod, handed, probe, scheduleMs, onWarning, signal: over };
  const readOnly = plan.mode === "read-only";
  let shown: ConnectedBox["shown"];
  if (readOnly) {
    const filler = await connectBox({ ...starting, plan: { ...plan, mode: "workspace-write" } }, FILLER);
    await stands();
    await fillTree(making, filler.client);
    await filler.still();
    ({ shown } = filler);
    filler.client.close();
  }
  const box = await connectBox({ ...starting, plan }, BOX, shown);
  things.defer(() => box.client.close());
  await stands();
  if (!readOnly) await fillTree(making, box.client);
  return box;
}

const fillTree = ({ maker, workspace, layer, plan }: Making, client: RunnerClient): Promise<void> =>
  fill(client, { plan, workspace: workspace.path, layer, warn: maker.onWarning });

/** A controller recreates a missing pod: another pod may have the same name. */
const otherPod = (first: PodState, now: PodState): readonly string[] =>
  first.metadata?.uid === now.metadata?.uid ? [] : ["metadata.uid: it is a different pod"];

/** Opens the network only after the box is proven to be shut. */
async function networkIn(
  { maker: { onWarning }, request }: Making,
  client: RunnerClient,
  things: AsyncDisposableStack,
): Promise<RelayedNetwork | undefined> {
  const network = await request.network?.();
  if (network === undefined) return undefined;
  things.defer(async () => {
    await network.remove().catch((thrown: unknown) => {
      onWarning(`left over from this run, for the next one to remove: ${reasonOf(thrown)}`);
    });
  });
  const relayed = await relayNetwork({ client, network, onWarning });
  things.defer(() => Promise.resolve(relayed.leave()));
  return relayed;
}

async function removePod({ cluster, onWarning }: PodMaker, { name, kind }: PodPlan): Promise<void> {
  const kinds = kind === "Pod" ? "pod,networkpolicy" : "sandboxes.agents.x-k8s.io,pod,networkpolicy";
  await removeBoxPod(cluster, name, kind).catch((thrown: unknown) =>
    onWarning(
      `the pod ${name}, or a policy of it, could not be removed (${reasonOf(thrown)}): the next box from here removes it, or do it yourself: kubectl delete ${kinds} -l ${NAME_LABEL}=${name}`,
    ),
  );
}

/** In the box root owns the top of the mount, so git would treat it as somebody else's folder. */
async function tellGit({ home }: PodMaker, client: RunnerClient): Promise<void> {
  const { name, email } = await commitIdentity(home, []);
  await writeFileIn(
    client,
    `${BOX_HOME}/.gitconfig`,
    Buffer.from(`[user]\n\tname = ${text(name)}\n\temail = ${text(email)}\n[safe]\n\tdirectory = *\n`),
  );
}

const text = (value: string): string => JSON.stringify(value).replaceAll(/\\u[0-9a-f]{4}/g, "?");

async function planOf(
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

/**
 * Creates the pod, or the object that creates it; that object is removed automatically some time after the pod's
 * deadline.
 */
async function createdFor(making: Making, spec: JsonObject, signal: AbortSignal): Promise<PodState> {
  const { maker, request, plan } = making;
  const { scheduleMs, startMs, deadlineMs } = request.wants;
  const starting = { signal, scheduleMs, onWarning: maker.onWarning };
  if (plan.kind === "Pod") return createdPod(maker.cluster, plan, spec, starting);
  if (plan.kind === "Claim") return podFromPool(making, spec, starting);
  // By the cluster's clock: this machine's clock may show any time.
  const until = new Date((await maker.cluster.now(signal)) + scheduleMs + startMs + deadlineMs + HOUR_MS);
  return sandboxPod(maker.cluster, plan, sandboxSpec(spec, until), starting);
}

const HOUR_MS = 3_600_000;

/** A waiting pod from the pool, if it matches the plan and has enough time left for the box. */
async function podFromPool(
  { maker, request, plan }: Making,
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
