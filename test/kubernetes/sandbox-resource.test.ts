import assert from "node:assert/strict";
import test from "node:test";
import { readbackDifferences } from "../../src/kubernetes/pod-readback.ts";
import { podSpec } from "../../src/kubernetes/pod-spec.ts";
import { sandboxPod, sandboxSpec, servesSandboxes } from "../../src/kubernetes/agent-sandbox.ts";
import { NEVER } from "../contract/box-words.ts";
import { type ObjectsApi, objectsApi } from "../fakes/kubernetes-objects.ts";
import { type Sandbox, unlikeSandbox } from "../fakes/sandbox-controller.ts";
import { PLAN } from "../fixtures/pod-plan.ts";
import { unlike } from "../fixtures/published-schema.ts";

const UNTIL = new Date("2026-05-06T07:08:09.010Z");

test("a Sandbox holds the pod as its template, has no Service, and ends by itself", () => {
  const owner = { name: "loop", uid: "u-1" };
  const pod = podSpec({ ...PLAN, owner });
  const { metadata, spec } = sandboxSpec(pod, UNTIL) as unknown as Sandbox;
  assert.deepEqual(metadata, pod["metadata"]);
  assert.deepEqual(spec.podTemplate.spec, pod["spec"]);
  const { labels, annotations } = metadata;
  assert.deepEqual(spec.podTemplate.metadata, { labels, annotations });
  assert.deepEqual(
    [spec.service, spec.shutdownTime, spec.shutdownPolicy],
    [false, "2026-05-06T07:08:09Z", "Delete"],
  );
});

test("a Sandbox matches the published schema, and its pod's specification that of Kubernetes", () => {
  const sandbox = sandboxSpec(podSpec(PLAN), UNTIL) as unknown as Sandbox;
  assert.deepEqual(unlikeSandbox(sandbox), []);
  assert.deepEqual(unlike(sandbox.spec.podTemplate.spec, "V1PodSpec", "spec"), []);
  const replicas = { ...sandbox, spec: { ...sandbox.spec, replicas: 1, shutdownTime: "tomorrow" } };
  assert.deepEqual(unlikeSandbox(replicas), [
    "spec.replicas: no such field",
    "spec.shutdownTime: no date-time",
  ]);
});

interface Meta {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

/** The pod of a Sandbox with these additions. */
function madeBy(more: (metadata: Meta, spec: Record<string, unknown>) => void): unknown {
  const pod = structuredClone(podSpec(PLAN)) as unknown as { metadata: Meta; spec: Record<string, unknown> };
  pod.metadata.labels["agents.x-k8s.io/sandbox-name-hash"] = "1c5d8f0e";
  pod.metadata.annotations["agents.x-k8s.io/propagated-labels"] = "dev.harness.box,dev.harness.pod";
  pod.metadata.annotations["agents.x-k8s.io/propagated-annotations"] = "dev.harness.workspace";
  more(pod.metadata, pod.spec);
  return pod;
}

test("additions of the Sandbox controller are no difference for a Sandbox, but are one for a bare pod", () => {
  const pod = madeBy(() => undefined);
  assert.deepEqual(readbackDifferences(podSpec(PLAN), pod, "Sandbox"), []);
  assert.match(readbackDifferences(podSpec(PLAN), pod).join(), /^metadata\.labels\.agents\.x-k8s\.io/);
});

const ADDED: readonly (readonly [string, Parameters<typeof madeBy>[0]])[] = [
  [
    "metadata.labels.agents.x-k8s.io/claim-uid",
    ({ labels }) => void (labels["agents.x-k8s.io/claim-uid"] = "u"),
  ],
  [
    "metadata.annotations.sidecar.istio.io/inject",
    ({ annotations }) => void (annotations["sidecar.istio.io/inject"] = "true"),
  ],
  ["spec.subdomain", (_, spec) => void (spec["subdomain"] = "harness-1")],
  ["spec.hostname", (_, spec) => void (spec["hostname"] = "harness-1")],
  ["spec.automountServiceAccountToken", (_, spec) => void (spec["automountServiceAccountToken"] = true)],
  [
    "spec.volumes[4]",
    (_, spec) => (spec["volumes"] as unknown[]).push({ name: "claim", persistentVolumeClaim: {} }),
  ],
  ["spec.containers[1]", (_, spec) => (spec["containers"] as unknown[]).push({ name: "router" })],
];

for (const [field, more] of ADDED)
  test(`a Sandbox controller that sets ${field} is refused, and the field is named`, () => {
    const [line = ""] = readbackDifferences(podSpec(PLAN), madeBy(more), "Sandbox");
    assert.ok(line.startsWith(`${field}: `), line);
  });

const SANDBOX = "/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes/harness-1";
const POD = "/api/v1/namespaces/team/pods/harness-1";

interface Waiting {
  readonly pod: Promise<unknown>;
  readonly said: readonly string[];
}

/** The first Sandbox gets the uid u-1 from the server, and later its controller's status. */
function waitFor(api: ObjectsApi, scheduleMs: number): Waiting {
  const said: string[] = [];
  const body = sandboxSpec(podSpec(PLAN), UNTIL);
  const starting = { signal: NEVER, scheduleMs, onWarning: (text: string) => void said.push(text) };
  return { pod: sandboxPod(api.cluster, PLAN, body, starting), said };
}

const saying = (message: string, reason = "ReconcilerError") => ({
  metadata: { uid: "u-1" },
  status: { conditions: [{ type: "Ready", status: "False", reason, message: `Error seen: ${message}` }] },
});

const owned = (uid: string) => ({
  metadata: { ownerReferences: [{ kind: "Sandbox", uid, controller: true }] },
});

test("the pod of a Sandbox is waited for, and what its controller reports meanwhile is shown once", async () => {
  await using api = await objectsApi();
  const full =
    'pods "harness-1" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2';
  api.onWait = () => {
    if (api.waited() < 5000) api.objects.set(SANDBOX, saying(full));
    else api.objects.set(POD, owned("u-1"));
  };
  const { pod, said } = waitFor(api, 60_000);
  assert.deepEqual(await pod, owned("u-1"));
  assert.equal(said.length, 1, said.join("\n"));
  assert.match(said[0] ?? "", /^no pod of the box yet: its controller says: pods .* exceeded quota/);
});

test("a Sandbox without a pod is given up after its time limit, with what is known", async () => {
  await using silent = await objectsApi();
  await assert.rejects(waitFor(silent, 10_000).pod, {
    exit: 6,
    message:
      "no pod as a box: no pod made: none within 10.0 s: its controller reports nothing; check that it is running",
  });
  assert.ok(silent.waited() > 9000 && silent.waited() < 12_000, String(silent.waited()));
  await using conflict = await objectsApi();
  conflict.onWait = () => void conflict.objects.set(SANDBOX, saying("pod patch failed: conflict"));
  await assert.rejects(
    waitFor(conflict, 10_000).pod,
    /none within .*: its controller says: pod patch failed: conflict/,
  );
});

test("a Sandbox is made again so that a late controller notices a quota that has room", async () => {
  await using api = await objectsApi();
  const full =
    'pods "harness-1" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2';
  const posts = (): number => api.heard.filter((each) => /^POST .*sandboxes$/.test(each)).length;
  api.onWait = () => {
    // A pod made for the first Sandbox does not belong to the second.
    if (posts() < 3) api.objects.set(SANDBOX, saying(full));
    if (posts() === 2) api.objects.set(POD, owned("u-1"));
    if (posts() === 3) api.objects.set(POD, owned("u-3"));
  };
  const { pod, said } = waitFor(api, 60_000);
  assert.deepEqual(await pod, owned("u-3"));
  assert.equal(said.length, 1, said.join("\n"));
  assert.ok(api.waited() >= 20_000 && api.waited() < 30_000, String(api.waited()));
});

test("a Sandbox that changed before it is made again stays, and one without room ends with the controller's message", async () => {
  await using api = await objectsApi();
  const full =
    'pods "harness-1" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2';
  api.onWait = () => void api.objects.set(SANDBOX, saying(full));
  api.refuses = { fits: /^DELETE/, status: 409, reason: "Conflict" };
  await assert.rejects(waitFor(api, 25_000).pod, /no pod made: none within 25\.0 s: .*exceeded quota: q/);
  const heard = (verb: string): number => api.heard.filter((each) => each.startsWith(verb)).length;
  assert.deepEqual([heard("DELETE"), heard("POST")], [2, 1]);
});

const HOPELESS: readonly (readonly [string, RegExp])[] = [
  [
    'pods "harness-1" is forbidden: violates PodSecurity "restricted:latest": x',
    /webhook refusal: its controller/,
  ],
  ['admission webhook "w" denied the request: no', /webhook refusal: its controller/],
  [
    "pods \"harness-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
    /webhook refusal/,
  ],
  [
    'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods"',
    /not authorised: its controller/,
  ],
  [
    'pods "harness-1" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1',
    /quota: its controller/,
  ],
];

for (const [message, words] of HOPELESS)
  test(`a controller that is refused with "${message.slice(0, 60)}" is not waited for`, async () => {
    await using api = await objectsApi();
    api.onWait = () => void api.objects.set(SANDBOX, saying(message));
    await assert.rejects(waitFor(api, 60_000).pod, words);
    assert.ok(api.waited() < 1000, String(api.waited()));
  });

test("a pod of that name that the Sandbox does not own is refused, and a deleted Sandbox is reported", async () => {
  await using api = await objectsApi();
  api.objects.set(POD, owned("u-2"));
  await assert.rejects(
    waitFor(api, 1000).pod,
    /refused: there is already a pod harness-1, which does not belong to its Sandbox/,
  );
  await using gone = await objectsApi();
  gone.onWait = () => void gone.objects.delete(SANDBOX);
  await assert.rejects(waitFor(gone, 60_000).pod, /deleted: the Sandbox is gone/);
});

test("a Sandbox whose creation was not confirmed is not made twice", async () => {
  await using api = await objectsApi();
  api.lost.push(/^POST .*sandboxes$/);
  api.onWait = () => void api.objects.set(POD, owned("u-1"));
  assert.deepEqual(await waitFor(api, 60_000).pod, owned("u-1"));
});

test("a cluster that answers is asked once whether it serves Sandboxes, and one that failed is asked again", async () => {
  await using api = await objectsApi();
  api.refuses = { fits: /^GET/, status: 500, reason: "InternalError" };
  await assert.rejects(servesSandboxes(api.cluster), /InternalError/);
  api.refuses = undefined;
  const before = api.heard.length;
  const both = [servesSandboxes(api.cluster), servesSandboxes(api.cluster)];
  assert.deepEqual([...(await Promise.all(both)), await servesSandboxes(api.cluster)], [false, false, false]);
  assert.deepEqual(api.heard.slice(before), ["GET /apis/agents.x-k8s.io/v1beta1"]);
});
