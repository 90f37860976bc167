import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import test, { describe } from "node:test";
import { startCommand } from "../../src/boxes/box-command.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { KEY_BYTES } from "../../src/boxes/runner-protocol.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { Cluster, ClusterTime } from "../../src/kubernetes/cluster.ts";
import { clusterHealth } from "../../src/kubernetes/cluster-health.ts";
import { handOver, denyAllTraffic } from "../../src/kubernetes/network-proof.ts";
import { removeBoxPod } from "../../src/kubernetes/own-pods.ts";
import { podSpec } from "../../src/kubernetes/pod-spec.ts";
import { attachTo } from "../../src/kubernetes/connect-box.ts";
import { createdPod, podOf, untilRunning } from "../../src/kubernetes/pod-watch.ts";
import { NEVER } from "../contract/box-words.ts";
import { clusterAt, type ObjectsApi, objectsApi } from "../fakes/kubernetes-objects.ts";
import { statusOf } from "../fakes/kubernetes-api.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

const MINUTE = 60_000;
const POD = "/api/v1/namespaces/team/pods/harness-1";
const POLICY = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/harness-1";
const RUNNING = {
  status: { phase: "Running", containerStatuses: [{ name: "box", state: { running: {} } }] },
};

const starting = { signal: NEVER, scheduleMs: 1000, onWarning: assert.fail };
const made = (api: ObjectsApi): Promise<unknown> => createdPod(api.cluster, PLAN, podSpec(PLAN), starting);
const attached = (api: ObjectsApi, signal = NEVER): Promise<Duplex> =>
  attachTo(api.cluster, { pod: PLAN.name, container: "box", signal });

/** An API server that has answered, and holds a pod with its policies. */
async function answered(times: Parameters<typeof objectsApi>[0] = {}): Promise<ObjectsApi> {
  const api = await objectsApi(times);
  for (const at of [POD, POLICY, `${POLICY}-open`]) api.objects.set(at, RUNNING);
  await api.cluster.call(POD);
  api.heard.length = 0;
  return api;
}

const unanswered = (thrown: unknown): true => {
  assert.ok(thrown instanceof HarnessError);
  assert.equal(thrown.exit, EXIT.sandbox);
  assert.match(thrown.message, /^no cluster answers at http:\/\/127\.0\.0\.1:\d+: /);
  assert.match(thrown.remedy, /kubectl cluster-info/);
  return true;
};

const REAL: ClusterTime = {
  now: () => performance.now(),
  wait: () => new Promise(setImmediate),
  random: () => 0.5,
  answerMs: 30_000,
  silentMs: 90_000,
};

/** Accepts no more connections: attempts to establish one get no answer. */
async function deafServer(): Promise<AsyncDisposable & { readonly cluster: Cluster }> {
  const says = `const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () =>
    process.stdout.write(server.address().port + "\\n", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)));`;
  const child = spawn(process.execPath, ["-e", says], { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(said.toString());
  // The kernel accepts this many without the program.
  const taken = Array.from({ length: 2 }, () => connect(port, "127.0.0.1"));
  await Promise.all(taken.map((socket) => once(socket, "connect")));
  return {
    cluster: clusterAt(port, 20, { ...REAL, answerMs: 15 }),
    [Symbol.asyncDispose]: async () => {
      for (const socket of taken) socket.destroy();
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

type Step = (api: ObjectsApi) => Promise<unknown>;
const STEPS: Readonly<Record<string, Step>> = {
  "making the policies": (api) => denyAllTraffic(api.cluster, { ...PLAN, name: "other" }),
  "making the pod": (api) => {
    api.objects.delete(POD);
    return made(api);
  },
  "waiting until it runs": (api) => untilRunning(api.cluster, PLAN, "box", starting),
  "attaching to it": async (api) => (await attached(api)).destroy(),
  "removing it": (api) => removeBoxPod(api.cluster, PLAN.name),
};

describe("an API server that answered before and is gone", () => {
  for (const [what, step] of Object.entries(STEPS)) {
    test(`is waited for when it is away for a minute: ${what}`, async () => {
      await using api = await answered();
      api.away(MINUTE);
      await step(api);
      assert.ok(api.waited() >= MINUTE && api.waited() < 2 * MINUTE, String(api.waited()));
    });

    test(`ends the attempt with a message after two minutes when it stays away: ${what}`, async () => {
      await using api = await answered();
      api.away(Infinity);
      await assert.rejects(step(api), unanswered);
      assert.ok(api.waited() > MINUTE && api.waited() <= 2 * MINUTE, String(api.waited()));
    });
  }

  test("is waited for only ten seconds when it never answered", async () => {
    await using api = await objectsApi();
    api.away(Infinity);
    await assert.rejects(made(api), unanswered);
    assert.ok(api.waited() > 5000 && api.waited() <= 10_000, String(api.waited()));
  });

  test("is not asked twice for an object whose creation it did not confirm", async () => {
    await using api = await objectsApi();
    api.lost.push(/^POST .*\/pods$/, /^POST .*policies$/);
    await denyAllTraffic(api.cluster, PLAN);
    const pod = (await made(api)) as { readonly metadata: { readonly name: string } };
    assert.equal(pod.metadata.name, PLAN.name);
    assert.equal(api.lost.length, 0);
    assert.deepEqual([...api.objects.keys()].toSorted(), [POD, `${POLICY}-first`].toSorted());
    api.lost.push(/^POST .*policies$/, /^POST .*policies$/);
    await handOver(api.cluster, PLAN, { name: PLAN.name, uid: "u" });
    assert.equal(api.lost.length, 0);
    assert.deepEqual([...api.objects.keys()].toSorted(), [POD, POLICY, `${POLICY}-open`].toSorted());
  });

  test("is not taken to have created the object when it refuses for another reason than that it exists", async () => {
    await using api = await objectsApi();
    api.refuses = { fits: /^POST/, status: 409, reason: "Conflict" };
    await assert.rejects(made(api), { exit: EXIT.sandbox, message: /no pod as a box: refused: .*Conflict/ });
    await assert.rejects(denyAllTraffic(api.cluster, PLAN), /no pod as a box: refused: .*Conflict/);
  });
});

describe("an API server that accepts a request and never answers", () => {
  for (const what of ["making the pod", "attaching to it", "removing it"])
    test(`is treated as one that is away: ${what}`, async () => {
      await using api = await answered({ answerMs: 15, patienceMs: 100 });
      api.silent = /./;
      await assert.rejects(STEPS[what]?.(api) ?? assert.fail(), unanswered);
      assert.ok(api.heard.length > 1, "it was not asked again");
    });

  test("also counts as away when the connection is never established", async () => {
    await using deaf = await deafServer();
    await assert.rejects(deaf.cluster.call(POD), /: no answer in 15 ms$/);
  });

  test("does not hold up an abort", async () => {
    await using api = await answered();
    api.silent = /^UPGRADE/;
    const leaving = new AbortController();
    const waiting = attached(api, leaving.signal);
    while (api.heard.length === 0) await new Promise(setImmediate);
    leaving.abort(new Error("left"));
    await assert.rejects(waiting, /left/);
  });
});

for (const [status, reason, most] of [
  [500, "InternalError", 10_000],
  [429, "TooManyRequests", 10_000],
  [503, "ServiceUnavailable", 2 * MINUTE],
] as const)
  test(`a server that keeps answering ${status} is waited for ${most / 1000} seconds`, async () => {
    await using api = await answered();
    api.objects.delete(POD);
    api.refuses = { fits: /^POST/, status, reason };
    await assert.rejects(made(api), { exit: EXIT.sandbox, message: new RegExp(reason) });
    assert.ok(api.waited() > most / 2 && api.waited() <= most, String(api.waited()));
  });

/** A server that gives this answer to every request. */
async function serving(
  answers: RequestListener,
  onUpgrade?: (socket: Duplex) => void,
): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer(answers);
  if (onUpgrade !== undefined) server.on("upgrade", (_, socket: Duplex) => onUpgrade(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}

test("an endless answer is refused", async () => {
  const part = Buffer.alloc(2 ** 20, "x");
  await using server = await serving((_, response) => {
    void Array.from({ length: 130 }, () => response.write(part));
    response.end();
  });
  await assert.rejects(podOf(clusterAt(server.port, 20, REAL), PLAN), {
    name: "HarnessError",
    message: /refused: the API server's answer is too long/,
  });
});

test("a watch may be silent for longer than a request", async () => {
  await using server = await serving((_, response) => {
    response.write('{"first":1}\n');
    setTimeout(() => response.end('{"second":2}\n'), 1500);
  });
  const events: unknown[] = [];
  const cluster = clusterAt(server.port, 20, { ...REAL, answerMs: 500 });
  for await (const event of cluster.watch(POD, NEVER)) events.push(event);
  assert.deepEqual(events, [{ first: 1 }, { second: 2 }]);
});

/** A watch of which one event comes, and then what `after` does. */
async function watched(
  after: (response: ServerResponse) => void,
  silentMs: number,
): Promise<readonly unknown[]> {
  await using server = await serving((_, response) => {
    response.write('{"first":1}\n', () => after(response));
  });
  const events: unknown[] = [];
  for await (const event of clusterAt(server.port, 20, { ...REAL, silentMs }).watch(POD, NEVER))
    events.push(event);
  return events;
}

test("a watch whose connection breaks ends like one that the server ends", async () => {
  assert.deepEqual(await watched((response) => response.destroy(), 90_000), [{ first: 1 }]);
});

test("a watch that stays silent for too long counts as lost", { timeout: 20_000 }, async () => {
  assert.deepEqual(await watched(() => undefined, 100), [{ first: 1 }]);
});

test("the watches of a starting pod that end at once are begun again with a pause between them", async () => {
  await using api = await answered();
  const waiting = { status: { phase: "Pending" } };
  api.objects.set(POD, waiting);
  // Without a watch of its own, this server answers one with a list, and ends it.
  const watches = (): number => api.heard.filter((each) => each.includes("watch=1")).length;
  api.onWait = () => {
    if (watches() === 3) api.objects.set(POD, RUNNING);
  };
  await untilRunning(api.cluster, PLAN, "box", starting);
  assert.equal(watches(), 3);
  assert.ok(api.waited() >= 1000, String(api.waited()));
});

test("a page of a proxy is not taken for an object", async () => {
  const page = "<!doctype html><title>Sign in</title>";
  await using server = await serving((_, response) => void response.end(page));
  const asked = podOf(clusterAt(server.port, 20, REAL), PLAN);
  await assert.rejects(asked, {
    exit: EXIT.sandbox,
    message: `no pod as a box: refused: the answer is not an object of Kubernetes: ${page}`,
  });
});

test("doctor does not take another server's JSON for a cluster", async () => {
  await using server = await serving((_, response) => void response.end('{"version":"0.24.0"}'));
  const wants = { runtimeClass: null, sandboxResource: "auto", warmPool: null } as const;
  const [api, ...rest] = await clusterHealth(clusterAt(server.port, 20, REAL), wants);
  assert.deepEqual(rest, []);
  assert.equal(api?.state, "fail");
  assert.match(api.detail, /^what answers at http:\S+, namespace team is not a Kubernetes API$/);
});

test("a creation is repeated if somebody changed the quota meanwhile", async () => {
  const told =
    'Operation cannot be fulfilled on resourcequotas "team": the object has been modified; please apply your changes to the latest version and try again';
  let times = 0;
  await using server = await serving((request, response) => {
    request.resume();
    times += 1;
    response.writeHead(times < 3 ? 409 : 201);
    response.end(JSON.stringify(times < 3 ? statusOf(409, "Conflict", told) : { made: times }));
  });
  const cluster = clusterAt(server.port, 10_000, REAL);
  assert.deepEqual(await createdPod(cluster, PLAN, podSpec(PLAN), starting), { made: 3 });
});

test("an abandoned attachment leaves no connection open", { timeout: 20_000 }, async () => {
  const sockets: Promise<unknown>[] = [];
  await using server = await serving(
    () => undefined,
    (socket) => sockets.push(once(socket.resume(), "end").finally(() => socket.destroy())),
  );
  const cluster = clusterAt(server.port, 1500, { ...REAL, answerMs: 200 });
  await assert.rejects(attachTo(cluster, { pod: PLAN.name, container: "box", signal: NEVER }), unanswered);
  assert.ok(sockets.length > 0);
  await Promise.all(sockets);
});

test("a missing right to attach is reported as such, without waiting", async () => {
  await using api = await answered();
  api.refuses = { fits: /^$/, status: 403, reason: "Forbidden" };
  await assert.rejects(attached(api), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.match(thrown.message, /^cannot attach to the pod harness-1: HTTP 403/);
    assert.match(thrown.remedy, /auth can-i create pods\/attach/);
    return true;
  });
  assert.equal(api.waited(), 0);
});

const EVICTED = { status: { phase: "Failed", reason: "Evicted", message: "the node was low on memory" } };

describe("a command in a box whose connection is cut ends, and reports", () => {
  for (const [what, ms, pod, words] of [
    [
      "that the API server does not answer",
      Infinity,
      RUNNING,
      /connection lost: .* and the API server at http:\S+ does not answer/,
    ],
    ["that the pod was running", 0, RUNNING, /connection lost: .* while the pod was running; its box ends/],
    ["what the cluster says of the pod once it is back", 1, EVICTED, /evicted: the node was low on memory/],
  ] as const)
    test(what, async () => {
      await using api = await answered({ answerMs: 200 });
      const client = new RunnerClient(await attached(api), Buffer.alloc(KEY_BYTES));
      const request = { words: ["sleep", "60"], timeoutMs: 0, keep: { head: 1, tail: 0 } };
      const { ended } = startCommand(client, request, { workspace: "/" });
      api.objects.set(POD, pod);
      api.away(ms);
      const thrown: unknown = await ended.then(
        () => assert.fail("it ended well"),
        (each: unknown) => each,
      );
      assert.ok(thrown instanceof HarnessError);
      assert.equal(thrown.exit, EXIT.sandbox);
      assert.match(thrown.message, /^the box was lost: /);
      assert.match(thrown.message, words);
    });
});

const policies = (api: ObjectsApi): readonly string[] =>
  api.heard.filter((each) => /^DELETE .*networkpolicies/.test(each));

describe("the rest of a box", () => {
  test("keeps its policies until its pod can be removed", async () => {
    await using api = await answered();
    api.refuses = { fits: /^DELETE .*\/pods\//, status: 403, reason: "Forbidden" };
    await assert.rejects(removeBoxPod(api.cluster, PLAN.name), /not authorised/);
    assert.deepEqual(policies(api), []);
    api.refuses = undefined;
    assert.equal(await removeBoxPod(api.cluster, PLAN.name), true);
    assert.deepEqual([...api.objects.keys()], []);
    assert.equal(await removeBoxPod(api.cluster, PLAN.name), false, "nothing is left to remove");
  });

  test("is removed when the answer to its removal was lost", async () => {
    await using api = await answered();
    api.lost.push(/^DELETE .*\/pods\//);
    assert.equal(await removeBoxPod(api.cluster, PLAN.name), false);
    assert.deepEqual([...api.objects.keys()], []);
    assert.equal(policies(api).length, 3);
  });
});
