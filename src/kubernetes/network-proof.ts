import * as z from "zod";
import { startCommand } from "../boxes/box-command.ts";
import type { RunnerClient } from "../boxes/runner/runner-client.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { ApiFailure, type Cluster, isThere } from "./cluster.ts";
import { refusalOf } from "./pod-failure.ts";
import { mayBeGiven } from "./pod-readback.ts";
import {
  API_VARIABLE,
  type JsonObject,
  NAME_LABEL,
  POLICY_PARTS,
  policyName,
  policyOf,
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
  const labels: Readonly<Record<string, string>> = { ...plan.labels, [NAME_LABEL]: plan.name };
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

/** Before the pod is made: what denies all. */
export const shut = (cluster: Cluster, plan: PodPlan): Promise<void> =>
  make(cluster, policyOf(plan, plan.owner === null ? "first" : "shut"));

/**
 * Once the box is there, it owns what shuts it and what lets it out until its proof has begun: whatever removes it from the
 * cluster, and whoever is no more to do it, takes both along. The one before stands until then, so that the box is never
 * without; a policy that is there is changed in nothing.
 */
export async function handOver(cluster: Cluster, plan: PodPlan, box: PodOwner): Promise<void> {
  const owner = plan.owner ?? box;
  if (plan.owner === null) await make(cluster, policyOf({ ...plan, owner }));
  await make(cluster, policyOf({ ...plan, owner }, "open"));
  if (plan.owner === null) await removePolicy(cluster, policyName(plan, "first")).catch(refuse);
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

const PAUSE_MS = 200;

type Seen = "open" | "shut";

interface Probe {
  /** What the box sees of its network now. */
  readonly look: () => Promise<Seen>;
  /** By another container of the pod, whose network is the same. */
  readonly seenOpen: boolean;
}

/**
 * Shows that the box reaches nothing. While nothing but the runner is there, a policy lets it out, and one of the API server,
 * its node and what is named for it has to be reached; without that policy none of them may be, and nothing else was changed.
 */
export async function proveShut(cluster: Cluster, plan: PodPlan, probe: Probe): Promise<void> {
  await refuseOthers(cluster, plan);
  if (!probe.seenOpen && !(await becomes(cluster, probe, "open")))
    throw none(
      "neither the API server nor anything else that is tried is reached when it may be, so that it proves nothing",
      "name something that pods here do reach: kubernetes.probe, HOST:PORT",
    );
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
  if (!(await becomes(cluster, probe, "shut")))
    throw none(
      "it still reaches the API server or its node under a policy that denies all: nothing in the cluster enforces network policies",
      "install one that does (Calico, Cilium …), or use nodes whose pods have no network",
    );
}

/** Where there is nothing to prove. */
export const removeOpening = async (cluster: Cluster, plan: PodPlan): Promise<void> => {
  await removePolicy(cluster, policyName(plan, "open")).catch(refuse);
};

/** Whether it was seen so; to be shut, by two looks that overlap: one packet that is lost shuts nothing. */
async function becomes(
  { patienceMs, time: { now, wait } }: Cluster,
  { look }: Probe,
  wanted: Seen,
): Promise<boolean> {
  const deadline = now() + patienceMs;
  for (;;) {
    const seen = wanted === "open" ? [look()] : [look(), wait(PAUSE_MS, undefined).then(look)];
    if ((await Promise.all(seen)).every((one) => one === wanted)) return true;
    if (now() > deadline) return false;
    await wait(PAUSE_MS, undefined);
  }
}

const PROBE_S = 1;
const [CONNECTED, TIMED_OUT] = [10, 124];

/** Host and port of the API server's service as the pod has them, and of the kubelet of its node. */
export const targetsOn = (node: string): readonly string[] => [`$${API_VARIABLE}`, `${node} ${KUBELET}`];

const KUBELET = 10_250;

/** Refused by whoever is there counts as open: something answered. Open is one that is reached, shut are all that are not. */
export async function probe(client: RunnerClient, targets: readonly string[]): Promise<Seen> {
  const asked = await Promise.all(targets.map((target) => probeOne(client, target)));
  return asked.includes("open") ? "open" : "shut";
}

/** `target`: host and port, as a text of the shell's. */
async function probeOne(client: RunnerClient, target: string): Promise<Seen> {
  const script = `read -r host port <<< "${target}"
[ -n "$port" ] || exit 20
said=$(LC_ALL=C timeout ${PROBE_S} bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>&1); code=$?
[ $code = 0 ] && exit ${CONNECTED}
[ $code = ${TIMED_OUT} ] && exit ${TIMED_OUT}
case $said in
*"Connection refused"*|*"Connection reset"*) exit ${CONNECTED};;
*"unreachable"*|*"not permitted"*|*"timed out"*|*"No route to host"*) exit ${TIMED_OUT};;
esac
echo "$said" >&2; exit 21`;
  const words = ["bash", "-c", script];
  const command = { words, timeoutMs: 10_000, keep: { head: 1000, tail: 0 }, folder: "/" };
  const { exit_code, stderr } = await startCommand(client, command, { workspace: "/" }).ended;
  if (exit_code === CONNECTED) return "open";
  if (exit_code === TIMED_OUT) return "shut";
  const said = Buffer.from(stderr.head).toString("utf8").trim();
  throw none(`the probe could not be made (${exit_code}${said === "" ? "" : `: ${said}`})`, "harness doctor");
}
