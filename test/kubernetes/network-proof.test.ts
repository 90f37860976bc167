import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { EXIT } from "../../src/core/errors.ts";
import {
  handOver,
  proveShut,
  removeOpening,
  denyAllTraffic,
  type Sight,
  stillShut,
} from "../../src/kubernetes/network-proof.ts";
import { type ObjectsApi, objectsApi } from "../fakes/kubernetes-objects.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

const POLICIES = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies";
const OPENING = `${POLICIES}/${PLAN.name}-open`;

interface Proof {
  /** Whether the box gets answers, depending on whether the opening policy exists. */
  readonly answers?: (isLetOut: boolean, api: ObjectsApi) => boolean;
  /** The time of the slowest answer. */
  readonly slowest?: number;
  /** How many of its connections have waited, of those that could have. */
  readonly waited?: (could: number) => number;
  readonly open?: Sight;
}

const OWNER = { name: PLAN.name, uid: "u" };
const STEP_MS = 20;

/** A probe that looks every 20 ms of the API's clock. */
function probing(api: ObjectsApi, { answers, slowest = 1, waited = (could) => could }: Proof) {
  const state = { answered: 0, since: 0, shown: undefined as Sight | undefined };
  const look = async (): Promise<Sight> => {
    await api.cluster.time.wait(STEP_MS, undefined);
    const isLetOut = api.objects.has(OPENING);
    const at = api.waited();
    if (answers?.(isLetOut, api) ?? isLetOut) [state.answered, state.since] = [state.answered + 1, at];
    const quiet = at - state.since;
    const could = Math.max(0, Math.floor((quiet - 100) / STEP_MS));
    return { at, answered: state.answered, slowest, quiet, waited: waited(could) };
  };
  return { look, state };
}

async function proving(api: ObjectsApi, proof: Proof = {}): Promise<Sight> {
  await denyAllTraffic(api.cluster, PLAN);
  await handOver(api.cluster, PLAN, OWNER);
  return proveShut(api.cluster, PLAN, { look: probing(api, proof).look, open: proof.open });
}

/** The length of the silence after which the network counts as shut, once the opening policy is gone. */
async function silence(proof: Proof): Promise<number> {
  await using api = await objectsApi();
  let gone = 0;
  const answers: Proof["answers"] = (isLetOut, { waited }) => {
    if (isLetOut) gone = waited();
    return proof.answers?.(isLetOut, api) ?? isLetOut;
  };
  await proving(api, { ...proof, answers });
  return api.waited() - gone;
}

const refused = (words: RegExp) => ({ name: "HarnessError", exit: EXIT.sandbox, message: words });

describe("a network counts as shut", () => {
  test("where it was open, and no longer is once the opening policy is gone", async () => {
    await using api = await objectsApi();
    await proving(api);
    assert.deepEqual(
      [...api.objects.keys()],
      [`${POLICIES}/${PLAN.name}`],
      "the policy that denies everything stays",
    );
  });

  test("where a policy takes a while to take effect", async () => {
    await using api = await objectsApi();
    let gone = Infinity;
    await proving(api, {
      answers: (isLetOut, { waited }) => {
        if (!isLetOut) gone = Math.min(gone, waited());
        return waited() < gone + 5000;
      },
    });
    assert.ok(api.waited() >= 5000);
  });

  const SEEN: Sight = { at: 0, answered: 9, slowest: 20, quiet: 0, waited: 0 };

  test("without being opened again where another container of the pod was seen open", async () => {
    await using api = await objectsApi();
    const shown = await proving(api, { answers: () => false, slowest: 0, open: SEEN });
    assert.ok(!api.objects.has(OPENING));
    assert.equal(shown.slowest, SEEN.slowest);
    assert.ok(api.waited() >= 30 * SEEN.slowest, String(api.waited()));
  });

  for (const [what, proof, least] of [
    ["after a third of a second of silence where answers came at once", {}, 300],
    ["after thirty times the slowest answer where answers came late", { slowest: 25 }, 750],
    ["after at most a second where answers took some hundred milliseconds", { slowest: 300 }, 1000],
    ["after three times the slowest answer where that is longer than a second", { slowest: 700 }, 2100],
    ["once enough connections to each target have waited", { waited: (could: number) => could / 4 }, 740],
  ] as const satisfies readonly (readonly [string, Proof, number])[])
    test(what, async () => {
      const took = await silence(proof);
      assert.ok(took >= least && took < least + 100, String(took));
    });

  test("by a silence that began after the opening policy was removed, not before", async () => {
    await using api = await objectsApi();
    // Its removal takes a while, and nothing answers meanwhile.
    const removal = /^DELETE .*-open$/;
    api.lost.push(removal, removal, removal, removal);
    let first = 0;
    await proving(api, {
      answers: (isLetOut, { waited }) => {
        if (!isLetOut) first ||= waited();
        return isLetOut;
      },
    });
    assert.ok(first > 500 && api.waited() - first >= 300, `${first} ${api.waited()}`);
  });

  test("where it has only its loopback, as soon as no policy opens it", async () => {
    await using api = await objectsApi();
    await denyAllTraffic(api.cluster, PLAN);
    await handOver(api.cluster, PLAN, OWNER);
    await removeOpening(api.cluster, PLAN);
    await removeOpening(api.cluster, PLAN);
    assert.deepEqual([...api.objects.keys()], [`${POLICIES}/${PLAN.name}`]);
  });

  test("during the handover to the box, which then owns both the closing and the opening policy", async () => {
    await using api = await objectsApi();
    await denyAllTraffic(api.cluster, PLAN);
    // There is no opening policy before there is a pod.
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

  test("by policies that its loop owns from the beginning, where there is one", async () => {
    await using api = await objectsApi();
    const plan = { ...PLAN, owner: { name: "loop", uid: "l" } };
    await denyAllTraffic(api.cluster, plan);
    await handOver(api.cluster, plan, { name: PLAN.name, uid: "u" });
    assert.deepEqual([...api.objects.keys()].toSorted(), [`${POLICIES}/${PLAN.name}`, OPENING]);
    assert.equal(api.heard.filter((each) => each.startsWith("DELETE ")).length, 0);
  });
});

const OPENED: Sight = { at: 0, answered: 9, slowest: 1, quiet: 0, waited: 0 };

describe("there is no box (exit 6)", () => {
  const NEVER_SHUT = /nothing in the cluster enforces network policies/;
  for (const [what, proof, words] of [
    ["where nothing enforces policies", { answers: () => true }, NEVER_SHUT],
    [
      "where nothing enforces policies for the other container either",
      { answers: () => true, open: OPENED },
      NEVER_SHUT,
    ],
    ["where the network opens every quarter of a second", { answers: flapping() }, NEVER_SHUT],
    ["where too few connections wait for an answer", { waited: () => 7 }, NEVER_SHUT],
    ["where nothing is ever reached", { answers: () => false }, /nothing is proved/],
    ["where almost nothing is reached", { answers: twice() }, /nothing is proved/],
  ] as const satisfies readonly (readonly [string, Proof, RegExp])[])
    test(what, async () => {
      await using api = await objectsApi();
      await assert.rejects(proving(api, proof), refused(words));
      assert.ok(api.waited() >= 10_000 && api.waited() < 20_000, String(api.waited()));
    });

  for (const [fits, what] of [
    [/^GET .*policies$/, "policies cannot be listed"],
    [/^POST .*policies$/, "policies cannot be created"],
    [/^DELETE .*-open$/, "the opening policy cannot be removed"],
  ] as const)
    test(`where ${what}`, async () => {
      await using api = await objectsApi();
      api.refuses = { fits, status: 403, reason: "Forbidden" };
      await assert.rejects(proving(api), refused(/no pod as a box: not authorised: /));
    });
});

function flapping(): (isLetOut: boolean) => boolean {
  let looks = 0;
  return (isLetOut) => isLetOut || (looks += 1) % 12 === 0;
}

/** Answers twice only, however long the network is open. */
function twice(): () => boolean {
  let times = 0;
  return () => (times += 1) <= 2;
}

const OUT = { egress: [{}] };
const POLICY_CASES: readonly (readonly [string, object, boolean])[] = [
  ["all pods out", { podSelector: {}, ...OUT }, true],
  ["all pods in", { podSelector: {}, ingress: [{ from: [] }] }, true],
  ["pods with our label out", { podSelector: { matchLabels: { "dev.harness.box": "1" } }, ...OUT }, true],
  [
    "pods with this name out",
    { podSelector: { matchLabels: { "dev.harness.pod": PLAN.name } }, ...OUT },
    true,
  ],
  [
    "pods that match an expression out",
    { podSelector: { matchExpressions: [{ key: "a", operator: "DoesNotExist" }] }, ...OUT },
    true,
  ],
  [
    "pods of a zone out, a label that the cluster may add,",
    { podSelector: { matchLabels: { "topology.kubernetes.io/zone": "z" } }, ...OUT },
    true,
  ],
  ["other pods out", { podSelector: { matchLabels: { app: "web" } }, ...OUT }, false],
  [
    "other pods of a zone out",
    { podSelector: { matchLabels: { "topology.kubernetes.io/zone": "z", app: "web" } }, ...OUT },
    false,
  ],
  ["nobody out", { podSelector: {}, policyTypes: ["Egress"], egress: null }, false],
];

for (const [what, spec, isRefused] of POLICY_CASES)
  test(`a policy of the namespace that lets ${what} is ${isRefused ? "named" : "ignored"}`, async () => {
    await using api = await objectsApi();
    api.objects.set(`${POLICIES}/other`, { metadata: { name: "other" }, spec });
    if (isRefused) await assert.rejects(proving(api), refused(/the network policy other of the namespace/));
    else await proving(api);
  });

test("an answer to the probe while the folder is sent, before anything runs, is refused", async () => {
  for (const [more, isRefused] of [
    [0, false],
    [1, true],
  ] as const) {
    await using api = await objectsApi();
    const shown = await proving(api);
    const ended: string[] = [];
    const probe = {
      look: () => Promise.resolve({ ...shown, answered: shown.answered + more }),
      end: () => Promise.resolve(void ended.push("ended")),
    };
    if (isRefused) await assert.rejects(stillShut(probe, shown), refused(/it was shut, but reached/));
    else await stillShut(probe, shown);
    assert.deepEqual(ended, ["ended"]);
  }
});
