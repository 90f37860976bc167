import assert from "node:assert/strict";
import test from "node:test";
import type { Container, Pod, PodSpec } from "../../../src/kubernetes/cluster.ts";
import { batchTotals } from "../../../src/render/batch-results.ts";
import { startFakeCluster } from "../../fakes/kubernetes-jobs.ts";
import { coordinate, rowsFor, said } from "../../fixtures/cluster-batch.ts";
import { scratch } from "../../fixtures/scratch.ts";

/** What the admission of a cluster makes of the pods of loops. */

const ROWS = rowsFor(3);

type Change = (spec: PodSpec, containers: { readonly loop: Container; readonly clone: Container }) => void;

function changed(change: Change): (pod: Pod) => void {
  return ({ spec }) => {
    const [loop] = spec?.containers ?? [];
    const [clone] = spec?.initContainers ?? [];
    assert.ok(spec !== undefined && loop !== undefined && clone !== undefined);
    change(spec, { loop, clone });
  };
}

const token = { name: "token", mountPath: "/t" };
const sidecar: Container = { name: "mesh", image: "mesh:1", volumeMounts: [token] };

const REFUSED: Readonly<Record<string, readonly [line: RegExp, change: Change]>> = {
  "a sidecar with the loop's token": [
    /spec\.containers\[1\]: was added/,
    (spec) => void spec.containers.push(sidecar),
  ],
  "a container before the clone": [
    /spec\.initContainers\[0\]\.name: is "mesh", planned "clone"/,
    (spec) => void spec.initContainers?.unshift(sidecar),
  ],
  "the token for the clone": [
    /spec\.initContainers\[0\]\.volumeMounts\[3\]: was added/,
    (_, { clone }) => void clone.volumeMounts?.push(token),
  ],
  "the keys for the clone": [
    /spec\.initContainers\[0\]\.envFrom: was added/,
    (_, { clone }) => void (clone.envFrom = [{ secretRef: { name: "model" } }]),
  ],
  "a variable for the loop": [
    /spec\.containers\[0\]\.env\[\d+\]: was added .*NODE_OPTIONS/,
    (_, { loop }) => void loop.env?.push({ name: "NODE_OPTIONS", value: "--require=/x" }),
  ],
  "a folder of the node": [
    /spec\.volumes\[\d\]: was added .*hostPath/,
    (spec) => void spec.volumes?.push({ name: "node", hostPath: { path: "/" } }),
  ],
  "another account": [
    /spec\.serviceAccountName: is "admin"/,
    (spec) => void (spec.serviceAccountName = "admin"),
  ],
  "a token for all containers": [
    /spec\.automountServiceAccountToken: is true/,
    (spec) => void (spec.automountServiceAccountToken = true),
  ],
  "the node's network": [/spec\.hostNetwork: was added/, (spec) => void (spec.hostNetwork = true)],
  "processes of all containers": [
    /spec\.shareProcessNamespace: was added/,
    (spec) => void (spec.shareProcessNamespace = true),
  ],
  "a capability": [
    /securityContext\.capabilities\.add: was added/,
    (_, { loop }) => void (loop.securityContext = { capabilities: { add: ["SYS_ADMIN"] } }),
  ],
  "no seccomp profile": [
    /seccompProfile\.type: is "Unconfined"/,
    (spec) =>
      void (spec.securityContext = {
        ...spec.securityContext,
        seccompProfile: { type: "Unconfined" },
      }),
  ],
  "another image": [/spec\.containers\[0\]\.image: is/, (_, { loop }) => void (loop.image = "mirror/loop:1")],
  "another word": [
    /spec\.containers\[0\]\.args\[\d+\]: was added/,
    (_, { loop }) => void loop.args?.push("--mode=danger-full-access"),
  ],
  "another DNS server": [
    /spec\.dnsConfig: was added/,
    (spec) => void (spec.dnsConfig = { nameservers: ["10.0.0.1"] }),
  ],
  "an unknown field": [/spec\.newField: was added/, (spec) => void Object.assign(spec, { newField: "yes" })],
};

for (const [what, [line, change]] of Object.entries(REFUSED))
  test(`a loop that is given ${what} stops its batch with the reason, and the batch continues once that is fixed`, async () => {
    await using place = await scratch();
    const gate = Promise.withResolvers<void>();
    const admits = { changes: true };
    await using cluster = await startFakeCluster((index) => ({
      ...said(ROWS[index]),
      ...(index === 0 ? {} : { until: gate.promise }),
      ...(index === 1 && admits.changes ? { admitted: changed(change) } : {}),
    }));
    await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), (thrown) => {
      const { exit, message, remedy } = thrown as { exit: number; message: string; remedy: string };
      assert.equal(exit, 6);
      assert.match(
        message,
        /^the pod harness-batch-\w+-1-\w+ differs from its Job's template, so the batch has been stopped:/,
      );
      assert.match(message, line);
      assert.match(remedy, /kubectl patch job harness-batch-\w+ -p '\{"spec":\{"suspend":false\}\}'/);
      return true;
    });
    const [name = "", job] = [...cluster.jobs][0] ?? [];
    assert.equal(job?.spec?.suspend, true);
    admits.changes = false;
    gate.resolve();
    cluster.admit(name);
    const { results, end } = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
    assert.equal(batchTotals(end).done, 3);
    // What had ended is kept, and not run again.
    assert.ok(results.length < 3 || !cluster.ran.includes("0/1"));
    assert.equal(cluster.ran.filter((each) => each.startsWith("0/")).length, 1);
  });

const PINNED = `@sha256:${"0a".repeat(32)}`;

const TAKEN: Readonly<Record<string, Change>> = {
  "other amounts": (_, { loop }) => void (loop.resources = { limits: { memory: "9Gi" } }),
  "an image by its digest": (_, { loop, clone }) => {
    loop.image = `${loop.image}${PINNED}`;
    clone.image = `${clone.image}${PINNED}`;
  },
  "nodes and an order": (spec) =>
    void Object.assign(spec, {
      nodeSelector: { pool: "batch" },
      tolerations: [{ operator: "Exists" }],
      affinity: { podAntiAffinity: {} },
      priorityClassName: "low",
      priority: -1,
      schedulingGates: [{ name: "queue" }],
    }),
  "a lower ndots option": (spec) => void (spec.dnsConfig = { options: [{ name: "ndots", value: "2" }] }),
  "a debug container": (spec) => void (spec.ephemeralContainers = [{ name: "debugger", image: "busybox" }]),
};

for (const [what, change] of Object.entries(TAKEN))
  test(`a loop that is given ${what} is accepted`, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster((index) => ({
      ...said(ROWS[index]),
      admitted: changed(change),
    }));
    const { results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
    assert.equal(results.length, 3);
  });

test("added annotations that a runtime acts on are named, other annotations and labels are accepted", async () => {
  await using place = await scratch();
  const given: Record<string, string> = { "team/owner": "x", "prometheus.io/scrape": "true" };
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({
    ...said(ROWS[index]),
    ...(Object.hasOwn(given, "cdi.k8s.io/gpu") ? { until: gate.promise } : {}),
    admitted: ({ metadata = {} }) => {
      Object.assign(metadata.annotations ?? {}, given);
      Object.assign(metadata.labels ?? {}, { "topology.kubernetes.io/zone": "a", team: "x" });
    },
  }));
  const first = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
  assert.equal(first.results.length, 3);
  given["cdi.k8s.io/gpu"] = "vendor.com/gpu=0";
  const again = coordinate({ cluster, rows: ROWS, folder: place.at("tagged"), plan: { tag: "again" } });
  await assert.rejects(again, /metadata\.annotations\.cdi\.k8s\.io\/gpu: was added/);
});

test("a Job to which admission adds a container is not created", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  cluster.faults.mutates = ({ spec }) => void spec?.template.spec?.containers.push(sidecar);
  await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), {
    exit: 6,
    message:
      /different pods from those requested, so nothing was started:\n {4}spec\.containers\[1\]: was added/,
    remedy: /exclude pods with the label dev\.harness\.batch/,
  });
  assert.deepEqual([cluster.jobs.size, cluster.maps.size], [0, 0]);
});
