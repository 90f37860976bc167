import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { writeFileIn } from "../../src/boxes/runner-files.ts";
import { KEY_BYTES } from "../../src/boxes/runner-protocol.ts";
import { askReport } from "../../src/boxes/runner-report.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { clusterOf } from "../../src/kubernetes/cluster.ts";
import { boxRules } from "../../src/kubernetes/cluster-rights.ts";
import { attachTo } from "../../src/kubernetes/connect-box.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { poolFor } from "../fixtures/warm-pool.ts";
import { look } from "./cluster-api.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { sandboxSuite } from "./sandbox-suite.ts";

/** Boxes out of a warm pool, kept by the controllers of kubernetes-sigs/agent-sandbox themselves. */

const { cluster, skip } = await sandboxSuite();
const { api, image } = cluster;

const POOL = "boxes";
const below = ({ space }: BoxPlace, kind: string): string =>
  `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${space.name}/${kind}`;

const WANTS = { ...podWants(image), warmPool: POOL };

interface Pooled {
  readonly replicas?: number;
  readonly memory?: number;
}

/** A namespace with a pool whose pods fit the folder of the place, once they wait. */
async function pooled(place: BoxPlace, { replicas = 1, memory }: Pooled = {}): Promise<void> {
  const objects = poolFor({ place, image, namespace: place.space.name, pool: POOL, replicas, memory });
  for (const object of objects)
    await api.must(
      "POST",
      below(place, object["kind"] === "SandboxTemplate" ? "sandboxtemplates" : "sandboxwarmpools"),
      object,
    );
  await ready(place, replicas);
}

const ready = (place: BoxPlace, replicas: number): Promise<unknown> =>
  api.until(
    `${below(place, "sandboxwarmpools")}/${POOL}`,
    ({ body }) =>
      look(body, "status", "observedGeneration") !== undefined &&
      (look(body, "status", "readyReplicas") ?? 0) === replicas,
  );

const waiting = async ({ space }: BoxPlace): Promise<ReadonlyMap<string, string>> =>
  new Map((await api.list(space.pods)).map(({ metadata }) => [metadata.uid ?? "", metadata.name]));

async function said(box: OwnedBox, line: string): Promise<string> {
  const { exit_code, stdout, stderr } = await box.exec(asking(["bash", "-c", line]), NEVER);
  const text = Buffer.concat([stdout.head, stderr.head].map((part) => Buffer.from(part))).toString();
  assert.equal(exit_code, 0, text);
  return text;
}

/** Waits until the claim, its pod and the pod's objects are gone. */
async function goes(place: BoxPlace, pod: string): Promise<void> {
  assert.deepEqual(await api.list(below(place, "sandboxclaims")), []);
  await api.until(`${place.space.pods}/${pod}`, ({ status }) => status === 404);
  const policies = `/apis/networking.k8s.io/v1/namespaces/${place.space.name}/networkpolicies`;
  await api.until(policies, ({ body }) => (look(body, "items") as readonly unknown[]).length <= 1);
  assert.deepEqual(await place.named("networkpolicies"), [`${POOL}-network-policy`]);
}

test(
  "a box is a waiting pod: a user who may make no other gets it, its network is shut, it is used once, and it goes with its claim",
  { skip },
  async () => {
    const rules = boxRules("Pod", true).map((rule) =>
      rule.resources?.includes("pods") === true
        ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "create") }
        : rule,
    );
    await using place = await boxPlace(cluster, { rules });
    await pooled(place);
    const [[uid = "", name = ""] = []] = await waiting(place);
    {
      await using box = await place.open({ wants: WANTS });
      assert.equal(
        await said(
          box,
          `id -u; hostname; cat /proc/1/comm a.txt; ! timeout 2 bash -c 'exec 3<>/dev/tcp/10.213.0.1/6443' 2>/dev/null`,
        ),
        "1000\nsandbox\nrunner\none\n",
      );
      const [claim] = await api.list(below(place, "sandboxclaims"));
      assert.equal(look(claim, "status", "sandbox", "name"), name);
      const until = Date.parse(String(look(claim, "spec", "lifecycle", "shutdownTime")));
      const made = Date.parse(String(look(claim, "metadata", "creationTimestamp")));
      assert.ok(Math.abs(until - made - WANTS.startMs - WANTS.deadlineMs) < 5000);
      const pod = await api.must("GET", `${place.space.pods}/${name}`);
      assert.equal(pod.metadata.uid, uid);
    }
    assert.deepEqual(place.said, []);
    await goes(place, name);
    // Another pod waits in its place, and belongs to no box.
    await ready(place, 1);
    assert.ok(!(await waiting(place)).has(uid));
  },
);

test("where no pod waits the box gets its own pod, without a message", { skip }, async () => {
  await using place = await boxPlace(cluster);
  await pooled(place, { replicas: 0 });
  await using box = await place.open({ wants: WANTS });
  assert.equal(await said(box, "cat a.txt"), "one\n");
  assert.deepEqual([place.said, await api.list(below(place, "sandboxclaims"))], [[], []]);
});

test(
  "a pod of a pool that does not fit this box is not used by anyone, and the reason is given",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    await pooled(place, { memory: 2 ** 28 });
    const [[, name = ""] = []] = await waiting(place);
    await using box = await place.open({ wants: WANTS });
    assert.equal(await said(box, "cat a.txt"), "one\n");
    assert.equal(place.said.length, 1, place.said.join("\n"));
    assert.match(
      place.said[0] ?? "",
      /its pods do not match the plan for this box: .*limits\.memory: is "268435456"/,
    );
    await api.until(`${place.space.pods}/${name}`, ({ status }) => status === 404);
  },
);

/** Attaches to a waiting pod before it becomes a box, as anyone with that right can. */
async function intruded(place: BoxPlace, name: string): Promise<RunnerClient> {
  const user = { env: { KUBECONFIG: cluster.kubeconfig }, home: "/nowhere" };
  const there = await clusterOf({ context: null, namespace: place.space.name }, user);
  const stream = await attachTo(there, { pod: name, container: "box", signal: NEVER });
  const client = new RunnerClient(stream, randomBytes(KEY_BYTES));
  await askReport(client, []);
  await writeFileIn(client, "/tmp/left", Buffer.from("x"));
  return client;
}

test(
  "a pod that somebody attached to before, or is still attached to, is refused as a box",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    await pooled(place);
    const [[, first = ""] = []] = await waiting(place);
    const stays = await intruded(place, first);
    {
      await using box = await place.open({ wants: { ...WANTS, startMs: 30_000 } });
      assert.equal(await said(box, "cat a.txt; ls /tmp"), "one\n");
      assert.match(
        place.said.join("\n"),
        /^no box from the warm pool boxes: .*; the box gets a pod of its own$/,
      );
    }
    stays.close();
    await api.until(`${place.space.pods}/${first}`, ({ status }) => status === 404);
    await ready(place, 1);
    const second = [...(await waiting(place)).values()].find((name) => name.startsWith(POOL)) ?? "";
    const left = await intruded(place, second);
    left.close();
    await api.until(
      `${place.space.pods}/${second}`,
      ({ status, body }) => status === 404 || look(body, "status", "phase") === "Succeeded",
    );
    await using box = await place.open({ wants: WANTS });
    assert.equal(await said(box, "cat a.txt; ls /tmp"), "one\n");
  },
);
