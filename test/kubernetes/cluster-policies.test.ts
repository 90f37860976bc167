import assert from "node:assert/strict";
import test from "node:test";
import type { KubeObject } from "./cluster-api.ts";
import { type ClusterState, filterText, selects } from "./cluster-policies.ts";

const pod = (name: string, address: string, labels: Record<string, string>, namespace = "a"): KubeObject => ({
  metadata: { name, namespace, labels },
  spec: { containers: [{ ports: [{ name: "web", containerPort: 8080 }] }] },
  status: { phase: "Running", podIP: address },
});

const policy = (spec: object, namespace = "a"): KubeObject => ({ metadata: { name: "p", namespace }, spec });

const PODS = [
  pod("box", "10.215.0.2", { role: "box" }),
  pod("proxy", "10.215.0.3", { role: "proxy" }),
  pod("far", "10.215.0.4", { role: "proxy" }, "b"),
];

function rules(wanted: Partial<ClusterState>): readonly string[] {
  const namespaces = [{ metadata: { name: "a" } }, { metadata: { name: "b", labels: { team: "far" } } }];
  const text = filterText({ pods: PODS, policies: [], namespaces, ...wanted });
  return text.split("\n").filter((line) => line.startsWith("-A"));
}

const about = (lines: readonly string[], address: string): readonly string[] =>
  lines.filter((line) => line.includes(` ${address}/32`) && line.startsWith("-A TESTS-EGRESS -s"));

const expressions = (operator: string, key: string, values?: readonly string[]): object => ({
  matchExpressions: [{ operator, key, values }],
});

test("label selectors select as Kubernetes does", () => {
  const labels = { a: "1", b: "2" };
  const rows: readonly (readonly [object | undefined, boolean])[] = [
    [{}, true],
    [undefined, true],
    [{ matchLabels: { a: "1" } }, true],
    [{ matchLabels: { a: "2" } }, false],
    [{ matchLabels: { c: "1" } }, false],
    [expressions("In", "a", ["1", "3"]), true],
    [expressions("In", "c", ["1"]), false],
    [expressions("NotIn", "a", ["1"]), false],
    [expressions("NotIn", "c", ["1"]), true],
    [expressions("Exists", "a"), true],
    [expressions("Exists", "c"), false],
    [expressions("DoesNotExist", "c"), true],
    [expressions("DoesNotExist", "a"), false],
  ];
  for (const [selector, wanted] of rows)
    assert.equal(selects(selector, labels), wanted, JSON.stringify(selector));
});

test("a pod without a policy gets through; an unknown address does not", () => {
  const lines = rules({});
  assert.deepEqual(about(lines, "10.215.0.2"), ["-A TESTS-EGRESS -s 10.215.0.2/32 -j TESTS-INGRESS"]);
  const order = lines.filter((line) => line.startsWith("-A TESTS-EGRESS"));
  assert.equal(order.at(-2), "-A TESTS-EGRESS -s 10.215.0.0/16 -j DROP");
});

test("a policy applies to the pods that it selects, in its own namespace", () => {
  const deny = { podSelector: {}, policyTypes: ["Egress"] };
  const lines = rules({ policies: [policy(deny, "b")] });
  assert.deepEqual(about(lines, "10.215.0.4"), ["-A TESTS-EGRESS -s 10.215.0.4/32 -j DROP"]);
  assert.deepEqual(about(lines, "10.215.0.2"), ["-A TESTS-EGRESS -s 10.215.0.2/32 -j TESTS-INGRESS"]);
});

test("a peer is allowed on its ports, by number and by name, and everything else is dropped", () => {
  const to = [{ podSelector: { matchLabels: { role: "proxy" } } }];
  const ports = [{ protocol: "TCP", port: 3128 }, { port: "web" }, { protocol: "UDP", port: "web" }];
  const spec = { podSelector: { matchLabels: { role: "box" } }, policyTypes: ["Egress"] };
  assert.deepEqual(about(rules({ policies: [policy({ ...spec, egress: [{ to, ports }] })] }), "10.215.0.2"), [
    "-A TESTS-EGRESS -s 10.215.0.2/32 -d 10.215.0.3/32 -p tcp --dport 3128 -j TESTS-INGRESS",
    "-A TESTS-EGRESS -s 10.215.0.2/32 -d 10.215.0.3/32 -p tcp --dport 8080 -j TESTS-INGRESS",
    "-A TESTS-EGRESS -s 10.215.0.2/32 -j DROP",
  ]);
  const far = [{ namespaceSelector: { matchLabels: { team: "far" } }, podSelector: {} }];
  assert.deepEqual(
    about(rules({ policies: [policy({ ...spec, egress: [{ to: far }] })] }), "10.215.0.2").map((line) =>
      line.replaceAll(/ +/g, " "),
    ),
    [
      "-A TESTS-EGRESS -s 10.215.0.2/32 -d 10.215.0.4/32 -j TESTS-INGRESS",
      "-A TESTS-EGRESS -s 10.215.0.2/32 -j DROP",
    ],
  );
});

test("a block of addresses is allowed without its exceptions", () => {
  const egress = [{ to: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.213.0.0/16", "10.214.0.0/16"] } }] }];
  const lines = rules({
    policies: [policy({ podSelector: {}, policyTypes: ["Egress"], egress }, "b")],
  });
  assert.deepEqual(
    lines.filter((line) => line.startsWith("-A TESTS-BLOCK-")),
    [
      "-A TESTS-BLOCK-0 -d 10.213.0.0/16 -j RETURN",
      "-A TESTS-BLOCK-0 -d 10.214.0.0/16 -j RETURN",
      "-A TESTS-BLOCK-0 -j TESTS-INGRESS",
    ],
  );
});

test("ingress is checked at the pod that is reached", () => {
  const ingress = [{ from: [{ podSelector: { matchLabels: { role: "box" } } }], ports: [{ port: 8080 }] }];
  const spec = { podSelector: { matchLabels: { role: "proxy" } }, policyTypes: ["Ingress"], ingress };
  const lines = rules({ policies: [policy(spec)] }).filter((line) => line.startsWith("-A TESTS-INGRESS"));
  assert.deepEqual(lines, [
    "-A TESTS-INGRESS -d 10.215.0.3/32 -s 10.215.0.2/32 -p tcp --dport 8080 -j ACCEPT",
    "-A TESTS-INGRESS -d 10.215.0.3/32 -j DROP",
    "-A TESTS-INGRESS -j ACCEPT",
  ]);
});
