// slow: it repeats boxes of pods as Sandboxes
import assert from "node:assert/strict";
import test from "node:test";
import { changesOfReturned } from "../../src/boxes/workspace/session-layer.ts";
import { layerOf } from "../../src/boxes/workspace/layer-record.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { clusterOf } from "../../src/kubernetes/cluster.ts";
import { listPods, podNamed, removeBoxPod } from "../../src/kubernetes/own-pods.ts";
import type { SandboxWish } from "../../src/kubernetes/agent-sandbox.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { statusOf } from "../fakes/kubernetes-api.ts";
import type { Pod } from "../fakes/pod-keeper.ts";
import type { SandboxController } from "../fakes/sandbox-controller.ts";
import { image, skip } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { type StubPlace, stubPlace } from "./stub-pods.ts";

const wanting = (sandboxResource: SandboxWish) => ({ ...podWants(image), sandboxResource });

const names = (sandboxes: SandboxController): readonly string[] =>
  sandboxes.all().map(({ metadata }) => metadata.name);

const nothingLeft = ({ api }: StubPlace): void => {
  const left = [api.sandboxes?.all() ?? [], api.named("pods"), api.named("networkpolicies")];
  assert.deepEqual(left, [[], [], []]);
};

async function refused(place: StubPlace, words: RegExp, wants = wanting("always")): Promise<void> {
  await assert.rejects(place.open({ wants }), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.equal(thrown.exit, EXIT.sandbox);
    assert.match(thrown.message, words);
    assert.notEqual(thrown.remedy, "");
    return true;
  });
  nothingLeft(place);
}

test(
  "where Sandboxes are served and allowed a box is one: its network is proven shut, its changes come back, and all of it is removed",
  { skip },
  async () => {
    await using place = await stubPlace("enforced");
    const sandboxes = place.api.installSandboxes();
    const keep = "session1";
    {
      await using box = await place.open({ keep });
      assert.deepEqual(names(sandboxes), place.api.named("pods"));
      assert.deepEqual(place.api.named("networkpolicies"), place.api.named("pods"));
      const line = "tail -n +3 /proc/net/dev | cut -d: -f1; hostname; echo two >> a.txt";
      const { exit_code, stdout } = await box.exec(asking(["bash", "-c", line]), NEVER);
      const [device, host] = Buffer.from(stdout.head).toString().split("\n");
      assert.deepEqual([exit_code, device?.trim(), host], [0, "lo", "sandbox"]);
      // The pod has its own deadline, and the Sandbox a later one.
      const [made] = sandboxes.all();
      assert.equal(made?.spec.podTemplate.spec["activeDeadlineSeconds"], 600);
      assert.ok(Date.parse(made.spec.shutdownTime ?? "") > Date.now() + 600_000);
    }
    assert.deepEqual(place.said, []);
    const posted = place.api.heard.filter((each) => /^POST .*\/(?:pods|sandboxes)$/.test(each));
    assert.deepEqual(posted, ["POST /apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes"]);
    const served = place.api.heard.filter((each) => each === "GET /apis/agents.x-k8s.io/v1beta1");
    assert.equal(served.length, 1, "the cluster is asked only once for a box");
    const layer = await layerOf(place.place.at("state"), keep);
    assert.ok(layer !== undefined);
    const { changes } = await changesOfReturned(layer);
    assert.deepEqual(
      changes.map(({ path, what }) => `${what} ${path}`),
      ["modified a.txt"],
    );
    assert.equal(await place.place.read("project/a.txt"), "one\n");
    nothingLeft(place);
  },
);

for (const hours of [-8, 8])
  test(
    `the end of a Sandbox follows the cluster's clock, even if it is ${hours} hours off ours`,
    { skip },
    async () => {
      await using place = await stubPlace("enforced");
      place.api.clockAhead = hours * 3_600_000;
      const sandboxes = place.api.installSandboxes();
      await using box = await place.open();
      await box.exec(asking(["true"]), NEVER);
      const [made] = sandboxes.all();
      const { startMs, scheduleMs, deadlineMs } = podWants(image);
      const later = Date.parse(made?.spec.shutdownTime ?? "") - (Date.now() + place.api.clockAhead);
      // An hour after the latest possible end of its pod.
      assert.ok(later > scheduleMs + startMs + deadlineMs, String(later));
      assert.ok(later < scheduleMs + startMs + deadlineMs + 3_660_000, String(later));
    },
  );

test("a read-only Sandbox is filled by the other container", { skip }, async () => {
  await using place = await stubPlace("enforced");
  place.api.installSandboxes();
  await using box = await place.open({ mode: "read-only" });
  const { exit_code, stdout } = await box.exec(asking(["sh", "-c", "cat a.txt; ! touch b.txt"]), NEVER);
  assert.deepEqual([exit_code, Buffer.from(stdout.head).toString()], [0, "one\n"]);
});

const SANDBOXES_OF: readonly (readonly [string, SandboxWish, (place: StubPlace) => unknown, number])[] = [
  ["not installed, auto", "auto", () => undefined, 0],
  ["installed, auto", "auto", ({ api }) => api.installSandboxes(), 1],
  ["installed, always", "always", ({ api }) => api.installSandboxes(), 1],
  ["installed, never", "never", ({ api }) => api.installSandboxes(), 0],
  ...["create", "delete", "get", "list"].map(
    (verb) =>
      [
        `installed, without ${verb}, auto`,
        "auto",
        ({ api }: StubPlace) => {
          api.installSandboxes();
          api.denied.add(`${verb} sandboxes`);
        },
        0,
      ] as const,
  ),
];

for (const [what, wish, prepare, count] of SANDBOXES_OF)
  test(`a box is ${count === 1 ? "a Sandbox" : "a bare pod"}: ${what}`, { skip }, async () => {
    await using place = await stubPlace("none");
    prepare(place);
    {
      await using box = await place.open({ wants: wanting(wish) });
      assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
      assert.deepEqual([place.api.sandboxes?.all().length ?? 0, place.api.named("pods").length], [count, 1]);
    }
    assert.equal(
      place.api.heard.some((each) => each.includes("agents.x-k8s.io")),
      wish !== "never" || place.api.sandboxes !== undefined,
    );
    nothingLeft(place);
  });

test(
  'with "always", and no Sandboxes served or allowed, there is no box, and the reason is given',
  { skip },
  async () => {
    await using place = await stubPlace("none");
    await refused(
      place,
      /boxes cannot be Sandboxes: the cluster does not serve Sandbox of agents\.x-k8s\.io\/v1beta1/,
    );
    place.api.installSandboxes();
    place.api.denied.add("create sandboxes").add("list sandboxes");
    await refused(
      place,
      /boxes cannot be Sandboxes: rights missing in team: create sandboxes, list sandboxes/,
    );
    assert.deepEqual(
      place.api.heard.filter((each) => /^POST .*\/namespaces\//.test(each)),
      [],
    );
  },
);

const ADDED: readonly (readonly [RegExp, (pod: Pod) => void])[] = [
  [/spec\.containers\[1\]: was added/, ({ spec: { containers } }) => void containers.push(...containers)],
  [
    /spec\.containers\[0\]\.env: was added/,
    ({ spec: { containers } }) =>
      Object.assign(containers[0] ?? {}, { env: [{ name: "TOKEN", value: "x" }] }),
  ],
  [
    /spec\.volumes\[\d\]: was added/,
    ({ spec }) => (spec.volumes as unknown[]).push({ name: "w", emptyDir: { sizeLimit: "1" } }),
  ],
  [/spec\.subdomain: was added/, ({ spec }) => void (spec["subdomain"] = "sandboxes")],
  [
    /metadata\.labels\.agents\.x-k8s\.io\/claim-uid: was added/,
    ({ metadata }) => Object.assign(metadata.labels ?? {}, { "agents.x-k8s.io/claim-uid": "u" }),
  ],
];

for (const [words, mutate] of ADDED)
  test(
    `an addition of the controller to a pod is named, and nothing runs: ${words.source}`,
    { skip },
    async () => {
      await using place = await stubPlace("none");
      place.api.installSandboxes();
      place.api.mutate = mutate;
      await refused(place, new RegExp(`not as planned, according to the cluster.*\\n.*${words.source}`));
    },
  );

test("a pod that was replaced after it was read is not filled", { skip }, async () => {
  await using place = await stubPlace("none");
  place.api.installSandboxes();
  const isAttached = (): boolean => place.api.heard.some((each) => each.includes("/attach"));
  place.api.mutate = ({ metadata }) => {
    Object.defineProperty(metadata, "uid", {
      get: () => (isAttached() ? "second" : "first"),
      enumerable: true,
    });
  };
  for (const mode of ["workspace-write", "read-only"] as const) {
    await assert.rejects(place.open({ mode }), /metadata\.uid: it is a different pod/);
    nothingLeft(place);
    (place.api.heard as string[]).length = 0;
  }
});

test(
  "a controller that cannot make a pod is quoted, and a missing controller is reported",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    const sandboxes = place.api.installSandboxes();
    sandboxes.refusal = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": no';
    await refused(place, /no pod as a box: webhook refusal: its controller says: .*violates PodSecurity/);
    sandboxes.idle = true;
    const wants = { ...wanting("auto"), scheduleMs: 100 };
    await refused(place, /no pod as a box: no pod made: .*its controller reports nothing/, wants);
  },
);

test(
  "a policy that selects pods by the controller's labels opens only boxes that are Sandboxes",
  { skip },
  async () => {
    await using place = await stubPlace("enforced");
    const matchLabels = { "agents.x-k8s.io/sandbox-name-hash": "12345678" };
    const spec = { podSelector: { matchLabels }, egress: [{}] };
    await place.api.addPolicy({ metadata: { name: "theirs" }, spec });
    {
      await using box = await place.open();
      assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
    }
    place.api.installSandboxes();
    await assert.rejects(place.open(), /the network policy theirs of the namespace allows it/);
  },
);

const clusterIn = ({ place }: StubPlace) =>
  clusterOf(
    { context: null, namespace: null },
    { env: { KUBECONFIG: place.at("kubeconfig") }, home: place.at(".") },
  );

test("boxes are listed once, and removed by id together with their Sandbox", { skip }, async () => {
  await using place = await stubPlace("none");
  const sandboxes = place.api.installSandboxes();
  const [cluster, mine] = [
    await clusterIn(place),
    { uid: process.getuid?.() ?? 0, stateDir: place.place.at("state") },
  ];
  const box = await place.open();
  const [listed, ...others] = await listPods(cluster, mine);
  assert.deepEqual([listed?.state, listed?.owner?.alive, others], ["running", true, []]);
  const name = podNamed(listed?.id ?? "");
  assert.deepEqual(names(sandboxes), [name]);
  assert.equal(await removeBoxPod(cluster, name), true);
  nothingLeft(place);
  await box[Symbol.asyncDispose]();
  assert.equal(await removeBoxPod(cluster, name), false);
});

test("a Sandbox without a pod is listed, and removed like any box", { skip }, async () => {
  await using place = await stubPlace("none");
  const sandboxes = place.api.installSandboxes();
  const [cluster, mine] = [
    await clusterIn(place),
    { uid: process.getuid?.() ?? 0, stateDir: place.place.at("state") },
  ];
  await using _ = await place.open();
  sandboxes.idle = true;
  const [name = ""] = names(sandboxes);
  await cluster.call(`${cluster.at("pods")}/${name}`, { method: "DELETE" });
  const [listed, ...others] = await listPods(cluster, mine);
  assert.deepEqual([listed?.state, others], ["no pod", []]);
  assert.equal(await removeBoxPod(cluster, podNamed(listed?.id ?? "")), true);
  nothingLeft(place);
});

test(
  "the pod of a Sandbox that may not be removed stays, and removing a bare pod needs no right to Sandboxes",
  { skip },
  async () => {
    await using place = await stubPlace("none");
    const sandboxes = place.api.installSandboxes();
    const cluster = await clusterIn(place);
    const forbidden = statusOf(403, "Forbidden", "sandboxes is forbidden");
    const fault = { fits: /^DELETE .*\/sandboxes\//, times: Infinity, status: 403, body: forbidden };
    const box = await place.open();
    place.api.faults.push(fault);
    const [name = ""] = names(sandboxes);
    await assert.rejects(removeBoxPod(cluster, name), /not authorised/);
    assert.deepEqual([place.api.named("pods"), place.api.named("networkpolicies")], [[name], [name]]);
    place.api.faults.length = 0;
    await box[Symbol.asyncDispose]();
    nothingLeft(place);
    const bare = await place.open({ wants: wanting("never") });
    place.api.faults.push(fault);
    const [pod = ""] = place.api.named("pods");
    assert.equal(await removeBoxPod(cluster, pod), true);
    await bare[Symbol.asyncDispose]();
    nothingLeft(place);
  },
);
