import * as z from "zod";
import { EXIT, HarnessError } from "../core/errors.ts";
import { unlessAborted } from "../platform/cancelled.ts";
import { ApiFailure, type Cluster, isThere } from "./cluster.ts";
import type { NetworkProbe, Sight } from "./network-probe.ts";
import { refusalOf } from "./pod-failure.ts";
import { mayBeGiven } from "./pod-readback.ts";
import {
  type JsonObject,
  POLICY_PARTS,
  policyName,
  policyOf,
  podLabels,
  type PodOwner,
  type PodPlan,
} from "./pod-spec.ts";

/** Below the namespace, and before a name. */
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

/** Policies only ever add: one of the namespace that lets all of its pods out lets the box out, too. */
async function refuseOthers(cluster: Cluster, plan: PodPlan): Promise<void> {
  const { items } = policyList.parse(await cluster.call(POLICIES(cluster)).catch(refuse));
  const labels = podLabels(plan);
  const first = items.find(({ metadata: { name }, spec }) => {
    if (POLICY_PARTS.some((part) => name === policyName(plan, part))) return false;
    const { matchLabels = {}, ...others } = spec.podSelector;
    // An expression that is not read here may match, and so may a label that the cluster gives the pod by itself.
    const may =
      Object.keys(others).length > 0 ||
      Object.entries(matchLabels).every(([key, is]) => labels[key] === is || mayBeGiven(key, plan.kind));
    return may && ((spec.egress ?? []).length > 0 || (spec.ingress ?? []).length > 0);
  });
  if (first !== undefined)
    throw none(
      `the network policy ${first.metadata.name} of the namespace opens it to something`,
      "use a namespace of its own: --engine kubernetes:/NAMESPACE",
    );
}

const refuse = (thrown: unknown): never => {
  throw refusalOf(thrown);
};

const none = (why: string, next: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `no pod as a box: its network is not shut: ${why}`, next);

/** Whether its policies are to be the box's own: that of a loop has them go with the loop, one out of a pool with its pod. */
const isHanded = ({ owner, kind }: PodPlan): boolean => owner === null || kind === "Claim";

/** Before the pod is made: what denies all. */
export const shut = (cluster: Cluster, plan: PodPlan): Promise<void> =>
  make(cluster, policyOf(plan, isHanded(plan) ? "first" : "shut"));

/**
 * Once the box is there, it owns what shuts it and what lets it out until its proof has begun: whatever removes it from the
 * cluster, and whoever is no more to do it, takes both along. The one before stands until then, so that the box is never
 * without; a policy that is there is changed in nothing.
 */
export async function handOver(cluster: Cluster, plan: PodPlan, box: PodOwner): Promise<void> {
  const owner = isHanded(plan) ? box : plan.owner;
  if (isHanded(plan)) await make(cluster, policyOf({ ...plan, owner }));
  await make(cluster, policyOf({ ...plan, owner }, "open"));
  if (isHanded(plan)) await removePolicy(cluster, policyName(plan, "first")).catch(refuse);
}

/** One that is there was made for a server that was gone before it said so: the name is ours alone. */
async function make(cluster: Cluster, body: JsonObject): Promise<void> {
  await cluster
    .call(POLICIES(cluster), { method: "POST", body })
    .catch((thrown: unknown) => isThere(thrown) || refuse(thrown));
}

/** There may be none. */
async function removePolicy(cluster: Cluster, name: string): Promise<void> {
  try {
    await cluster.call(`${POLICIES(cluster)}/${name}`, { method: "DELETE" });
  } catch (thrown) {
    if (!(thrown instanceof ApiFailure && thrown.status === 404)) throw thrown;
  }
}

/** So many answers tell how late one comes here, so that one that is late is told from none. */
const LEAST_ANSWERS = 3;
/** Times the slowest of them, within these bounds. */
const [TIMES, LEAST_MS, LONG_MS, LONG_TIMES] = [30, 300, 1000, 3];
/** Of each target; one packet that is lost shuts nothing. */
const LEAST_WAITED = 8;

interface Proving {
  readonly look: NetworkProbe["look"];
  /** What another container of the pod saw, whose network is the same, while it was let out. */
  readonly open: Sight | undefined;
}

/**
 * Shows that the box reaches nothing. While nothing but the runner is there, a policy lets it out, and one of the API server,
 * its node and what is named for it has to be reached; without that policy none of them may be, and nothing else was changed.
 */
export async function proveShut(cluster: Cluster, plan: PodPlan, { look, open }: Proving): Promise<Sight> {
  const [opened] = await Promise.all([
    open ?? seen(cluster, look, ({ answered }) => answered >= LEAST_ANSWERS),
    refuseOthers(cluster, plan),
  ]);
  if (opened === undefined)
    throw none(
      "neither the API server nor anything else that is tried is reached when it may be, so that it proves nothing",
      "name something that pods here do reach: kubernetes.probe, HOST:PORT",
    );
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
  const { at: since } = await look();
  const shut = await seen(cluster, look, (now) => isShut(now, since, Math.max(opened.slowest, now.slowest)));
  if (shut === undefined)
    throw none(
      "it still reaches the API server or its node under a policy that denies all: nothing in the cluster enforces network policies",
      "install one that does (Calico, Cilium …), or use nodes whose pods have no network",
    );
  return { ...shut, slowest: Math.max(shut.slowest, opened.slowest) };
}

/** Nobody answers, of many connections, though the first of them is far older than the slowest answer was. */
function isShut({ at, quiet, waited }: Sight, since: number, slowest: number): boolean {
  const late = Math.min(TIMES * slowest, Math.max(LONG_MS, LONG_TIMES * slowest));
  return Math.min(quiet, at - since) >= Math.max(LEAST_MS, late) && waited >= LEAST_WAITED;
}

/** What showed it once; undefined: in its time nothing did. */
async function seen(
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

/** It is said all the while. */
const LOOK_MS = 30_000;

/** The last look, once all that is sent before anything is run is there: nobody has answered since it was shown to be shut. */
export async function stillShut({ look, end }: NetworkProbe, shown: Sight): Promise<void> {
  const { answered } = await unlessAborted(look(), AbortSignal.timeout(LOOK_MS));
  await end();
  if (answered > shown.answered)
    throw none(
      "it was shut, and reached the API server, its node or kubernetes.probe again before anything was run",
      "kubectl get networkpolicies: who changed what stands there, or how it is enforced?",
    );
}

/** Where there is nothing to prove. */
export const removeOpening = async (cluster: Cluster, plan: PodPlan): Promise<void> => {
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
};
