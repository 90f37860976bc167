import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import test from "node:test";
import { changesOfReturned } from "../../src/boxes/workspace/session-layer.ts";
import { layerOf } from "../../src/boxes/workspace/layer-record.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { boxRules } from "../../src/kubernetes/cluster-rights.ts";
import type { PodRequest } from "../../src/kubernetes/start-pod-box.ts";
import type { SandboxWish } from "../../src/kubernetes/agent-sandbox.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { type Sandbox, unlikeSandbox } from "../fakes/sandbox-controller.ts";
import { COMPILED, type Ended, runProgram } from "../fixtures/cli.ts";
import { ROOT } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { type KubeObject, look } from "./cluster-api.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { podNamed, runningPod } from "./cluster-pods.ts";
import { sandboxSuite } from "./sandbox-suite.ts";

/** Boxes as Sandboxes, made by the controller of kubernetes-sigs/agent-sandbox itself. */

const { cluster, skip } = await sandboxSuite();
const { api, image } = cluster;

const pathOf = ({ space }: BoxPlace): string =>
  `/apis/agents.x-k8s.io/v1beta1/namespaces/${space.name}/sandboxes`;

const namesOf = async (place: BoxPlace): Promise<readonly string[]> =>
  (await api.list(pathOf(place))).map(({ metadata }) => metadata.name);

const leftIn = async (place: BoxPlace): Promise<readonly (readonly string[])[]> => [
  await namesOf(place),
  await place.named("pods"),
  await place.named("networkpolicies"),
];

const wanting = (sandboxResource: SandboxWish, more: Partial<PodRequest["wants"]> = {}) => ({
  wants: { ...podWants(image), sandboxResource, ...more },
});

async function said(box: OwnedBox, line: string): Promise<string> {
  const { exit_code, stdout, stderr } = await box.exec(asking(["bash", "-c", line]), NEVER);
  const text = Buffer.concat([stdout.head, stderr.head].map((part) => Buffer.from(part))).toString();
  assert.equal(exit_code, 0, text);
  return text;
}

const condition = (sandbox: KubeObject, type: string): Readonly<Record<string, unknown>> | undefined =>
  ((look(sandbox, "status", "conditions") ?? []) as Record<string, unknown>[]).find(
    (one) => one["type"] === type,
  );

test(
  "a user who may make Sandboxes but no pods gets a box: its controller makes it, its network is shut, its changes come back, and all of it is removed",
  { skip },
  async () => {
    await using place = await boxPlace(cluster, { rules: boxRules("Sandbox") });
    const keep = "session1";
    {
      await using box = await place.open({ ...wanting("always"), keep });
      const [name = "", ...others] = await namesOf(place);
      assert.deepEqual(
        [others, await place.named("pods"), await place.named("networkpolicies")],
        [[], [name], [name]],
      );
      assert.equal(
        await said(
          box,
          `id -u; hostname; cat /proc/1/comm; echo two >> a.txt; ! timeout 2 bash -c 'exec 3<>/dev/tcp/10.213.0.1/6443' 2>/dev/null`,
        ),
        "1000\nsandbox\nrunner\n",
      );
      const sandbox = await api.until(
        `${pathOf(place)}/${name}`,
        ({ body }) => condition(body, "Ready")?.["status"] === "True",
      );
      assert.deepEqual(unlikeSandbox(sandbox as unknown as Sandbox), []);
      const pod = await api.must("GET", `${place.space.pods}/${name}`);
      assert.deepEqual(look(pod, "metadata", "ownerReferences"), [
        {
          apiVersion: "agents.x-k8s.io/v1beta1",
          kind: "Sandbox",
          name,
          uid: sandbox.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ]);
      assert.ok(Date.parse(String(look(sandbox, "spec", "shutdownTime"))) > Date.now() + 600_000);
    }
    assert.deepEqual(place.said, []);
    const layer = await layerOf(place.place.at("state"), keep);
    assert.ok(layer !== undefined);
    const { changes } = await changesOfReturned(layer);
    assert.deepEqual(
      changes.map(({ path: file, what }) => `${what} ${file}`),
      ["modified a.txt"],
    );
    assert.deepEqual(await leftIn(place), [[], [], []]);
    const services = await api.list(`/api/v1/namespaces/${place.space.name}/services`);
    assert.deepEqual(services, [], "there is no Service by which a box could be found");
  },
);

for (const hours of [-9, 9])
  test(
    `the end of a Sandbox follows the cluster's clock, even if this machine's is ${hours} hours off`,
    { skip },
    async (t) => {
      await using place = await boxPlace(cluster);
      const { now } = Date;
      t.after(() => void (Date.now = now));
      Date.now = () => now() + hours * 3_600_000;
      await using box = await place.open(wanting("always"));
      assert.equal(await said(box, "cat a.txt"), "one\n");
      const [name = ""] = await namesOf(place);
      const sandbox = await api.must("GET", `${pathOf(place)}/${name}`);
      const made = Date.parse(String(look(sandbox, "metadata", "creationTimestamp")));
      const until = Date.parse(String(look(sandbox, "spec", "shutdownTime")));
      const { scheduleMs, startMs, deadlineMs } = wanting("always").wants;
      const meant = made + scheduleMs + startMs + deadlineMs + 3_600_000;
      assert.ok(Math.abs(until - meant) < 60_000, `${until - meant}`);
    },
  );

test("a read-only Sandbox is filled by the other container", { skip }, async () => {
  await using place = await boxPlace(cluster);
  await using box = await place.open({ ...wanting("always"), mode: "read-only" });
  assert.equal(await said(box, "cat a.txt; ! touch b.txt 2>/dev/null"), "one\n");
});

test("a user who may not make Sandboxes, or does not want them, gets bare pods", { skip }, async () => {
  await using poor = await boxPlace(cluster, { rules: boxRules("Pod") });
  await assert.rejects(
    poor.open(wanting("always")),
    /boxes cannot be Sandboxes: rights missing in t-\w+: create sandboxes, delete sandboxes, get sandboxes, list sandboxes/,
  );
  await using place = await boxPlace(cluster);
  for (const [own, wish] of [
    [poor, "auto"],
    [place, "never"],
  ] as const) {
    await using box = await own.open(wanting(wish));
    assert.equal(await said(box, "cat a.txt"), "one\n");
    assert.deepEqual([await namesOf(own), (await own.named("pods")).length], [[], 1]);
  }
  for (const own of [poor, place]) assert.deepEqual(await leftIn(own), [[], [], []]);
});

test(
  "a pod that somebody removes is made again, is no box, and is removed with everything else",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    {
      await using box = await place.open(wanting("always"));
      const [name = ""] = await place.named("pods");
      const at = `${place.space.pods}/${name}`;
      const { metadata } = await api.must("GET", at);
      const running = box.exec(asking(["sleep", "60"]), NEVER);
      await api.must("DELETE", `${at}?gracePeriodSeconds=0`);
      await assert.rejects(running, /the box was lost/);
      await api.until(at, ({ status, body }) => status === 200 && body.metadata.uid !== metadata.uid);
    }
    await staysEmpty(place);
  },
);

/** Checks that nothing of a box is left, and that nothing comes back. */
async function staysEmpty(place: BoxPlace): Promise<void> {
  assert.deepEqual(await leftIn(place), [[], [], []]);
  // The controller handles events in order: anything that it recreates would exist by its next answer.
  await using box = await place.open(wanting("always"));
  assert.deepEqual(await place.named("pods"), await namesOf(place));
  await box[Symbol.asyncDispose]();
  assert.deepEqual(await leftIn(place), [[], [], []]);
}

test("a pod that was replaced before its network is proven is not filled", { skip }, async () => {
  await using place = await boxPlace(cluster);
  const opening = place.open(wanting("always"));
  opening.catch(() => undefined);
  const list = await api.until(
    place.space.pods,
    ({ body }) => look(body, "items", 0, "status", "phase") === "Running",
  );
  await api.must(
    "DELETE",
    `${place.space.pods}/${String(look(list, "items", 0, "metadata", "name"))}?gracePeriodSeconds=0`,
  );
  await assert.rejects(opening, /a different pod|deleted|lost/);
  await staysEmpty(place);
});

test("a quota that stops its controller is reported, and waited for or refused", { skip }, async () => {
  await using place = await boxPlace(cluster);
  const quotas = `/api/v1/namespaces/${place.space.name}/resourcequotas`;
  await api.must("POST", quotas, { metadata: { name: "few" }, spec: { hard: { pods: "0" } } });
  await api.until(`${quotas}/few`, ({ body }) => look(body, "status", "hard", "pods") === "0");
  await assert.rejects(place.open(wanting("always")), /quota: its controller says: .*exceeded quota: few/);
  assert.deepEqual(await leftIn(place), [[], [], []]);
  await api.must("PATCH", `${quotas}/few`, { spec: { hard: { pods: "1" } } });
  await api.until(`${quotas}/few`, ({ body }) => look(body, "status", "hard", "pods") === "1");
  const other = podNamed("other", image, {
    spec: { securityContext: { seccompProfile: { type: "RuntimeDefault" } } },
  });
  await runningPod(api, place.space, other);
  const opening = place.open(wanting("always"));
  const { items } = await api.until(pathOf(place), ({ body }) => look(body, "items", 0) !== undefined);
  const first = look(items, 0, "metadata", "uid");
  // Its controller retries at growing intervals, so the Sandbox is made again as long as there is no room.
  await api.until(
    pathOf(place),
    ({ body }) => ![undefined, first].includes(look(body, "items", 0, "metadata", "uid")),
  );
  await api.must("DELETE", `${place.space.pods}/other?gracePeriodSeconds=0`);
  await using box = await opening;
  assert.equal(await said(box, "cat a.txt"), "one\n");
  assert.equal(place.said.length, 1, place.said.join("\n"));
  assert.match(place.said[0] ?? "", /^no pod of the box yet: its controller says: .*exceeded quota: few/);
});

test("a missing controller is reported, and nothing is left", { skip }, async () => {
  await using place = await boxPlace(cluster);
  await cluster.stop("sandboxes");
  try {
    await assert.rejects(
      place.open(wanting("always", { scheduleMs: 2000 })),
      /no pod made: none within 2\.0 s: its controller reports nothing/,
    );
    assert.deepEqual(await leftIn(place), [[], [], []]);
  } finally {
    await cluster.start("sandboxes");
  }
  await using box = await place.open(wanting("always"));
  assert.equal(await said(box, "cat a.txt"), "one\n");
});

/** Runs what a user types whose boxes are in this namespace. */
async function typing({ place, space, kubeconfig }: BoxPlace) {
  const kubernetes = { image, start_timeout: "120s" };
  const config = { engine: `kubernetes:/${space.name}`, kubernetes };
  await place.write("home/.config/harness/config.json", JSON.stringify(config));
  const start = { home: place.at("home"), cwd: place.at("project"), env: { KUBECONFIG: kubeconfig } };
  const env = { PATH: process.env["PATH"], HOME: start.home, ...COMPILED, ...start.env };
  return {
    type: (...words: readonly string[]): Promise<Ended> => runProgram("bin/harness", words, start),
    /** A command in a box whose harness is killed. */
    killed: async (): Promise<void> => {
      const words = ["sandbox", "exec", "--", "sh", "-c", "echo begun; sleep 600"];
      const stdio = ["ignore", "pipe", "inherit"] as const;
      const child = spawn(path.join(ROOT, "bin/harness"), words, { cwd: start.cwd, env, stdio: [...stdio] });
      const ended = once(child, "exit");
      const first = await Promise.race([once(child.stdout, "data"), ended]);
      assert.ok(Buffer.isBuffer(first[0]), `it ended with ${String(first[0])}`);
      child.kill("SIGKILL");
      await ended;
    },
  };
}

const phaseOf = (body: unknown): unknown => look(body, "status", "phase");

/** The report of `doctor` about the kind of boxes, the rights and a box. */
async function told(place: BoxPlace): Promise<readonly string[]> {
  const { type } = await typing(place);
  const { stdout, stderr } = await type("doctor", "--json");
  const { checks } = JSON.parse(stdout) as { checks: { id: string; state: string; detail: string }[] };
  const found = ["sandbox_resource", "rights", "box"].map((id) => checks.find((one) => one.id === id));
  return found.map((one) => `${one?.state}: ${one?.detail ?? stderr}`);
}

test("doctor reports that boxes are Sandboxes, by making one, or why they are not", { skip }, async () => {
  await using rich = await boxPlace(cluster, { rules: boxRules("Sandbox") });
  const [kind, rights, box] = await told(rich);
  assert.equal(kind, "ok: each box is a Sandbox");
  assert.match(`${rights}\n${box}`, /^ok: all \d+ that a box needs in .*\nok: /);
  assert.deepEqual(await leftIn(rich), [[], [], []]);
  await using poor = await boxPlace(cluster, { rules: boxRules("Pod") });
  const [bare, ...others] = await told(poor);
  assert.match(bare ?? "", /^ok: boxes are bare pods: rights missing in t-\w+: create sandboxes/);
  assert.match(others.join("\n"), /^ok: all \d+ that a box needs in .*\nok: /);
});

test(
  "the box of a killed harness ends; the controller removes it when its time is up, with its policies",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    const { type, killed } = await typing(place);
    await killed();
    const [name = ""] = await namesOf(place);
    await api.until(`${place.space.pods}/${name}`, ({ body }) => phaseOf(body) === "Succeeded");
    const listed = await type("sandbox", "ls", "--json");
    const box = JSON.parse(listed.stdout) as { owner: { alive: boolean }; state: string };
    assert.deepEqual([box.owner.alive, box.state], [false, "succeeded"]);
    const removed = await type("sandbox", "rm", "--dead");
    assert.equal(removed.code, 0, removed.stderr);
    assert.deepEqual(await leftIn(place), [[], [], []]);

    await killed();
    const [second = ""] = await namesOf(place);
    const shutdownTime = new Date(Date.now() + 1000).toISOString().replace(/\.\d+Z$/, "Z");
    await api.must("PATCH", `${pathOf(place)}/${second}`, { spec: { shutdownTime } });
    await api.until(`${pathOf(place)}/${second}`, ({ status }) => status === 404);
    await api.until(`${place.space.pods}/${second}`, ({ status }) => status === 404);
    await api.until(
      `/apis/networking.k8s.io/v1/namespaces/${place.space.name}/networkpolicies`,
      ({ body }) => (look(body, "items") as readonly unknown[]).length === 0,
    );
    assert.deepEqual(await leftIn(place), [[], [], []]);
    const next = await type("sandbox", "exec", "--", "true");
    assert.equal(next.code, 0, next.stderr);
    await staysEmpty(place);
  },
);
