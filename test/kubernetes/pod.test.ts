import assert from "node:assert/strict";
import test from "node:test";
import { ApiFailure } from "../../src/kubernetes/cluster.ts";
import { podFailure, refusalOf } from "../../src/kubernetes/pod-watch.ts";
import { readbackDifferences } from "../../src/kubernetes/pod-readback.ts";
import { isMountable, type PodPlan, podSpec, policyOf } from "../../src/kubernetes/pod-spec.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

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

test("a pod is restricted: no root, no capabilities, no token, nothing of the node, and resource limits", () => {
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
  [podSpec(plan), policyOf(plan), policyOf(plan, "open")].map(
    ({ metadata }) => (metadata as Field)["ownerReferences"],
  );

test("a pod and its policies are owned by the pod that requested them, or by none", () => {
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

test("only a read-only box has another container fill its workspace", () => {
  const open = { name: "workspace", mountPath: "/code/project" };
  assert.deepEqual(mounts(PLAN), [undefined, open]);
  assert.deepEqual(mounts({ ...PLAN, mode: "read-only" }), [open, { ...open, readOnly: true }]);
});

test("a policy denies all traffic to one pod", () => {
  assert.deepEqual(policyOf(PLAN)["spec"], {
    podSelector: { matchLabels: { "dev.harness.pod": "harness-1" } },
    policyTypes: ["Ingress", "Egress"],
  });
});

test("fields that every cluster adds count as no difference", () => {
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

/** A value under a name that has dots. */
function withMeta(kind: "labels" | "annotations", name: string, value: string): unknown {
  const pod = structuredClone(podSpec(PLAN)) as { metadata: Record<typeof kind, Record<string, string>> };
  pod.metadata[kind][name] = value;
  return pod;
}

const NOTES: readonly (readonly ["labels" | "annotations", string, string])[] = [
  ["labels", "topology.kubernetes.io/zone", "eu-1a"],
  ["labels", "topology.kubernetes.io/region", "eu-1"],
  ["labels", "sidecar.istio.io/inject", "false"],
  ["labels", "istio.io/dataplane-mode", "none"],
  ["labels", "kuma.io/sidecar-injection", "disabled"],
  ["annotations", "cni.projectcalico.org/podIP", "10.0.0.1/32"],
  ["annotations", "k8s.v1.cni.cncf.io/network-status", "[]"],
  ["annotations", "k8s.ovn.org/pod-networks", "{}"],
  ["annotations", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"],
  ["annotations", "kubernetes.io/limit-ranger", "LimitRanger plugin set: nothing"],
  ["annotations", "sidecar.istio.io/inject", "false"],
  ["annotations", "linkerd.io/inject", "disabled"],
  ["annotations", "seccomp.security.alpha.kubernetes.io/pod", "localhost/harness.json"],
];

for (const [kind, name, value] of NOTES)
  test(`${kind} ${name}=${value} added by the cluster are accepted`, () => {
    assert.deepEqual(readbackDifferences(podSpec(PLAN), withMeta(kind, name, value)), []);
  });

const REFUSED_NOTES: readonly (readonly ["labels" | "annotations", string, string])[] = [
  ["labels", "sidecar.istio.io/inject", "true"],
  ["labels", "istio.io/dataplane-mode", "ambient"],
  ["labels", "topology.kubernetes.io/rack", "r1"],
  ["annotations", "sidecar.istio.io/inject", "true"],
  ["annotations", "ambient.istio.io/redirection", "enabled"],
  ["annotations", "k8s.v1.cni.cncf.io/networks", "second"],
  ["annotations", "v1.multus-cni.io/default-network", "other"],
  ["annotations", "container.apparmor.security.beta.kubernetes.io/box", "unconfined"],
  ["annotations", "seccomp.security.alpha.kubernetes.io/pod", "unconfined"],
  ["annotations", "seccomp.security.alpha.kubernetes.io/pod", "runtime/default"],
  ["annotations", "cdi.k8s.io/harness", "vendor.example/device=all"],
  ["annotations", "devices.nri.io/container.box", "- path: /dev/mem"],
  ["annotations", "mounts.nri.containerd.io/container.box", "- source: /"],
  ["annotations", "seccomp-profile.kubernetes.cri-o.io/POD", "registry.example/open:1"],
  ["annotations", "io.kubernetes.cri-o.Devices", "/dev/fuse"],
  ["annotations", "cpu-quota.crio.io", "disable"],
  ["annotations", "run.oci.keep_original_groups", "1"],
  ["annotations", "io.containerd.runc.v2.group", "x"],
  ["annotations", "security.alpha.kubernetes.io/unsafe-sysctls", "net.ipv4.ip_forward=1"],
  ["annotations", "linkerd.io/inject", "enabled"],
  ["annotations", "consul.hashicorp.com/connect-inject", "true"],
];

for (const [kind, name, value] of REFUSED_NOTES)
  test(`${kind} ${name}=${value} added by the cluster are refused by name`, () => {
    const lines = readbackDifferences(podSpec(PLAN), withMeta(kind, name, value));
    assert.equal(lines.length, 1, lines.join("; "));
    assert.ok(lines[0]?.startsWith(`metadata.${kind}.${name}: was added`), lines[0]);
  });

const profile = (plan: PodPlan): unknown =>
  (podSpec(plan)["spec"] as { securityContext: Field }).securityContext["seccompProfile"];

test("the pod and each container have the planned seccomp profile", () => {
  const own = { type: "Localhost", localhostProfile: "harness.json" };
  assert.deepEqual(profile(PLAN), own);
  const usual = { ...PLAN, seccomp: "RuntimeDefault" };
  assert.deepEqual(profile(usual), { type: "RuntimeDefault" });
  for (const [at, value] of [
    ["spec.securityContext.seccompProfile", { type: "RuntimeDefault" }],
    ["spec.securityContext.seccompProfile", { type: "Unconfined" }],
    ["spec.securityContext.seccompProfile", { ...own, localhostProfile: "other.json" }],
    ["spec.securityContext.seccompProfile", undefined],
    ["spec.containers.0.securityContext.seccompProfile", { type: "Unconfined" }],
  ] as const)
    assert.match(readbackDifferences(podSpec(PLAN), withField(at, value)).join(), /seccompProfile/, at);
  const other = structuredClone(podSpec(PLAN));
  assert.match(readbackDifferences(podSpec(usual), other).join(), /seccompProfile/);
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
  ["spec.volumes.4", { name: "kube-api-access", projected: { sources: [{ serviceAccountToken: {} }] } }],
  ["spec.containers.0.securityContext.privileged", true],
  ["spec.containers.0.securityContext.allowPrivilegeEscalation", true],
  ["spec.containers.0.securityContext.readOnlyRootFilesystem", false],
  ["spec.containers.0.securityContext.runAsUser", 0],
  ["spec.containers.0.securityContext.procMount", "Unmasked"],
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
  test(`a pod on which the cluster sets ${path} is refused, and the field is named`, () => {
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
const waiting = (reason: string, message = "") => ({
  status: { containerStatuses: [{ state: { waiting: { reason, message } } }] },
});
const ended = (reason: string) => ({
  status: { phase: "Failed", containerStatuses: [{ state: { terminated: { reason, exitCode: 137 } } }] },
});

test("each cause has its own name", () => {
  assert.equal(word(403, 'pods is forbidden: User "u" cannot create'), "not authorised");
  assert.equal(word(403, "pods is forbidden: exceeded quota: q, requested: cpu=1"), "quota");
  assert.equal(word(400, 'admission webhook "w" denied the request: no'), "webhook refusal");
  assert.equal(word(403, "pods is forbidden: violates PodSecurity restricted"), "webhook refusal");
  assert.equal(word(410, "too old resource version"), "watch expired");
  const words = [
    waiting("ImagePullBackOff"),
    waiting("CreateContainerError"),
    waiting("CreateContainerError", 'cannot load seccomp profile "/var/lib/kubelet/seccomp/x.json"'),
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
    "no seccomp profile",
    "out of memory",
    "ended",
    "evicted",
    "deadline",
    "deleted",
    "unschedulable",
    undefined,
  ]);
});

test("a workspace cannot be mounted over a pod's own folders", () => {
  assert.deepEqual(["/etc/x", "/home", "/home/box/a", "/home/me/a", "/work"].map(isMountable), [
    false,
    false,
    false,
    true,
    true,
  ]);
});

// As the kubelet of 1.33 names them.
for (const reason of [
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
])
  test(`a container that waits with ${reason} gets no image`, () => {
    const status = { containerStatuses: [{ name: "box", state: { waiting: { reason, message: "so" } } }] };
    assert.deepEqual(podFailure({ status }), { word: "image cannot be pulled", why: "so" });
  });
