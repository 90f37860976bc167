import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterApi, KubeObject } from "./cluster-api.ts";
import { look } from "./cluster-api.ts";
import { PODS } from "./cluster-places.ts";

/**
 * A policy engine for tests: translates NetworkPolicies of `networking.k8s.io/v1` into rules of the node's filter. Pods
 * whose address it has not seen yet reach nothing. Connections made before a policy came continue, as with most
 * engines.
 */

type Rules = readonly string[];

export interface ClusterState {
  readonly pods: readonly KubeObject[];
  readonly policies: readonly KubeObject[];
  readonly namespaces: readonly KubeObject[];
}

interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

/** Whether labels match a selector; an empty selector matches all. */
export function selects(selector: unknown, labels: Readonly<Record<string, string>> = {}): boolean {
  const equal = Object.entries((look(selector, "matchLabels") ?? {}) as Record<string, string>);
  const asked = (look(selector, "matchExpressions") ?? []) as readonly Requirement[];
  return (
    equal.every(([key, value]) => labels[key] === value) &&
    asked.every(({ key, operator, values = [] }) => {
      const has = key in labels;
      if (operator === "Exists") return has;
      if (operator === "DoesNotExist") return !has;
      return values.includes(labels[key] ?? "") === (operator === "In") && (operator === "NotIn" || has);
    })
  );
}

const addressOf = (pod: KubeObject): string | undefined => look(pod, "status", "podIP") as string | undefined;

const isOver = (pod: KubeObject): boolean =>
  ["Succeeded", "Failed"].includes(String(look(pod, "status", "phase")));

interface Peer {
  readonly match: string;
  readonly except: readonly string[];
  /** Only for a pod: resolves port names. */
  readonly pod?: KubeObject;
}

function peersOf(
  wanted: readonly unknown[] | undefined,
  policy: KubeObject,
  seen: ClusterState,
): readonly Peer[] {
  if (wanted === undefined || wanted.length === 0) return [{ match: "0.0.0.0/0", except: [] }];
  return wanted.flatMap((one): readonly Peer[] => {
    const block = look(one, "ipBlock");
    if (block !== undefined)
      return [{ match: String(look(block, "cidr")), except: (look(block, "except") ?? []) as string[] }];
    const spaces = look(one, "namespaceSelector");
    const inSpace = (name: string | undefined): boolean =>
      spaces === undefined
        ? name === policy.metadata.namespace
        : seen.namespaces.some(({ metadata }) => metadata.name === name && selects(spaces, metadata.labels));
    return seen.pods
      .filter(
        (pod) => inSpace(pod.metadata.namespace) && selects(look(one, "podSelector"), pod.metadata.labels),
      )
      .flatMap((pod) => ({ match: `${addressOf(pod)}/32`, except: [], pod }));
  });
}

/** Filter matches for the ports of a rule; `at` is the pod that has the ports. */
function portMatches(ports: unknown, at: KubeObject | undefined): readonly string[] {
  const wanted = (ports ?? []) as readonly { protocol?: string; port?: number | string }[];
  if (wanted.length === 0) return [""];
  return wanted.flatMap(({ protocol = "TCP", port }) => {
    const kind = `-p ${protocol.toLowerCase()}`;
    if (port === undefined) return [kind];
    if (typeof port === "number") return [`${kind} --dport ${port}`];
    const containers = (look(at, "spec", "containers") ?? []) as readonly { ports?: readonly object[] }[];
    return containers
      .flatMap((one) => one.ports ?? [])
      .filter((one) => look(one, "name") === port && (look(one, "protocol") ?? "TCP") === protocol)
      .map((one) => `${kind} --dport ${String(look(one, "containerPort"))}`);
  });
}

/**
 * Rules for one direction of one pod: permitted traffic goes to `pass`, the rest is dropped. None if no policy applies.
 */
function isolation(
  pod: KubeObject,
  direction: "Egress" | "Ingress",
  seen: ClusterState,
  blocks: string[],
): Rules | undefined {
  const about = seen.policies.filter(
    (policy) =>
      policy.metadata.namespace === pod.metadata.namespace &&
      selects(look(policy, "spec", "podSelector"), pod.metadata.labels) &&
      ((look(policy, "spec", "policyTypes") ?? []) as string[]).includes(direction),
  );
  if (about.length === 0) return undefined;
  const out = direction === "Egress";
  const chain = out ? "TESTS-EGRESS" : "TESTS-INGRESS";
  const pass = out ? "TESTS-INGRESS" : "ACCEPT";
  const [own, other] = out ? ["-s", "-d"] : ["-d", "-s"];
  const self = `-A ${chain} ${own} ${addressOf(pod)}/32`;
  const rules = about.flatMap((policy) => {
    const wanted = (look(policy, "spec", out ? "egress" : "ingress") ?? []) as readonly unknown[];
    return wanted.flatMap((rule) =>
      peersOf(look(rule, out ? "to" : "from") as readonly unknown[] | undefined, policy, seen).flatMap(
        (peer) =>
          portMatches(look(rule, "ports"), out ? peer.pod : pod).map((port) => {
            if (peer.except.length === 0) return `${self} ${other} ${peer.match} ${port} -j ${pass}`;
            const name = `TESTS-BLOCK-${blocks.filter((line) => line.startsWith(":")).length}`;
            const left = peer.except.map((range) => `-A ${name} ${other} ${range} -j RETURN`);
            blocks.push(`:${name} - [0:0]`, ...left, `-A ${name} -j ${pass}`);
            return `${self} ${other} ${peer.match} ${port} -j ${name}`;
          }),
      ),
    );
  });
  return [...rules, `${self} -j DROP`];
}

/** The complete filter, in the format of `iptables-restore --noflush`. */
export function filterText(all: ClusterState): string {
  const withAddress = all.pods.filter(
    (pod) => addressOf(pod) !== undefined && !isOver(pod) && look(pod, "spec", "hostNetwork") !== true,
  );
  const seen = { ...all, pods: withAddress };
  const blocks: string[] = [];
  const egress = withAddress.flatMap(
    (pod) =>
      isolation(pod, "Egress", seen, blocks) ?? [`-A TESTS-EGRESS -s ${addressOf(pod)}/32 -j TESTS-INGRESS`],
  );
  const ingress = withAddress.flatMap((pod) => isolation(pod, "Ingress", seen, blocks) ?? []);
  return [
    "*filter",
    ":TESTS-EGRESS - [0:0]",
    ":TESTS-INGRESS - [0:0]",
    ...blocks.filter((line) => line.startsWith(":")),
    ...blocks.filter((line) => !line.startsWith(":")),
    "-A TESTS-EGRESS -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    ...egress,
    `-A TESTS-EGRESS -s ${PODS} -j DROP`,
    "-A TESTS-EGRESS -j TESTS-INGRESS",
    ...ingress,
    "-A TESTS-INGRESS -j ACCEPT",
    "COMMIT",
    "",
  ].join("\n");
}

const KINDS = ["/api/v1/pods", "/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/namespaces"] as const;

/** Watches and enforces until the process ends; while the API server is away, the last rules stay. */
export function enforcePolicies(api: ClusterApi, inside: (line: string, input?: string) => void): void {
  const restore = "iptables-restore --wait --noflush";
  inside(restore, filterText({ pods: [], policies: [], namespaces: [] }));
  inside(`iptables -I FORWARD -j TESTS-EGRESS; iptables -I INPUT -s ${PODS} -j TESTS-EGRESS`);
  const told = { dirty: true };
  for (const kind of KINDS) void follow(api, kind, () => (told.dirty = true));
  void (async () => {
    for (;;) {
      if (told.dirty) {
        told.dirty = false;
        try {
          const [pods = [], policies = [], namespaces = []] = await Promise.all(
            KINDS.map((kind) => api.list(kind)),
          );
          inside(restore, filterText({ pods, policies, namespaces }));
        } catch (thrown) {
          process.stderr.write(`policies: ${String(thrown)}\n`);
          told.dirty = true;
        }
      }
      await sleep(25);
    }
  })();
}

async function follow(api: ClusterApi, kind: string, changed: () => void): Promise<never> {
  for (;;) {
    try {
      for await (const _ of api.watch(`${kind}?watch=1&timeoutSeconds=300`, AbortSignal.timeout(310_000)))
        changed();
    } catch {
      // The server is away; the objects are listed when it is back.
    }
    changed();
    await sleep(100);
  }
}
