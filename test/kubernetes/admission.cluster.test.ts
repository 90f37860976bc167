import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT } from "../../src/core/errors.ts";
import { AWAY, scratch } from "../fixtures/scratch.ts";
import { admissionWebhook, type Patch } from "./admission-webhook.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";

/** How the admission of a real cluster changes a pod: the whole pod is read back, and a pod that is not a box is refused by field. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const older = cluster.release === "1.20";
/** The pod is read back before its network is checked: an unchanged box needs a network that is shut. */
const open = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

const add = (path: string, value: unknown): Patch => ({ op: "add", path, value });
const replace = (path: string, value: unknown): Patch => ({ op: "replace", path, value });
const BOX = "/spec/containers/0";
const sidecar = { name: "sidecar", image: cluster.image, command: ["sleep", "1000"] };
const token = { serviceAccountToken: { path: "token", expirationSeconds: 3600 } };

type Changed = readonly [what: string, changes: readonly Patch[], field: RegExp];
const CHANGED: readonly Changed[] = [
  ["a sidecar", [add("/spec/containers/-", sidecar)], /spec\.containers\[1\]: was added/],
  [
    "a container before the box",
    [add("/spec/initContainers", [{ ...sidecar, command: ["true"] }])],
    /spec\.initContainers: was added/,
  ],
  [
    "a variable",
    [add(`${BOX}/env`, [{ name: "PROXY", value: "x" }])],
    /spec\.containers\[0\]\.env: was added/,
  ],
  [
    "variables of a Secret",
    [add(`${BOX}/envFrom`, [{ secretRef: { name: "s", optional: true } }])],
    /spec\.containers\[0\]\.envFrom: was added/,
  ],
  [
    "a folder of the node",
    [
      add("/spec/volumes/-", { name: "host", hostPath: { path: "/" } }),
      add(`${BOX}/volumeMounts/-`, { name: "host", mountPath: "/host" }),
    ],
    /volumeMounts\[4\]: was added.*spec\.volumes\[4\]: was added/s,
  ],
  [
    "a token of the service account",
    [
      add("/spec/volumes/-", { name: "token", projected: { sources: [token] } }),
      add(`${BOX}/volumeMounts/-`, { name: "token", mountPath: "/var/run/secrets/tokens" }),
    ],
    /volumeMounts\[4\]: was added.*spec\.volumes\[4\]: was added/s,
  ],
  [
    "mounting the token",
    [replace("/spec/automountServiceAccountToken", true)],
    /spec\.automountServiceAccountToken: is true, planned false/,
  ],
  [
    "all rights",
    [replace(`${BOX}/securityContext`, { privileged: true })],
    /securityContext\.privileged: is true, planned false/,
  ],
  [
    "a capability",
    [add(`${BOX}/securityContext/capabilities/add`, ["NET_RAW"])],
    /capabilities\.add: was added/,
  ],
  [
    "a root that can be written",
    [replace(`${BOX}/securityContext/readOnlyRootFilesystem`, false)],
    /readOnlyRootFilesystem: is false, planned true/,
  ],
  [
    "another user",
    [add(`${BOX}/securityContext/runAsUser`, 1234)],
    /securityContext\.runAsUser: was added \(1234\)/,
  ],
  [
    "a group of files",
    [add("/spec/securityContext/fsGroup", 5)],
    /spec\.securityContext\.fsGroup: was added/,
  ],
  [
    "no seccomp profile",
    [replace("/spec/securityContext/seccompProfile", { type: "Unconfined" })],
    /seccompProfile\.type: is "Unconfined"/,
  ],
  ["the network of the node", [add("/spec/hostNetwork", true)], /spec\.hostNetwork: is true, planned false/],
  ["the processes of the node", [add("/spec/hostPID", true)], /spec\.hostPID: is true, planned false/],
  ["shared processes", [add("/spec/shareProcessNamespace", true)], /shareProcessNamespace: is true/],
  [
    "host names",
    [add("/spec/hostAliases", [{ ip: "10.0.0.1", hostnames: ["a"] }])],
    /spec\.hostAliases: was added/,
  ],
  [
    "a resolver",
    [replace("/spec/dnsConfig/nameservers", ["10.0.0.10"])],
    /spec\.dnsConfig\.nameservers\[0\]: is "10\.0\.0\.10"/,
  ],
  [
    "another program",
    [replace(`${BOX}/command`, ["sleep", "1000"])],
    /spec\.containers\[0\]\.command\[0\]: is /,
  ],
  ["arguments", [add(`${BOX}/args`, ["x"])], /spec\.containers\[0\]\.args: was added/],
  [
    "a start hook",
    [add(`${BOX}/lifecycle`, { postStart: { exec: { command: ["true"] } } })],
    /spec\.containers\[0\]\.lifecycle: was added/,
  ],
  [
    "a liveness probe",
    [add(`${BOX}/livenessProbe`, { exec: { command: ["true"] } })],
    /spec\.containers\[0\]\.livenessProbe: was added/,
  ],
  [
    "a later deadline",
    [replace("/spec/activeDeadlineSeconds", 900_000)],
    /spec\.activeDeadlineSeconds: is 900000/,
  ],
  ["a restart policy", [replace("/spec/restartPolicy", "Always")], /spec\.restartPolicy: is "Always"/],
  [
    "a label that policies may select",
    [add("/metadata/labels/app", "web")],
    /metadata\.labels\.app: was added/,
  ],
  [
    "a device through an annotation",
    [add("/metadata/annotations/cdi.k8s.io~1tests", "vendor.example/device=all")],
    /metadata\.annotations\.cdi\.k8s\.io\/tests: was added/,
  ],
];

async function nothingLeft(place: BoxPlace): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const left = [await place.named("pods"), await place.named("networkpolicies")];
    if (left.flat().length === 0) return;
    if (tries === 50) assert.deepEqual(left, [[], []]);
    await sleep(200);
  }
}

describe("a pod that a webhook changes", () => {
  test(
    "a harmless change is accepted as a box, and a webhook that denies the pod is named",
    { skip: open },
    async () => {
      await using folder = await scratch({}, AWAY);
      await using webhook = await admissionWebhook(cluster, folder.path);
      await using place = await boxPlace(cluster, { labels: webhook.labels });
      webhook.changes = [
        add("/metadata/annotations/example.org~1note", "x"),
        add("/spec/tolerations", [{ key: "a", operator: "Exists" }]),
      ];
      const box = await place.open();
      await box[Symbol.asyncDispose]();
      webhook.changes = null;
      await assert.rejects(place.open(), {
        exit: EXIT.sandbox,
        message: /no pod as a box: webhook refusal: .*no such pods here/,
      });
      assert.equal(webhook.asked, 2);
      await nothingLeft(place);
    },
  );

  test("any other change is refused (exit 6), and the field is named", async (t) => {
    await using folder = await scratch({}, AWAY);
    await using webhook = await admissionWebhook(cluster, folder.path);
    await using place = await boxPlace(cluster, { labels: webhook.labels });
    for (const [what, changes, field] of CHANGED)
      await t.test(what, async () => {
        webhook.changes = changes;
        const before = webhook.asked;
        await assert.rejects(
          place.open().then(async (box) => {
            await box[Symbol.asyncDispose]();
            return "a box";
          }),
          (thrown: Error & { exit?: number }) => {
            assert.equal(thrown.exit, EXIT.sandbox, thrown.message);
            assert.match(thrown.message, /the box is not as planned, according to the cluster/);
            assert.match(thrown.message, field);
            return true;
          },
        );
        assert.equal(webhook.asked, before + 1);
      });
    await nothingLeft(place);
  });
});

const GROUP = "/apis/admissionregistration.k8s.io";

test(
  "a policy of the cluster that denies the pod is quoted",
  { skip: older && "ValidatingAdmissionPolicy came with 1.30" },
  async () => {
    await using place = await boxPlace(cluster);
    const name = `tests-${place.space.name}`;
    const [policies, bindings] = [
      `${GROUP}/v1/validatingadmissionpolicies`,
      `${GROUP}/v1/validatingadmissionpolicybindings`,
    ];
    await api.must("POST", policies, {
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: {
          resourceRules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
          ],
        },
        validations: [{ expression: "false", message: "no pods of this kind" }],
      },
    });
    await api.must("POST", bindings, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ["Deny"],
        matchResources: {
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": place.space.name } },
        },
      },
    });
    try {
      await inForce(place, 422);
      await assert.rejects(place.open(), {
        exit: EXIT.sandbox,
        message: /no pod as a box: webhook refusal: .*no pods of this kind/,
      });
      await nothingLeft(place);
    } finally {
      await api.ask("DELETE", `${bindings}/${name}`);
      await api.ask("DELETE", `${policies}/${name}`);
    }
  },
);

const PROBE = {
  metadata: { name: "probe", labels: { of: "tests" } },
  spec: { containers: [{ name: "c", image: "none.invalid/none" }] },
};

/** Waits until the API server knows a new policy, which it looks up every few moments. */
async function inForce(
  { space }: BoxPlace,
  status: number,
  changed?: (pod: object) => boolean,
): Promise<void> {
  const shut = {
    ...PROBE.spec.containers[0],
    securityContext: {
      allowPrivilegeEscalation: false,
      runAsNonRoot: true,
      runAsUser: 1000,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
  const pod = { ...PROBE, spec: { containers: [shut] } };
  for (let tries = 0; ; tries += 1) {
    const said = await api.ask("POST", `${space.pods}?dryRun=All`, pod);
    if (said.status === status && (changed === undefined || changed(said.body))) return;
    assert.ok(tries < 150, `the policy never held: ${said.status} ${JSON.stringify(said.body["message"])}`);
    await sleep(200);
  }
}

test(
  "additions of a mutating policy of the cluster are read back, too",
  { skip: older && "MutatingAdmissionPolicy came with 1.32" },
  async () => {
    await using place = await boxPlace(cluster);
    const name = `tests-${place.space.name}`;
    const [policies, bindings] = [
      `${GROUP}/v1alpha1/mutatingadmissionpolicies`,
      `${GROUP}/v1alpha1/mutatingadmissionpolicybindings`,
    ];
    // Values that are not lists: the API server of 1.33 crashes on a list of objects.
    const steps = [
      ["/metadata/labels/of-a-policy", '"yes"'],
      ["/spec/automountServiceAccountToken", "true"],
      ["/spec/containers/0/securityContext/readOnlyRootFilesystem", "false"],
    ].map(([at, value]) => `JSONPatch{op: "add", path: "${at}", value: ${value}}`);
    const expression = `[${steps.join(", ")}]`;
    await api.must("POST", policies, {
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        reinvocationPolicy: "Never",
        matchConstraints: {
          resourceRules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
          ],
        },
        mutations: [{ patchType: "JSONPatch", jsonPatch: { expression } }],
      },
    });
    await api.must("POST", bindings, {
      metadata: { name },
      spec: {
        policyName: name,
        matchResources: {
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": place.space.name } },
        },
      },
    });
    try {
      await inForce(place, 201, (pod) => JSON.stringify(pod).includes("of-a-policy"));
      await assert.rejects(place.open(), {
        exit: EXIT.sandbox,
        message:
          /not as planned.*labels\.of-a-policy: was added.*automountServiceAccountToken: is true.*readOnlyRootFilesystem: is false/s,
      });
      await nothingLeft(place);
    } finally {
      await api.ask("DELETE", `${bindings}/${name}`);
      await api.ask("DELETE", `${policies}/${name}`);
    }
  },
);
