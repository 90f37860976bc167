import assert from "node:assert/strict";
import test from "node:test";
import { ApiFailure } from "../../src/kubernetes/cluster.ts";
import { podFailure, refusalOf } from "../../src/kubernetes/pod-failure.ts";
import { readbackDifferences } from "../../src/kubernetes/pod-readback.ts";
import { isMountable, type PodPlan, podSpec, policyOf } from "../../src/kubernetes/pod-spec.ts";

const PLAN: PodPlan = {
  name: "harness-1",
  namespace: "team",
  image: "registry.example/box:1",
  pullPolicy: "IfNotPresent",
  pullSecret: "pull",
  user: { uid: 1000, gid: 1000 },
  mode: "workspace-write",
  workspace: "/code/project",
  limits: { memory: 2 ** 30, cpus: 1.5, pids: 512 },
  disk: 2 ** 30,
  runtimeClass: "gvisor",
  seccomp: "Localhost/harness.json",
  nodeSelector: { "kubernetes.io/arch": "amd64" },
  deadlineMs: 90_000,
  owner: null,
  labels: { "dev.harness.box": "1" },
  annotations: { "dev.harness.workspace": "/code/project" },
};

type Field = Record<string, unknown>;

/** The pod with a field set, by its path. */
function withField(path: string, value: unknown): unknown {
  const pod = structuredClone(podSpec(PLAN)) as Field;
  const names = path.split(".");
  let at = pod;
  for (const name of names.slice(0, -1)) at = (at[name] ??= {}) as Field;
  at[names.at(-1) ?? ""] = value;
  return pod;
}

test("a pod is restricted: no root, no capabilities, no token, nothing of the node, limits that it asks for", () => {
  const { spec } = podSpec(PLAN) as { readonly spec: Field & { readonly containers: readonly Field[] } };
  const [box] = spec.containers;
  assert.deepEqual(
    [spec["hostNetwork"], spec["hostPID"], spec["hostIPC"], spec["automountServiceAccountToken"]],
    [false, false, false, false],
  );
  assert.deepEqual([spec["activeDeadlineSeconds"], spec["restartPolicy"]], [90, "Never"]);
  assert.deepEqual(box?.["securityContext"], {
    allowPrivilegeEscalation: false,
    privileged: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    capabilities: { drop: ["ALL"] },
  });
  const { limits, requests } = (box ?? {})["resources"] as Field;
  assert.deepEqual(limits, { memory: String(2 ** 30), cpu: "1500m" });
  assert.deepEqual(requests, limits);
});

const ownersIn = (plan: PodPlan): readonly unknown[] =>
  [podSpec(plan), policyOf(plan), policyOf(plan, true)].map(
    ({ metadata }) => (metadata as Field)["ownerReferences"],
  );

test("a pod and its policies go with the pod that asked for them, and with nobody's where none did", () => {
  const owner = { name: "harness-batch-1-0", uid: "u-1" };
  const owned = [{ apiVersion: "v1", kind: "Pod", ...owner }];
  assert.deepEqual(ownersIn({ ...PLAN, owner }), [owned, owned, owned]);
  assert.deepEqual(ownersIn(PLAN), [undefined, undefined, undefined]);
});

const mounts = (plan: PodPlan): unknown => {
  const { spec } = podSpec(plan) as unknown as { readonly spec: Record<string, readonly Field[]> };
  const last = (kind: string): unknown =>
    (spec[kind]?.[0]?.["volumeMounts"] as readonly Field[] | undefined)?.at(-1);
  return [last("initContainers"), last("containers")];
};

test("only a box that may read has somebody else fill its workspace", () => {
  const open = { name: "workspace", mountPath: "/code/project" };
  assert.deepEqual(mounts(PLAN), [undefined, open]);
  assert.deepEqual(mounts({ ...PLAN, mode: "read-only" }), [open, { ...open, readOnly: true }]);
});

test("a policy denies all to the one pod", () => {
  assert.deepEqual(policyOf(PLAN)["spec"], {
    podSelector: { matchLabels: { "dev.harness.pod": "harness-1" } },
    policyTypes: ["Ingress", "Egress"],
  });
});

test("what every cluster adds is no difference", () => {
  const pod = structuredClone(podSpec(PLAN)) as Field & { spec: Field & { containers: Field[] } };
  Object.assign(pod.spec, {
    nodeName: "n",
    schedulerName: "default-scheduler",
    serviceAccountName: "default",
    tolerations: [{ key: "a" }],
    priority: 0,
    preemptionPolicy: "PreemptLowerPriority",
  });
  for (const name of ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"]) delete pod.spec[name];
  Object.assign(pod.spec.containers[0] ?? {}, {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    resources: { limits: { memory: "1Gi", cpu: "1500m" }, requests: { memory: "1Gi", cpu: "1.5" } },
  });
  assert.deepEqual(readbackDifferences(podSpec(PLAN), pod), []);
});

const ADDITIONS: readonly (readonly [string, unknown])[] = [
  ["spec.hostNetwork", true],
  ["spec.hostUsers", true],
  ["spec.initContainers", [{ name: "istio-init" }]],
  ["spec.ephemeralContainers", [{ name: "debug" }]],
  ["spec.containers.1", { name: "sidecar" }],
  ["spec.containers.0.env", [{ name: "TOKEN", value: "x" }]],
  ["spec.containers.0.envFrom", [{ secretRef: { name: "s" } }]],
  ["spec.containers.0.volumeMounts.4", { name: "token", mountPath: "/var/run/secrets" }],
  ["spec.containers.0.lifecycle", { postStart: {} }],
  ["spec.containers.0.livenessProbe", { exec: {} }],
  ["spec.containers.0.image", "other"],
  ["spec.containers.0.securityContext.capabilities.add", ["NET_RAW"]],
  ["spec.containers.0.resources.limits.cpu", "2"],
  ["spec.volumes.4", { name: "host", hostPath: { path: "/" } }],
  ["spec.automountServiceAccountToken", true],
  ["spec.securityContext.fsGroup", 0],
  ["spec.runtimeClassName", "runc"],
  ["spec.aFieldOfTomorrow", "x"],
  ["metadata.labels.app", "web"],
];

for (const [path, value] of ADDITIONS)
  test(`a cluster that sets ${path} is refused, and the field is named`, () => {
    const [line = ""] = readbackDifferences(podSpec(PLAN), withField(path, value));
    const named = path
      .replace(/\.(\d+)/g, "[$1]")
      .split(".")
      .slice(0, 3)
      .join(".");
    assert.ok(line.startsWith(named), `${line} names ${named}`);
  });

const word = (status: number, message: string): string =>
  refusalOf(new ApiFailure(status, "", message)).message.split(": ")[1] ?? "";
const waiting = (reason: string) => ({
  status: { containerStatuses: [{ state: { waiting: { reason } } }] },
});
const ended = (reason: string) => ({
  status: { phase: "Failed", containerStatuses: [{ state: { terminated: { reason, exitCode: 137 } } }] },
});

test("each cause has its own word", () => {
  assert.equal(word(403, 'pods is forbidden: User "u" cannot create'), "not authorised");
  assert.equal(word(403, "pods is forbidden: exceeded quota: q, requested: cpu=1"), "quota");
  assert.equal(word(400, 'admission webhook "w" denied the request: no'), "webhook refusal");
  assert.equal(word(403, "pods is forbidden: violates PodSecurity restricted"), "webhook refusal");
  assert.equal(word(410, "too old resource version"), "watch expired");
  const words = [
    waiting("ImagePullBackOff"),
    waiting("CreateContainerError"),
    ended("OOMKilled"),
    ended("Error"),
    { status: { phase: "Failed", reason: "Evicted" } },
    { status: { phase: "Failed", reason: "DeadlineExceeded" } },
    { metadata: { deletionTimestamp: "2026-01-01" } },
    { status: { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] } },
    { status: { phase: "Pending" } },
  ].map((pod) => podFailure(pod)?.word);
  assert.deepEqual(words, [
    "image cannot be pulled",
    "refused",
    "out of memory",
    "ended",
    "evicted",
    "deadline",
    "deleted",
    "unschedulable",
    undefined,
  ]);
});

test("no workspace lies over what a pod has of its own", () => {
  assert.deepEqual(["/etc/x", "/home", "/home/box/a", "/home/me/a", "/work"].map(isMountable), [
    false,
    false,
    false,
    true,
    true,
  ]);
});
