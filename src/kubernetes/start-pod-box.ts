import { randomBytes } from "node:crypto";
import path from "node:path";
import { type BoxIdentity, boxLabels } from "../boxes/box-labels.ts";
import { openBox } from "../boxes/box.ts";
import { checkWorkspace, podUserOf, ROOT_OWNED, type Workspace } from "../boxes/box-workspace.ts";
import { holdLayer } from "../boxes/layers/hold-layer.ts";
import { foldPieces } from "../boxes/layers/layer-pieces.ts";
import type { Layer } from "../boxes/layers/layer-record.ts";
import { refuseTooLarge } from "../boxes/layers/workspace-archive.ts";
import { thisProcess } from "../boxes/life/owner.ts";
import { lockWorkspace } from "../boxes/life/workspace-lock.ts";
import { type NearNetwork, relayNetwork, type RelayedNetwork } from "../boxes/network-relay.ts";
import { protectOutside } from "../boxes/protect/protect-outside.ts";
import { commitIdentity } from "../boxes/protect/repository.ts";
import { NOTHING } from "../boxes/protect/scan.ts";
import { NOTHING_TRACKED, trackedIn } from "../boxes/protect/tracked.ts";
import type { RunnerClient } from "../boxes/runner/runner-client.ts";
import { changesIn, snapshotIn, writeFileIn } from "../boxes/runner/runner-files.ts";
import { allChanges } from "../core/changes.ts";
import { LogKeeper } from "../core/box-log.ts";
import type { Mode } from "../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { BOX_HOME, type OwnedBox } from "../core/ports.ts";
import type { Cluster } from "./cluster.ts";
import { type Connected, connected, refuseUnlessPlanned } from "./connect-box.ts";
import { handOver, shut } from "./network-proof.ts";
import type { PodState } from "./pod-failure.ts";
import { madePod, podOf } from "./pod-watch.ts";
import { boxKind, boxOwner, sandboxPod, sandboxSpec, type SandboxWish } from "./sandbox-resource.ts";
import { readbackDifferences } from "./pod-readback.ts";
import { HOME_LABEL, homeOf, reapPods, removeBoxPod } from "./own-pods.ts";
import {
  BOX,
  FILLER,
  isMountable,
  NAME_LABEL,
  type JsonObject,
  type PodOwner,
  type PodPlan,
  podSpec,
} from "./pod-spec.ts";
import { allBrought, PodHome } from "./pod-home.ts";
import { apartIn, fill } from "./pod-tree.ts";

export interface PodMaker {
  readonly cluster: Cluster;
  readonly uid: number;
  readonly home: string;
  readonly stateDir: string;
  /** The pod that this runs in; null: it runs in none. */
  readonly pod: PodOwner | null;
  readonly onWarning: (text: string) => void;
}

export interface PodRequest {
  readonly workspace: string;
  readonly mode: Mode;
  readonly limits: { readonly memory: number; readonly cpus: number | null; readonly pids: number };
  readonly watchChanges: boolean;
  /** The session whose changes outlive the box; null: they do not. */
  readonly keep: string | null;
  /** Opens what was granted, or will be, on this side. */
  readonly network?: () => Promise<NearNetwork & { readonly remove: () => Promise<void> }>;
  /** For the commands of the box. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of the cluster: what the settings say of it. */
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
    /** How long a pod that fits on no node is waited for. */
    readonly scheduleMs: number;
    /** Whether its pod is made by itself, or by the controller of a Sandbox. */
    readonly sandboxResource: SandboxWish;
    /** Something that pods there reach where they may: HOST:PORT; the API server and the node's kubelet are tried anyway. */
    readonly probe: string | null;
  };
}

/** A verified pod over a copy of the workspace: nothing of a command reaches the folder itself. */
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
      "no pod has full access: in a cluster there is nobody to answer for it",
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
      `no pod can stand over ${workspace.path}: the path is one of the pod's own`,
      "name another folder: --cwd DIR",
    );
  for (const text of [...workspace.warnings, ...(await protectOutside("copy", workspace, signal)).warnings])
    // Pods run as nobody's root, whoever owns the folder.
    if (text !== ROOT_OWNED) maker.onWarning(text);
  const locks = new AsyncDisposableStack();
  const things = new AsyncDisposableStack();
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
    await refuseTooLarge(folder, undefined, apartIn(request.wants.brought, folder));
    // What stays is ended by its deadline, and told of by `sandbox rm --dead`.
    const reaped = reapPods(maker.cluster, maker).catch(() => []);
    things.defer(async () => void (await reaped));
    return await opened(
      { maker, request, workspace, layer, plan: await planOf(maker, { ...request, mode }, workspace) },
      { locks, things },
      signal,
    );
  } catch (thrown) {
    await things.disposeAsync();
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

interface Ends {
  readonly locks: AsyncDisposableStack;
  readonly things: AsyncDisposableStack;
}

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
  // Labels hold short words alone; what is a path or a time stands beside them.
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

async function opened(given: Making, { locks, things }: Ends, signal: AbortSignal): Promise<OwnedBox> {
  const { maker, request, workspace, layer, plan } = given;
  const { cluster } = maker;
  const tracked = request.watchChanges ? await trackedIn(workspace.path) : NOTHING_TRACKED;
  things.defer(() => removePod(maker, plan));
  await shut(cluster, plan);
  const spec = podSpec(plan);
  const first = await madeFor(given, spec, signal);
  refuseUnlessPlanned("the cluster", readbackDifferences(spec, first, plan.kind));
  const handed = handOver(cluster, plan, boxOwner(first, plan));
  // Nothing is made any more of what is removed.
  const settled = handed.catch(() => undefined);
  things.defer(() => settled);
  const stands = async (): Promise<void> => {
    const now = await podOf(cluster, plan);
    refuseUnlessPlanned("the cluster", [
      ...otherPod(first, now),
      ...readbackDifferences(spec, now, plan.kind),
    ]);
  };
  const { client, still } = await filledBox(given, { handed, stands, signal, things });
  await tellGit(maker, client);
  await still();
  const network = await networkIn(given, client, things);
  const apart = apartIn(plan.brought, workspace.path).map((name) => path.join(workspace.path, name));
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
    mayFollow: (reason) => !reason.includes(OUT_OF_TIME),
    ...(home === undefined ? {} : { home: { bring: () => home.bring(), changes: () => home.changes() } }),
  };
}

/** What a box may take in all is not had anew with another one. */
const OUT_OF_TIME = "deadline: ";

interface Filling {
  readonly handed: Promise<void>;
  /** Rejects where the pod is no longer the one that was made, as it was planned. */
  readonly stands: () => Promise<void>;
  readonly signal: AbortSignal;
  readonly things: AsyncDisposableStack;
}

/** The box with the folder in it; where it may only read that, another container has filled it before. */
async function filledBox(making: Making, { handed, stands, signal, things }: Filling): Promise<Connected> {
  const { plan, request, maker } = making;
  const { scheduleMs, startMs, probe } = request.wants;
  const over = AbortSignal.any([signal, AbortSignal.timeout(startMs)]);
  const { cluster, onWarning } = maker;
  const starting = { cluster, handed, probe, scheduleMs, onWarning, signal: over };
  const readOnly = plan.mode === "read-only";
  let shown: Connected["shown"];
  if (readOnly) {
    const filler = await connected({ ...starting, plan: { ...plan, mode: "workspace-write" } }, FILLER);
    await stands();
    await filled(making, filler.client);
    await filler.still();
    ({ shown } = filler);
    filler.client.close();
  }
  const box = await connected({ ...starting, plan }, BOX, shown);
  things.defer(() => box.client.close());
  await stands();
  if (!readOnly) await filled(making, box.client);
  return box;
}

/** The pod, or what has it made, which goes by itself some time after the pod has to be over. */
async function madeFor(
  { maker, request, plan }: Making,
  spec: JsonObject,
  signal: AbortSignal,
): Promise<PodState> {
  const { scheduleMs, startMs, deadlineMs } = request.wants;
  const starting = { signal, scheduleMs, onWarning: maker.onWarning };
  if (plan.kind === "Pod") return madePod(maker.cluster, plan, spec, starting);
  // By the cluster's clock: that of this machine may be any other.
  const until = new Date((await maker.cluster.now(signal)) + scheduleMs + startMs + deadlineMs + HOUR_MS);
  return sandboxPod(maker.cluster, plan, sandboxSpec(spec, until), starting);
}

const HOUR_MS = 3_600_000;

/** A controller makes a pod anew that is gone: under its name there may be another one. */
const otherPod = (first: PodState, now: PodState): readonly string[] =>
  first.metadata?.uid === now.metadata?.uid ? [] : ["metadata.uid: it is another pod than before"];

/** Nothing of it is opened before the box is proven to be shut. */
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

const filled = ({ maker, workspace, layer, plan }: Making, client: RunnerClient): Promise<void> =>
  fill(client, { plan, workspace: workspace.path, layer, warn: maker.onWarning });

async function removePod({ cluster, onWarning }: PodMaker, { name, kind }: PodPlan): Promise<void> {
  const kinds = kind === "Pod" ? "pod,networkpolicy" : "sandboxes.agents.x-k8s.io,pod,networkpolicy";
  await removeBoxPod(cluster, name, kind).catch((thrown: unknown) =>
    onWarning(
      `the pod ${name}, or a policy of it, could not be removed (${reasonOf(thrown)}): the next box from here takes it away, or kubectl delete ${kinds} -l ${NAME_LABEL}=${name}`,
    ),
  );
}

const text = (value: string): string => JSON.stringify(value).replaceAll(/\\u[0-9a-f]{4}/g, "?");

/** The mount's top belongs to root there, which git would take for somebody else's folder. */
async function tellGit({ home }: PodMaker, client: RunnerClient): Promise<void> {
  const { name, email } = await commitIdentity(home, []);
  await writeFileIn(
    client,
    `${BOX_HOME}/.gitconfig`,
    Buffer.from(`[user]\n\tname = ${text(name)}\n\temail = ${text(email)}\n[safe]\n\tdirectory = *\n`),
  );
}
