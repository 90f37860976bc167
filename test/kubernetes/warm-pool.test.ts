import assert from "node:assert/strict";
import test from "node:test";
import { policyOf, podSpec, type PodPlan } from "../../src/kubernetes/pod-spec.ts";
import { readbackDifferences } from "../../src/kubernetes/pod-readback.ts";
import { handOver, proveShut, denyAllTraffic } from "../../src/kubernetes/network-proof.ts";
import {
  claimedPod,
  hasWaiting,
  NotFromPool,
  poolObjects,
  servesClaims,
} from "../../src/kubernetes/agent-sandbox.ts";
import { NEVER } from "../contract/box-words.ts";
import { type ObjectsApi, objectsApi } from "../fakes/kubernetes-objects.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

const CLAIMED: PodPlan = { ...PLAN, kind: "Claim", owner: { name: "loop", uid: "l" } };
const EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1";
const BELOW = `${EXTENSIONS}/namespaces/team`;
const CLAIM = `${BELOW}/sandboxclaims/${PLAN.name}`;
const POD = "/api/v1/namespaces/team/pods/boxes-1";
const LABEL = "sandbox.users.io/harness-pod";

const life = (plan: PodPlan): unknown =>
  (podSpec(plan)["spec"] as { activeDeadlineSeconds: number }).activeDeadlineSeconds;

test("a pool's template is a box's pod without a name and with time to wait, and its policy denies all traffic", () => {
  const [template, pool] = poolObjects(CLAIMED, {
    pool: "boxes",
    replicas: 3,
    labels: { a: "b" },
  }) as unknown as {
    readonly kind: string;
    readonly metadata: object;
    readonly spec: Readonly<Record<string, unknown>>;
  }[];
  assert.deepEqual([template?.kind, pool?.kind], ["SandboxTemplate", "SandboxWarmPool"]);
  assert.deepEqual(template?.metadata, { name: "boxes", namespace: "team", labels: { a: "b" } });
  const { podTemplate, ...rest } = template?.spec ?? {};
  assert.deepEqual(podTemplate, { spec: podSpec(CLAIMED)["spec"] });
  assert.deepEqual(rest, { service: false, networkPolicyManagement: "Managed", networkPolicy: {} });
  assert.equal(life(CLAIMED), 2 * Number(life(PLAN)));
  assert.deepEqual(pool?.spec, {
    replicas: 3,
    sandboxTemplateRef: { name: "boxes" },
    updateStrategy: { type: "Recreate" },
  });
});

/** The pod as observed on a real cluster once claimed. */
function given(more: Readonly<Record<string, string>> = {}): Record<string, unknown> {
  const pod = structuredClone(podSpec(CLAIMED)) as unknown as { metadata: { labels: object; name: string } };
  pod.metadata.name = "boxes-1";
  pod.metadata.labels = {
    [LABEL]: PLAN.name,
    "agents.x-k8s.io/sandbox-name-hash": "02f27a7d",
    "agents.x-k8s.io/sandbox-template-ref-hash": "514c98f2",
    ...more,
  };
  return pod;
}

test("a pod from a pool may have its claim's labels and two of the controller's", () => {
  const spec = podSpec(CLAIMED);
  assert.deepEqual(readbackDifferences(spec, given(), "Claim"), []);
  for (const [label, value] of [
    ["agents.x-k8s.io/warm-pool-sandbox", "514c98f2"],
    ["sandbox.users.io/other", "x"],
    ["dev.harness.pod", PLAN.name],
  ] as const)
    assert.deepEqual(readbackDifferences(spec, given({ [label]: value }), "Claim"), [
      `metadata.labels.${label}: was added ("${value}")`,
    ]);
  assert.match(
    readbackDifferences(spec, given({ [LABEL]: "another" }), "Claim").join(),
    /harness-pod: is "another"/,
  );
});

test("a claimed pod's policies select it by its claim's label and belong to it, whatever owns the claim", async () => {
  for (const part of ["first", "shut", "open"] as const) {
    const { spec } = policyOf(CLAIMED, part) as unknown as { spec: { podSelector: object } };
    assert.deepEqual(spec.podSelector, { matchLabels: { [LABEL]: PLAN.name } });
  }
  await using api = await objectsApi();
  await denyAllTraffic(api.cluster, CLAIMED);
  await handOver(api.cluster, CLAIMED, { name: "boxes-1", uid: "u" });
  const kept = [...api.objects.values()] as { metadata: { name: string; ownerReferences: object[] } }[];
  assert.deepEqual(kept.map(({ metadata }) => metadata.name).toSorted(), [PLAN.name, `${PLAN.name}-open`]);
  for (const { metadata } of kept)
    assert.deepEqual(metadata.ownerReferences, [
      { apiVersion: "v1", kind: "Pod", name: "boxes-1", uid: "u" },
    ]);
});

test("a policy that selects by a label of the controller may open a pod from a pool, and no other", async () => {
  for (const [plan, isOpened] of [
    [CLAIMED, true],
    [PLAN, false],
  ] as const) {
    await using api = await objectsApi();
    const podSelector = { matchLabels: { "agents.x-k8s.io/sandbox-template-ref-hash": "514c98f2" } };
    const policy = { metadata: { name: "boxes-network-policy" }, spec: { podSelector, egress: [{}] } };
    api.objects.set(
      "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/boxes-network-policy",
      policy,
    );
    const open = { at: 0, answered: 9, slowest: 1, quiet: 0, waited: 0 };
    const look = async () => {
      await api.cluster.time.wait(400, undefined);
      return { ...open, at: api.waited(), quiet: api.waited(), waited: 9 };
    };
    const proving = proveShut(api.cluster, plan, { look, open });
    if (isOpened)
      await assert.rejects(proving, /the network policy boxes-network-policy of the namespace allows it/);
    else await proving;
  }
});

const claiming = (api: ObjectsApi) =>
  claimedPod(api.cluster, CLAIMED, {
    pool: "boxes",
    until: new Date("2026-05-06T07:08:09.010Z"),
    signal: NEVER,
    scheduleMs: 1000,
    onWarning: () => undefined,
  });

const running = (pod: Record<string, unknown>, sandbox = "boxes-1"): Record<string, unknown> => {
  const owner = { kind: "Sandbox", name: sandbox, uid: "s", controller: true };
  Object.assign(pod["metadata"] as object, { ownerReferences: [owner] });
  const status = { containerStatuses: [{ name: "box", state: { running: {} } }] };
  return { ...pod, status };
};

/** The controller's answer to the claim, once the claim was read. */
function controller(api: ObjectsApi, status: object, pod?: Record<string, unknown>): void {
  api.onWait = () => {
    Object.assign(api.objects.get(CLAIM) as object, { status });
    if (pod !== undefined) api.objects.set(POD, pod);
  };
}

test("a claim names its pool, its end and the pod's label, and is owned by its loop", async () => {
  await using api = await objectsApi();
  controller(api, { sandbox: { name: "boxes-1" } }, running(given()));
  const pod = await claiming(api);
  assert.equal(pod.metadata?.name, "boxes-1");
  const { metadata, spec } = api.objects.get(CLAIM) as { metadata: Record<string, unknown>; spec: unknown };
  assert.deepEqual(metadata["ownerReferences"], [{ apiVersion: "v1", kind: "Pod", name: "loop", uid: "l" }]);
  assert.deepEqual(metadata["labels"], { ...PLAN.labels, "dev.harness.pod": PLAN.name });
  assert.deepEqual(spec, {
    warmPoolRef: { name: "boxes" },
    lifecycle: { shutdownTime: "2026-05-06T07:08:09Z", shutdownPolicy: "Delete" },
    additionalPodMetadata: { labels: { [LABEL]: PLAN.name }, annotations: PLAN.annotations },
  });
});

const REFUSED: readonly (readonly [string, object, Record<string, unknown> | undefined, RegExp])[] = [
  [
    "a pod made for it because none waited",
    { sandbox: { name: PLAN.name } },
    undefined,
    /it has no waiting pods left/,
  ],
  [
    "a pod without its label",
    { sandbox: { name: "boxes-1" } },
    running({ metadata: {} }),
    /its controller assigned none/,
  ],
  [
    "a pod of another Sandbox",
    { sandbox: { name: "boxes-1" } },
    running(given(), "boxes-2"),
    /assigned none/,
  ],
  ["a pod that does not run", { sandbox: { name: "boxes-1" } }, given(), /assigned none/],
  [
    "a refusal",
    { conditions: [{ type: "Ready", status: "False", reason: "InvalidMetadata", message: "label domain" }] },
    undefined,
    /its controller says: label domain/,
  ],
];
for (const [what, status, pod, why] of REFUSED)
  test(`a claim that is given ${what} yields no box`, async () => {
    await using api = await objectsApi();
    controller(api, status, pod);
    await assert.rejects(
      claiming(api),
      (thrown) => thrown instanceof NotFromPool && why.test(thrown.message),
    );
  });

test("a pool is read only where claims are served, and its status says whether a pod waits", async () => {
  await using api = await objectsApi();
  await assert.rejects(hasWaiting(api.cluster, "pool"), NotFromPool);
  for (const [status, is] of [
    [{}, false],
    [{ readyReplicas: 0 }, false],
    [{ readyReplicas: 2 }, true],
  ] as const) {
    api.objects.set(`${BELOW}/sandboxwarmpools/pool`, { status });
    assert.equal(await hasWaiting(api.cluster, "pool"), is);
  }
  assert.equal(await servesClaims(api.cluster), false);
  assert.ok(
    !api.heard.includes(`GET ${EXTENSIONS}`),
    "where no Sandboxes are served, claims are not asked about",
  );
});
