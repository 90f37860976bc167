import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";
import { NODE_ADDRESS } from "./cluster-places.ts";
import { type OwnSpace, ownSpace, podNamed, runningPod, saidInPod } from "./cluster-pods.ts";

/** The cluster has the properties that the other suites rely on, each tested beside its opposite. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image } = cluster;

const SERVE = `node -e 'require("http").createServer((q, a) => a.end("here")).listen(8080)'`;
const ASK = (url: string): string => `curl -sS -m 3 http://${url}/ 2>&1`;

async function server(space: OwnSpace, name = "server"): Promise<string> {
  const ports = [{ name: "web", containerPort: 8080 }];
  const pod = podNamed(name, image, {
    labels: { app: name },
    script: SERVE,
    container: { ports, readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 } },
  });
  const { metadata } = await runningPod(api, space, pod);
  const ready = await api.until(
    `${space.pods}/${metadata.name}`,
    ({ body }) => look(body, "status", "containerStatuses", 0, "ready") === true,
  );
  return String(look(ready, "status", "podIP"));
}

test("a pod of the sandbox image runs without rights, on a read-only root", async () => {
  await using space = await ownSpace(api);
  const script =
    "id -u; grep CapEff /proc/self/status | tr -s '\\t' ' '; touch /x 2>&1; cat /sys/fs/cgroup/memory/memory.limit_in_bytes";
  const limits = { memory: "64Mi", cpu: "500m" };
  const { code, text } = await saidInPod(
    api,
    space,
    podNamed("one", image, {
      script,
      container: {
        ...(podNamed("", image) as { spec: { containers: object[] } }).spec.containers[0],
        command: ["bash", "-c", script],
        resources: { limits, requests: limits },
      },
    }),
  );
  assert.equal(code, 0);
  assert.match(text, /^1000\nCapEff: 0+\ntouch: .*Read-only file system\n67108864\n$/);
});

test("RBAC is on: an account without a role may do nothing, and one with a role only what it grants", async () => {
  await using space = await ownSpace(api);
  const base = `/api/v1/namespaces/${space.name}`;
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space.name}`;
  await api.must("POST", `${base}/serviceaccounts`, { metadata: { name: "small" } });
  const { status } = await api.must("POST", `${base}/serviceaccounts/small/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {},
  });
  const small = api.as(String(look(status, "token")));
  assert.equal((await small.ask("GET", space.pods)).status, 403);
  await api.must("POST", `${rbac}/roles`, {
    metadata: { name: "reads" },
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }],
  });
  await api.must("POST", `${rbac}/rolebindings`, {
    metadata: { name: "reads" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reads" },
    subjects: [{ kind: "ServiceAccount", name: "small", namespace: space.name }],
  });
  await small.until(space.pods, ({ status: code }) => code === 200);
  assert.equal((await small.ask("POST", space.pods, podNamed("x", image))).status, 403);
  assert.equal((await api.as("wrong").ask("GET", space.pods)).status, 401);
});

test(
  "without a network a pod reaches only itself",
  { skip: cluster.network !== "none" && `it is ${cluster.network}` },
  async () => {
    await using space = await ownSpace(api);
    const other = await runningPod(api, space, podNamed("server", image, { script: SERVE }));
    const address = String(look(other, "status", "podIP"));
    const urls = [`${address}:8080`, "10.214.0.1:443", `${NODE_ADDRESS}:10250`];
    const asks = urls.map((url) => `curl -s -o /dev/null -m 3 http://${url}/; echo $?`).join("; ");
    const own = `(${SERVE} &); for i in $(seq 50); do ${ASK("127.0.0.1:8080")} >/dev/null && break; sleep 0.2; done`;
    const { text } = await saidInPod(
      api,
      space,
      podNamed("asks", image, { script: `${own}; ${ASK("127.0.0.1:8080")}; echo; ${asks}` }),
    );
    assert.match(text, /here\n(7|28)\n(7|28)\n(7|28)\n$/);
  },
);

test(
  "pods reach each other, a service, and what is let out",
  { skip: cluster.network === "none" && "it has no network" },
  async () => {
    await using space = await ownSpace(api);
    const address = await server(space);
    const made = await api.must("POST", `/api/v1/namespaces/${space.name}/services`, {
      metadata: { name: "web" },
      spec: { selector: { app: "server" }, ports: [{ port: 80, targetPort: 8080 }] },
    });
    const outside = createServer((_, answer) => answer.end("outside")).listen(0, "127.0.0.1");
    await once(outside, "listening");
    const bound = outside.address();
    const out = await cluster.letOut(typeof bound === "object" && bound !== null ? bound.port : 0);
    await api.until(
      `/api/v1/namespaces/${space.name}/endpoints/web`,
      ({ body }) => look(body, "subsets", 0, "addresses", 0) !== undefined,
    );
    const service = String(look(made, "spec", "clusterIP"));
    const urls = [`${address}:8080`, service, `${NODE_ADDRESS}:${out}`];
    const script = urls
      .map((url) => `for i in $(seq 50); do ${ASK(url)} && break; sleep 0.2; done | tail -1; echo`)
      .join("; ");
    const { text } = await saidInPod(api, space, podNamed("asks", image, { script }));
    outside.close();
    assert.equal(text, "here\nhere\noutside\n");
  },
);

const DENY_ALL = {
  metadata: { name: "deny" },
  spec: { podSelector: { matchLabels: { role: "box" } }, policyTypes: ["Ingress", "Egress"] },
};

test(
  "a policy that denies everything holds only where the network enforces policies",
  { skip: cluster.network === "none" && "it has no network" },
  async () => {
    await using space = await ownSpace(api);
    const address = await server(space);
    const policies = `/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`;
    await api.must("POST", policies, DENY_ALL);
    const script = `${ASK(`${address}:8080`)}; echo " $?"; curl -sk -m 3 https://10.214.0.1/ >/dev/null; echo $?; curl -sk -m 3 https://${NODE_ADDRESS}:10250/ >/dev/null; echo $?`;
    const free = await saidInPod(api, space, podNamed("free", image, { script }));
    assert.equal(free.text, "here 0\n0\n0\n");
    const box = await saidInPod(api, space, podNamed("box", image, { script, labels: { role: "box" } }));
    if (cluster.network === "open") assert.equal(box.text, free.text);
    else assert.match(box.text, /^curl: .*\n 28\n28\n28\n$/);
  },
);

test(
  "one allowed peer is reached on its port, and nothing else",
  { skip: cluster.network !== "enforced" && `policies are not in force: it is ${cluster.network}` },
  async () => {
    await using space = await ownSpace(api);
    const [proxy, other] = [await server(space, "proxy"), await server(space, "other")];
    const policies = `/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`;
    const to = [{ podSelector: { matchLabels: { app: "proxy" } } }];
    await api.must("POST", policies, {
      ...DENY_ALL,
      spec: { ...DENY_ALL.spec, egress: [{ to, ports: [{ protocol: "TCP", port: 8080 }] }] },
    });
    const script = [`${proxy}:8080`, `${proxy}:8081`, `${other}:8080`]
      .map((url) => `curl -s -o /dev/null -m 3 http://${url}/; echo $?`)
      .join("; ");
    const { text } = await saidInPod(api, space, podNamed("box", image, { script, labels: { role: "box" } }));
    assert.equal(text, "0\n28\n28\n");
  },
);

test("a component that was killed comes back with its state", async () => {
  await using space = await ownSpace(api);
  await runningPod(api, space, podNamed("stays", image));
  await cluster.kill("api");
  await assert.rejects(api.ask("GET", "/readyz"));
  await cluster.start("api");
  await api.until("/readyz", ({ status }) => status === 200);
  const pod = await api.until(`${space.pods}/stays`, ({ status }) => status === 200);
  assert.equal(look(pod, "status", "phase"), "Running");
});

test("the gate can refuse, stall and cut connections in the middle of a transfer", async () => {
  await cluster.gate({ state: "refused" });
  await assert.rejects(
    api.ask("GET", "/readyz"),
    /ECONNRESET|ECONNREFUSED|socket hang up|disconnected before/,
  );
  await cluster.gate({ state: "stalled" });
  const silent = api.ask("GET", "/readyz");
  assert.equal(
    await Promise.race([
      silent.then(() => "answered"),
      new Promise((done) => setTimeout(done, 500, "silent")),
    ]),
    "silent",
  );
  await cluster.gate({ state: "open" });
  assert.equal((await silent).status, 200);
  await cluster.gate({ cutAfter: 20_000 });
  const large = { metadata: { name: "large" }, data: { text: "x".repeat(100_000) } };
  await assert.rejects(api.ask("POST", "/api/v1/namespaces/default/configmaps", large));
  assert.equal((await api.ask("GET", "/api/v1/namespaces/default/configmaps/large")).status, 404);
});
