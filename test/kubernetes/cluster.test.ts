import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import {
  ApiFailure,
  Cluster,
  type ClusterTime,
  clusterOf,
  kubeConfigOf,
} from "../../src/kubernetes/cluster.ts";
import { scratch } from "../fixtures/scratch.ts";

const kubeconfig = (server: string): string =>
  JSON.stringify({
    "current-context": "one",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token: "t0ken" } }],
    contexts: [
      { name: "one", context: { cluster: "c", user: "u", namespace: "mine" } },
      { name: "two", context: { cluster: "c", user: "u" } },
    ],
  });

async function folder(t: TestContext): Promise<string> {
  const made = await scratch();
  t.after(() => made[Symbol.asyncDispose]());
  return made.path;
}

async function homeWith(t: TestContext, server: string): Promise<string> {
  const home = await folder(t);
  await mkdir(path.join(home, ".kube"));
  await writeFile(path.join(home, ".kube", "config"), kubeconfig(server));
  return home;
}

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

async function serving(t: TestContext, answer: Answer): Promise<string> {
  let count = 0;
  const server = createServer((request, response) => answer(request, response, (count += 1)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

const failing = (status: number, reason: string, message: string) => (response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ kind: "Status", reason, message, code: status }));
};

async function clusterAt(
  t: TestContext,
  answer: Answer,
  patienceMs?: number,
  time?: ClusterTime,
): Promise<Cluster> {
  const home = await homeWith(t, await serving(t, answer));
  const config = kubeConfigOf({ context: null, namespace: null }, { env: {}, home });
  return new Cluster(config, "mine", patienceMs, time);
}

const exitOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (thrown) {
    return thrown instanceof HarnessError ? [thrown.exit, thrown.message] : thrown;
  }
};

test("the context and namespace are the requested ones, or else the kubeconfig's", async (t) => {
  const home = await homeWith(t, "http://127.0.0.1:1");
  const namespace = async (context: string | null, named: string | null): Promise<string> =>
    (await clusterOf({ context, namespace: named }, { env: {}, home })).namespace;
  assert.equal(await namespace(null, null), "mine");
  assert.equal(await namespace("two", null), "default");
  assert.equal(await namespace("two", "team"), "team");
});

const given = (context: string | null, env: Record<string, string>, home: string): unknown =>
  exitOf(() => kubeConfigOf({ context, namespace: null }, { env, home }));

test("an unknown context or kubeconfig is an error that lists what exists", async (t) => {
  const home = await homeWith(t, "http://127.0.0.1:1");
  const none = await folder(t);
  assert.deepEqual(given("three", {}, home), [
    EXIT.usage,
    "the kubeconfig has no context three; it has one, two",
  ]);
  const missing = path.join(none, ".kube", "config");
  assert.deepEqual(given(null, {}, none), [
    EXIT.sandbox,
    `no cluster is configured: there is no kubeconfig (${missing}) and no service account here`,
  ]);
  const broken = path.join(none, "broken");
  await writeFile(broken, "clusters: [");
  const [exit, said] = given(null, { KUBECONFIG: broken }, home) as [number, string];
  assert.equal(exit, EXIT.usage);
  assert.match(said, /^the kubeconfig \S+broken cannot be read: /);
});

test("the user's token is sent, and the server's refusal is reported in its own words", async (t) => {
  const cluster = await clusterAt(t, (request, response) =>
    request.headers.authorization === "Bearer t0ken"
      ? failing(403, "Forbidden", "pods is forbidden")(response)
      : failing(401, "Unauthorized", "who?")(response),
  );
  await assert.rejects(cluster.call(cluster.at("pods")), (thrown) => {
    assert.ok(thrown instanceof ApiFailure);
    assert.deepEqual([thrown.status, thrown.reason, thrown.message], [403, "Forbidden", "pods is forbidden"]);
    return true;
  });
});

test("a busy server is asked again, and a server that does not answer is given up with a reason", async (t) => {
  const busy = await clusterAt(t, (_, response, count) =>
    count < 3
      ? failing(429, "TooManyRequests", "later")(response)
      : response.end(JSON.stringify({ kind: "Pod", unknown: 1 })),
  );
  assert.deepEqual(await busy.call(busy.at("pods/a")), { kind: "Pod", unknown: 1 });
  const home = await homeWith(t, "http://127.0.0.1:1");
  const config = kubeConfigOf({ context: null, namespace: null }, { env: {}, home });
  await assert.rejects(new Cluster(config, "mine", 0).call("/api"), (thrown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.equal(thrown.exit, EXIT.sandbox);
    assert.match(thrown.message, /^no cluster answers at http:\/\/127\.0\.0\.1:1: /);
    return true;
  });
});

interface Waited {
  readonly pauses: number[];
  readonly time: ClusterTime;
}

/** A clock that advances only by waiting. */
function waited(random: () => number): Waited {
  const pauses: number[] = [];
  let now = 0;
  const wait = (ms: number): Promise<void> => {
    pauses.push(ms);
    now += ms;
    return Promise.resolve();
  };
  return { pauses, time: { now: () => now, wait, random, answerMs: 30_000, silentMs: 90_000 } };
}

const busyFor = (status: number, headers: Record<string, string>) => (response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ kind: "Status", reason: "TooManyRequests", message: "later", code: status }));
};

for (const status of [429, 503])
  test(`a busy server that names a delay (${status}) is asked again after it, for a watch as well`, async (t) => {
    const { pauses, time } = waited(() => 0.5);
    const busy = await clusterAt(
      t,
      (_, response, count) =>
        count % 2 === 1
          ? busyFor(status, { "retry-after": "20" })(response)
          : response.end('{"type":"ADDED"}\n'),
      10_000,
      time,
    );
    assert.deepEqual(await busy.call(busy.at("pods/a")), { type: "ADDED" });
    const seen: unknown[] = [];
    for await (const event of busy.watch(busy.at("pods?watch=1"), AbortSignal.timeout(10_000)))
      seen.push(event);
    assert.deepEqual(seen, [{ type: "ADDED" }]);
    assert.deepEqual(pauses, [21_000, 21_000]);
  });

test("a server that stays busy is given up, sooner when it names no delay", async (t) => {
  const sums: number[] = [];
  for (const headers of [{}, { "retry-after": "20" }, { "retry-after": "900" }]) {
    const { pauses, time } = waited(() => 0);
    const busy = await clusterAt(t, (_, response) => busyFor(429, headers)(response), 10_000, time);
    await assert.rejects(busy.call(busy.at("pods/a")), { name: "ApiFailure", status: 429 });
    sums.push(pauses.reduce((sum, ms) => sum + ms, 0));
  }
  const [own = 0, asked, never] = sums;
  assert.ok(own > 8000 && own <= 10_000, String(own));
  assert.deepEqual([asked, never], [60_000, 0]);
});

test("a watch yields its events line by line, wherever the chunks break", async (t) => {
  const cluster = await clusterAt(t, (_, response) => {
    response.write('{"type":"ADDED","object":{"a":1}}\n{"type":"MODI');
    response.end('FIED","object":{"a":2}}\n');
  });
  const seen: unknown[] = [];
  for await (const event of cluster.watch(cluster.at("pods?watch=1"), AbortSignal.timeout(10_000)))
    seen.push(event);
  assert.deepEqual(seen, [
    { type: "ADDED", object: { a: 1 } },
    { type: "MODIFIED", object: { a: 2 } },
  ]);
  const expired = await clusterAt(t, (_, response) => failing(410, "Expired", "too old")(response));
  const first = expired.watch(expired.at("pods?watch=1"), AbortSignal.timeout(10_000)).next();
  await assert.rejects(first, (thrown) => thrown instanceof ApiFailure && thrown.status === 410);
});

for (const hours of [-9, 9])
  test(`the cluster's time comes from its API server, even if it is ${hours} hours off ours`, async (t) => {
    let asked = 0;
    const away = hours * 3_600_000;
    const cluster = await clusterAt(t, (_, response) => {
      asked += 1;
      response.setHeader("date", new Date(Date.now() + away).toUTCString());
      failing(403, "Forbidden", "no")(response);
    });
    for (const _ of [1, 2]) assert.ok(Math.abs((await cluster.now()) - (Date.now() + away)) < 60_000);
    assert.equal(asked, 1);
    // Our clock is set while running: it does not show the time that has passed.
    const { now } = Date;
    t.after(() => void (Date.now = now));
    const there = now() + away;
    Date.now = () => now() - 3_600_000;
    assert.ok(Math.abs((await cluster.now()) - (there - 3_600_000)) < 60_000);
    assert.equal(asked, 2);
  });

test("a credential that the cluster rejects as expired is renewed once; one that does not change is not", async (t) => {
  const home = await folder(t);
  const asked: (string | undefined)[] = [];
  const server = await serving(t, ({ headers }, response) => {
    asked.push(headers.authorization);
    if (headers.authorization === "Bearer 1") failing(401, "Unauthorized", "who?")(response);
    else response.end("{}");
  });
  // Each call returns another credential, which is valid for years by our clock.
  const program = `n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > n; echo '{"status": {"token": "'$n'", "expirationTimestamp": "2999-01-01T00:00:00Z"}}'`;
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "sh",
    args: ["-c", `cd ${home}; ${program}`],
    interactiveMode: "Never",
  };
  const at = async (user: object): Promise<Cluster> => {
    const file = path.join(home, "config");
    const text = { ...(JSON.parse(kubeconfig(server)) as object), users: [{ name: "u", user }] };
    await writeFile(file, JSON.stringify(text));
    return clusterOf({ context: null, namespace: null }, { env: { KUBECONFIG: file }, home }, 0);
  };
  const cluster = await at({ exec });
  assert.deepEqual(await cluster.call("/api"), {});
  assert.deepEqual(await cluster.call("/api"), {});
  assert.deepEqual(asked.splice(0), ["Bearer 1", "Bearer 2", "Bearer 2"]);
  await assert.rejects((await at({ token: "1" })).call("/api"), { status: 401 });
  assert.deepEqual(asked, ["Bearer 1"]);
});
