import * as z from "zod";
import { startCommand } from "../boxes/box-command.ts";
import type { RunnerClient } from "../boxes/runner-client.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { unlessAborted } from "../platform/waits.ts";
import { ApiFailure, type Cluster, isThere } from "./cluster.ts";
import { mayBeAdded } from "./pod-readback.ts";
import {
  API_VARIABLE,
  type JsonObject,
  podLabels,
  type PodOwner,
  type PodPlan,
  POLICY_PARTS,
  policyName,
  policyOf,
} from "./pod-spec.ts";
import { refusalOf } from "./pod-watch.ts";

/** The path of the namespace's network policies. */
export const POLICIES = (cluster: Cluster): string =>
  cluster.at("networkpolicies", "apis/networking.k8s.io/v1");

const policyList = z.object({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      spec: z.looseObject({
        podSelector: z.looseObject({ matchLabels: z.record(z.string(), z.string()).optional() }),
        ingress: z.array(z.unknown()).nullish(),
        egress: z.array(z.unknown()).nullish(),
      }),
    }),
  ),
});

/**
 * Rejects other policies that let the box out: policies only add rights, so one for all pods of the namespace applies
 * to the box too.
 */
async function refuseOthers(cluster: Cluster, plan: PodPlan): Promise<void> {
  const { items } = policyList.parse(await cluster.call(POLICIES(cluster)).catch(refuse));
  const labels = podLabels(plan);
  const first = items.find(({ metadata: { name }, spec }) => {
    if (POLICY_PARTS.some((part) => name === policyName(plan, part))) return false;
    const { matchLabels = {}, ...others } = spec.podSelector;
    // Expressions are not evaluated here, so they may match, and so may a label that the cluster adds to the pod.
    const may =
      Object.keys(others).length > 0 ||
      Object.entries(matchLabels).every(([key, is]) => labels[key] === is || mayBeAdded(key, plan.kind));
    return may && ((spec.egress ?? []).length > 0 || (spec.ingress ?? []).length > 0);
  });
  if (first !== undefined)
    throw notShut(
      `the network policy ${first.metadata.name} of the namespace allows it some traffic`,
      "use a namespace of its own: --engine kubernetes:/NAMESPACE",
    );
}

const refuse = (thrown: unknown): never => {
  throw refusalOf(thrown);
};

const notShut = (why: string, next: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `no pod as a box: its network is not shut: ${why}`, next);

/**
 * Whether the box shall own its policies: the policies of a loop's box go with the loop, those of a box from a pool
 * with its pod.
 */
const ownsPolicies = ({ owner, kind }: PodPlan): boolean => owner === null || kind === "Claim";

/** Creates the policy that denies everything, before the pod is made. */
export const denyAllTraffic = (cluster: Cluster, plan: PodPlan): Promise<void> =>
  make(cluster, policyOf(plan, ownsPolicies(plan) ? "first" : "shut"));

/**
 * Gives the existing box its own policies: the one that shuts it, and the one that lets it out until its proof has
 * begun. Whoever removes the box from the cluster, even if this process is gone, removes both. The first policy stands
 * until then, so that the box is never without one; an existing policy is never changed.
 */
export async function handOver(cluster: Cluster, plan: PodPlan, box: PodOwner): Promise<void> {
  const owner = ownsPolicies(plan) ? box : plan.owner;
  if (ownsPolicies(plan)) await make(cluster, policyOf({ ...plan, owner }));
  await make(cluster, policyOf({ ...plan, owner }, "open"));
  if (ownsPolicies(plan)) await removePolicy(cluster, policyName(plan, "first")).catch(refuse);
}

/** An existing policy was created by a request whose answer was lost: the name is ours alone. */
async function make(cluster: Cluster, body: JsonObject): Promise<void> {
  await cluster
    .call(POLICIES(cluster), { method: "POST", body })
    .catch((thrown: unknown) => isThere(thrown) || refuse(thrown));
}

/** A missing policy is no failure. */
async function removePolicy(cluster: Cluster, name: string): Promise<void> {
  try {
    await cluster.call(`${POLICIES(cluster)}/${name}`, { method: "DELETE" });
  } catch (thrown) {
    if (!(thrown instanceof ApiFailure && thrown.status === 404)) throw thrown;
  }
}

/** This many answers show how late an answer can be, so that a late answer is distinguished from none. */
const MIN_ANSWERS = 3;
/** How many times the slowest answer to wait, within these bounds. */
const TIMES = 30;
const LEAST_MS = 300;
const LONG_MS = 1000;
const LONG_TIMES = 3;
/** For each target: one lost packet proves nothing. */
const MIN_WAITED = 8;

interface Proving {
  readonly look: NetworkProbe["look"];
  /** What another container with the same network saw while the pod was let out. */
  readonly open: Sight | undefined;
}

/**
 * Proves that the box reaches nothing. While only the runner is there, a policy lets the box out, and it must reach the
 * API server, its node or the configured probe; once that policy is removed and nothing else changed, it must reach
 * none of them.
 */
export async function proveShut(cluster: Cluster, plan: PodPlan, { look, open }: Proving): Promise<Sight> {
  const [opened] = await Promise.all([
    open ?? sightThat(cluster, look, ({ answered }) => answered >= MIN_ANSWERS),
    refuseOthers(cluster, plan),
  ]);
  if (opened === undefined)
    throw notShut(
      "neither the API server nor anything else that is tried can be reached even while that is allowed, so that nothing is proved",
      "name an address that pods here can reach: kubernetes.probe, HOST:PORT",
    );
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
  const { at: since } = await look();
  const shut = await sightThat(cluster, look, (now) =>
    isShut(now, since, Math.max(opened.slowest, now.slowest)),
  );
  if (shut === undefined)
    throw notShut(
      "it still reaches the API server or its node under a policy that denies all: nothing in the cluster enforces network policies",
      "install one that does (Calico, Cilium …), or use nodes whose pods have no network",
    );
  return { ...shut, slowest: Math.max(shut.slowest, opened.slowest) };
}

/** Whether many connections got no answer, although the first of them is much older than the slowest answer. */
function isShut({ at, quiet, waited }: Sight, since: number, slowest: number): boolean {
  const late = Math.min(TIMES * slowest, Math.max(LONG_MS, LONG_TIMES * slowest));
  return Math.min(quiet, at - since) >= Math.max(LEAST_MS, late) && waited >= MIN_WAITED;
}

/** The first observation that satisfies `shows`; undefined if none did in time. */
async function sightThat(
  { patienceMs, time: { now } }: Cluster,
  look: Proving["look"],
  shows: (sight: Sight) => boolean,
): Promise<Sight | undefined> {
  const deadline = now() + patienceMs;
  for (;;) {
    const sight = await look();
    if (shows(sight)) return sight;
    if (now() > deadline) return undefined;
  }
}

/** The probe reports all the time. */
const LOOK_MS = 30_000;

/**
 * The last check, once everything that is sent before a run is there: nothing has answered since the box was proven
 * shut.
 */
export async function stillShut({ look, end }: NetworkProbe, shown: Sight): Promise<void> {
  const { answered } = await unlessAborted(look(), AbortSignal.timeout(LOOK_MS));
  await end();
  if (answered > shown.answered)
    throw notShut(
      "it was shut, but reached the API server, its node or kubernetes.probe again before anything was run",
      "kubectl get networkpolicies   (find out who changed the policies, or how they are enforced)",
    );
}

/** For a box that has nothing to prove. */
export const removeOpening = async (cluster: Cluster, plan: PodPlan): Promise<void> => {
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
};

/**
 * What a box has seen of its network since its probe began, as sandbox/probe/probe.c reports it; times are milliseconds
 * on its clock.
 */
export interface Sight {
  readonly at: number;
  /** Answers so far: a refused connection counts as an answer. */
  readonly answered: number;
  /** The time of the slowest answer. */
  readonly slowest: number;
  /** How long the first connection that began after the last answer has waited. */
  readonly quiet: number;
  /** How many connections to each target have waited a while since then. */
  readonly waited: number;
}

interface NetworkProbe {
  /** The next report. */
  readonly look: () => Promise<Sight>;
  readonly end: () => Promise<void>;
}

const PROGRAM = "/usr/local/lib/harness/probe";
const STEP_MS = 20;
const DAY_MS = 24 * 3_600_000;
const KUBELET_PORT = 10_250;

/** Host and port of the API server's service as the pod knows them, and of its node's kubelet. */
export const targetsOn = (node: string): readonly string[] => [`$${API_VARIABLE}`, `${node} ${KUBELET_PORT}`];

/** Probes all targets at once until it is ended; each target is a host and a port. */
export function startProbe(client: RunnerClient, targets: readonly string[]): NetworkProbe {
  const state = { next: expectSight(), rest: "" };
  const take = (line: string): void => {
    const sight = sightIn(line);
    const { resolve, reject } = state.next;
    if (sight === undefined) return reject(failed(`it printed ${JSON.stringify(line.slice(0, 80))}`));
    state.next = expectSight();
    resolve(sight);
  };
  const started = startCommand(
    client,
    {
      words: [PROGRAM, String(STEP_MS), ...targets],
      folder: "/",
      timeoutMs: DAY_MS,
      keep: { head: Number.MAX_SAFE_INTEGER, tail: 0 },
      onOutput: (stream, bytes) => {
        if (stream === "stderr") return;
        const lines = (state.rest + Buffer.from(bytes).toString("latin1")).split("\n");
        state.rest = lines.pop() ?? "";
        for (const line of lines) take(line);
      },
    },
    { workspace: "/" },
  );
  const over = (async () => {
    try {
      const { exit_code } = await started.ended;
      const stderr = started.errors().trim();
      state.next.reject(failed(`${exit_code}${stderr === "" ? "" : `: ${stderr}`}`));
    } catch (thrown) {
      state.next.reject(thrown);
    }
  })();
  return {
    look: () => state.next.promise,
    end: () => {
      started.end("cancelled");
      return over;
    },
  };
}

function expectSight(): PromiseWithResolvers<Sight> {
  const next = Promise.withResolvers<Sight>();
  // Perhaps nobody awaits it.
  next.promise.catch(() => undefined);
  return next;
}

function sightIn(line: string): Sight | undefined {
  const numbers = /^(\d+) (\d+) (\d+) (\d+) (\d+)$/.exec(line)?.slice(1).map(Number);
  if (numbers === undefined) return undefined;
  const [at = 0, answered = 0, slowest = 0, quiet = 0, waited = 0] = numbers;
  return { at, answered, slowest, quiet, waited };
}

const failed = (why: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `no pod as a box: its network is not shut: the probe failed (${why})`,
    "the image must be of this version: harness sandbox build, and for environments harness env build --rebuild",
  );
