import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { RunnerClient } from "../../src/boxes/runner/runner-client.ts";
import { EXIT } from "../../src/core/errors.ts";
import { probe, handOver, proveShut, removeOpening, shut } from "../../src/kubernetes/network-proof.ts";
import { type ObjectsApi, objectsApi } from "../fakes/kubernetes-objects.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

const POLICIES = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies";
const OPENING = `${POLICIES}/${PLAN.name}-open`;

interface Proof {
  /** What the box sees, given whether the policy that lets it out is there. */
  readonly sees?: (isLetOut: boolean, api: ObjectsApi) => "open" | "shut";
  readonly seenOpen?: boolean;
}

const OWNER = { name: PLAN.name, uid: "u" };

async function proving(api: ObjectsApi, { sees, seenOpen = false }: Proof = {}): Promise<void> {
  await shut(api.cluster, PLAN);
  await handOver(api.cluster, PLAN, OWNER);
  const look = (): Promise<"open" | "shut"> => {
    const isLetOut = api.objects.has(OPENING);
    return Promise.resolve(sees?.(isLetOut, api) ?? (isLetOut ? "open" : "shut"));
  };
  await proveShut(api.cluster, PLAN, { look, seenOpen });
}

const refused = (words: RegExp) => ({ name: "HarnessError", exit: EXIT.sandbox, message: words });

describe("a network is taken for shut", () => {
  test("where it was open, and is not once the policy that lets it out is gone", async () => {
    await using api = await objectsApi();
    await proving(api);
    assert.deepEqual([...api.objects.keys()], [`${POLICIES}/${PLAN.name}`], "what denies all stays");
  });

  test("where a policy takes a while to hold", async () => {
    await using api = await objectsApi();
    let gone = Infinity;
    await proving(api, {
      sees: (isLetOut, { waited }) => {
        if (!isLetOut) gone = Math.min(gone, waited());
        return waited() < gone + 5000 ? "open" : "shut";
      },
    });
    assert.ok(api.waited() >= 5000);
  });

  test("by one look less where another container of the pod was seen open", async () => {
    await using api = await objectsApi();
    await proving(api, { sees: () => "shut", seenOpen: true });
    assert.ok(!api.objects.has(OPENING));
  });

  test("where it has nothing but itself, as soon as nothing lets it out", async () => {
    await using api = await objectsApi();
    await shut(api.cluster, PLAN);
    await handOver(api.cluster, PLAN, OWNER);
    await removeOpening(api.cluster, PLAN);
    await removeOpening(api.cluster, PLAN);
    assert.deepEqual([...api.objects.keys()], [`${POLICIES}/${PLAN.name}`]);
  });

  test("all the while that it is handed over to the box, which owns what shuts it, and what lets it out, from then on", async () => {
    await using api = await objectsApi();
    await shut(api.cluster, PLAN);
    // Nothing lets out what nothing is there for.
    assert.deepEqual([...api.objects.keys()], [`${POLICIES}/${PLAN.name}-first`]);
    await handOver(api.cluster, PLAN, OWNER);
    const own = `${POLICIES}/${PLAN.name}`;
    assert.deepEqual([...api.objects.keys()].toSorted(), [own, OPENING]);
    for (const at of [own, OPENING]) {
      const kept = api.objects.get(at) as { readonly metadata: { readonly ownerReferences: unknown } };
      assert.deepEqual(kept.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Pod", ...OWNER }]);
    }
    const written = api.heard.filter((each) => /^(?:POST|DELETE) /.test(each));
    assert.deepEqual(
      written.map((each) => each.split(" ")[0]),
      ["POST", "POST", "POST", "DELETE"],
    );
    assert.match(written.at(-1) ?? "", /-first$/);
  });

  test("by what its loop owns from the beginning, where there is one", async () => {
    await using api = await objectsApi();
    const plan = { ...PLAN, owner: { name: "loop", uid: "l" } };
    await shut(api.cluster, plan);
    await handOver(api.cluster, plan, { name: PLAN.name, uid: "u" });
    assert.deepEqual([...api.objects.keys()].toSorted(), [`${POLICIES}/${PLAN.name}`, OPENING]);
    assert.equal(api.heard.filter((each) => each.startsWith("DELETE ")).length, 0);
  });
});

describe("there is no box (6)", () => {
  const NEVER_SHUT = /nothing in the cluster enforces network policies/;
  for (const [what, proof, words] of [
    ["where nothing enforces policies", { sees: () => "open" }, NEVER_SHUT],
    ["so by the other container, too", { sees: () => "open", seenOpen: true }, NEVER_SHUT],
    ["where it is open at every other look", { sees: flapping() }, NEVER_SHUT],
    ["where nothing is ever reached", { sees: () => "shut" }, /it proves nothing/],
  ] as const satisfies readonly (readonly [string, Proof, RegExp])[])
    test(what, async () => {
      await using api = await objectsApi();
      await assert.rejects(proving(api, proof), refused(words));
      assert.ok(api.waited() >= 10_000 && api.waited() < 20_000, String(api.waited()));
    });

  for (const [fits, what] of [
    [/^GET .*policies$/, "policies cannot be listed"],
    [/^POST .*policies$/, "policies cannot be made"],
    [/^DELETE .*-open$/, "the one that lets it out cannot be removed"],
  ] as const)
    test(`where ${what}`, async () => {
      await using api = await objectsApi();
      api.refuses = { fits, status: 403, reason: "Forbidden" };
      await assert.rejects(proving(api), refused(/no pod as a box: not authorised: /));
    });
});

function flapping(): (isLetOut: boolean) => "open" | "shut" {
  let looks = 0;
  return (isLetOut) => (isLetOut || (looks += 1) % 2 === 1 ? "open" : "shut");
}

const OUT = { egress: [{}] };
const POLICY_CASES: readonly (readonly [string, object, boolean])[] = [
  ["all pods out", { podSelector: {}, ...OUT }, true],
  ["all pods in", { podSelector: {}, ingress: [{ from: [] }] }, true],
  ["pods of our label out", { podSelector: { matchLabels: { "dev.harness.box": "1" } }, ...OUT }, true],
  ["pods of this name out", { podSelector: { matchLabels: { "dev.harness.pod": PLAN.name } }, ...OUT }, true],
  [
    "pods of an expression out",
    { podSelector: { matchExpressions: [{ key: "a", operator: "DoesNotExist" }] }, ...OUT },
    true,
  ],
  [
    "pods of a zone out, as the cluster gives a pod that label",
    { podSelector: { matchLabels: { "topology.kubernetes.io/zone": "z" } }, ...OUT },
    true,
  ],
  ["other pods out", { podSelector: { matchLabels: { app: "web" } }, ...OUT }, false],
  [
    "pods of a zone that are others out",
    { podSelector: { matchLabels: { "topology.kubernetes.io/zone": "z", app: "web" } }, ...OUT },
    false,
  ],
  ["nobody out", { podSelector: {}, policyTypes: ["Egress"], egress: null }, false],
];

for (const [what, spec, isRefused] of POLICY_CASES)
  test(`a policy of the namespace that lets ${what} is ${isRefused ? "named" : "none of ours"}`, async () => {
    await using api = await objectsApi();
    api.objects.set(`${POLICIES}/other`, { metadata: { name: "other" }, spec });
    if (isRefused) await assert.rejects(proving(api), refused(/the network policy other of the namespace/));
    else await proving(api);
  });

/** A runner whose command ends so. */
const ending = (code: number, stderr = ""): RunnerClient =>
  ({
    run: (_: unknown, { onOutput }: { onOutput: (stream: string, part: string, bytes: Buffer) => void }) => {
      onOutput("stderr", "head", Buffer.from(stderr));
      const none = { total: 0, lost: 0 };
      const rest = { signal: null, errno: null, where: 0, timedOut: false, killed: 0 };
      const ended = Promise.resolve({ code, ...rest, stdout: none, stderr: none });
      return { ended, signal: () => undefined, resize: () => undefined };
    },
  }) as unknown as RunnerClient;

test("what the box sees is open where one thing is reached, shut where none is, and no word where it could not look", async () => {
  const targets = ["$HARNESS_API", "10.0.0.1 10250"];
  assert.equal(await probe(ending(10), targets), "open");
  assert.equal(await probe(ending(124), targets), "shut");
  for (const [code, said] of [
    [20, ""],
    [21, "bash: /dev/tcp: no such thing"],
    [127, ""],
  ] as const)
    await assert.rejects(
      probe(ending(code, said), targets),
      refused(new RegExp(`the probe could not be made \\(${code}${said === "" ? "" : `: ${said}`}\\)`)),
    );
});
