import assert from "node:assert/strict";
import test, { after } from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { podNamed, runningPod, saidInPod } from "./cluster-pods.ts";
import { look } from "./cluster-api.ts";

/** Boxes on a real cluster with each kind of network: their state, attempts to get out, and how they end. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image, network } = cluster;
/** With `none` nothing is ever reached, and with `open` all of it is: neither shows that a box is shut. */
const shut = network === "enforced";

/** A namespace that also allows other pods, which are less restricted than boxes. */
const ownPlace = (): Promise<BoxPlace> => boxPlace(cluster, { labels: {} });

const exec = async (box: OwnedBox, line: string) => {
  const result = await box.exec(asking(["bash", "-c", line]), NEVER);
  const all = Buffer.concat([result.stdout.head, result.stderr.head].map((part) => Buffer.from(part)));
  return { ...result, all: all.toString() };
};

test(
  "where a network cannot be proven shut there is no box, and nothing is left",
  { skip: shut && "this network is shut" },
  async () => {
    await using own = await ownPlace();
    await assert.rejects(own.open(), (thrown: unknown) => {
      assert.ok(thrown instanceof HarnessError && thrown.exit === EXIT.sandbox);
      assert.match(thrown.message, /its network is not shut/);
      return true;
    });
    await api.until(own.space.pods, ({ body }) => (look(body, "items") as readonly unknown[]).length === 0);
  },
);

const shared: { place?: Promise<BoxPlace>; box?: Promise<OwnedBox> } = {};
const sharedBox = (): Promise<OwnedBox> =>
  (shared.box ??= (shared.place ??= ownPlace()).then(({ open }) => open()));
after(async () => {
  await (await shared.box)?.[Symbol.asyncDispose]();
  await (await shared.place)?.[Symbol.asyncDispose]();
});

interface Attack {
  readonly name: string;
  readonly run: string;
  /** What it would print if it succeeded. */
  readonly never: RegExp;
  /** An allowed command, which exits with 0 in the same box. */
  readonly twin: string;
}

const tcp = (host: string, port: string): string =>
  `timeout 2 bash -c 'exec 3<>/dev/tcp/${host}/${port} && echo REACHED'`;

const ATTACKS: readonly Attack[] = [
  {
    name: "writing to the root, the kernel's settings and the cgroups",
    run: "for f in /x /usr/bin/x /etc/x /proc/sys/kernel/hostname /proc/sysrq-trigger /sys/fs/cgroup/memory/memory.limit_in_bytes; do (echo 1 > $f) 2>/dev/null && echo WROTE $f; done; true",
    never: /WROTE/,
    twin: "for f in /tmp/x ~/x /run/x x; do echo 1 > $f && rm $f || exit 1; done",
  },
  {
    name: "gaining capabilities, namespaces, devices and mounts",
    run: "grep -E '^Cap(Eff|Prm|Bnd)' /proc/self/status | grep -v 0000000000000000$; mount -t tmpfs x /tmp 2>/dev/null && echo MOUNTED; chroot / true 2>/dev/null && echo CHROOT; mknod /tmp/m b 8 0 2>/dev/null && echo DEVICE; ls /dev | grep -E '^(sd|vd|nvme|kmsg|mem|loop)'; unshare -m true 2>/dev/null && echo UNSHARED; true",
    never: /./,
    twin: "mkfifo /tmp/p && rm /tmp/p && test $(id -u) != 0",
  },
  {
    name: "finding a token, the node's folders and the engine's socket",
    run: "ls /var/run/secrets /run/secrets /var/lib/kubelet /var/run/docker.sock /run/containerd /host 2>/dev/null; env | grep -iE 'token|_PORT='; true",
    never: /./,
    twin: "ls /etc/passwd && env | grep HOME=",
  },
  {
    name: "signalling and reading the first process",
    run: "for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; head -c1 /proc/1/mem /proc/1/environ 2>/dev/null; for f in 0 1 2; do (printf forged > /proc/1/fd/$f) 2>/dev/null && echo WROTE; done; ls /proc/1/fd 2>/dev/null; ls /proc/1/cwd 2>/dev/null; true",
    never: /./,
    twin: "sleep 100 & kill -TERM $!; wait $!; test $? = 143",
  },
  {
    name: "dialling the API server, the kubelet, the cloud's metadata address and a resolver",
    run: `read -r host port <<< "$HARNESS_API"; ${[
      tcp("$host", "$port"),
      tcp("169.254.169.254", "80"),
      tcp("10.213.0.1", "10250"),
      tcp("10.213.0.1", "53"),
    ]
      .join("; ")
      .replaceAll("'exec 3<>/dev/tcp/$host/$port", '"exec 3<>/dev/tcp/$host/$port')
      .replace("$port && echo REACHED'", '$port && echo REACHED"')}; getent hosts kubernetes.default; true`,
    never: /REACHED|kubernetes/,
    twin: `python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); socket.create_connection(s.getsockname())'`,
  },
  {
    name: "starting processes without end",
    run: "f() { f | f & }; (f) 2>/dev/null; for i in $(seq 3000); do sleep 5 & done 2>/dev/null; jobs | wc -l | awk '$1 >= 3000 { print \"ALL\" }'; true",
    never: /ALL/,
    twin: "sleep 0 & wait $!",
  },
  {
    name: "using memory without end",
    run: "python3 -c 'x = bytearray(2 ** 30); print(\"HELD\")' 2>/dev/null; true",
    never: /^HELD/m,
    twin: "python3 -c 'bytearray(2 ** 20)'",
  },
];

for (const { name, run, never, twin } of ATTACKS)
  test(`an escape is prevented: ${name}`, { skip: !shut && "there is no box" }, async () => {
    const box = await sharedBox();
    const { all } = await exec(box, run);
    assert.doesNotMatch(all, never);
    const allowed = await exec(box, twin);
    assert.equal(allowed.exit_code, 0, allowed.all);
  });

test(
  "a listening pod is reached by other pods, but not by a box",
  { skip: !shut && "there is no box" },
  async () => {
    const box = await sharedBox();
    const { space } = await (shared.place ?? ownPlace());
    const serve = `node -e 'require("http").createServer((q, a) => a.end("here")).listen(8080)'`;
    const running = await runningPod(api, space, podNamed("server", image, { script: serve }));
    const ip = String(look(running, "status", "podIP"));
    const ask = `for i in $(seq 20); do curl -sS -m 1 http://${ip}:8080/ && exit; sleep 0.2; done; exit 1`;
    const like = await saidInPod(api, space, podNamed("client", image, { script: ask }));
    assert.match(like.text, /here$/);
    const { all } = await exec(box, `${tcp(ip, "8080")}; true`);
    assert.doesNotMatch(all, /REACHED/);
  },
);

test(
  "an evicted pod and an unreachable API server are reported as such",
  { skip: !shut && "there is no box" },
  async () => {
    await using own = await ownPlace();
    {
      await using box = await own.open();
      const running = exec(box, "sleep 60");
      const [pod] = await api.list(own.space.pods);
      const name = pod?.metadata.name ?? "";
      const eviction = {
        apiVersion: cluster.release === "1.20" ? "policy/v1beta1" : "policy/v1",
        kind: "Eviction",
        metadata: { name },
        deleteOptions: { gracePeriodSeconds: 0 },
      };
      await api.must("POST", `${own.space.pods}/${name}/eviction`, eviction);
      await assert.rejects(running, /the box was lost: .*(?:deleted|evicted)/s);
    }
    await using box = await own.open();
    const running = exec(box, "sleep 60");
    try {
      await cluster.gate({ state: "refused" });
      await assert.rejects(running, /the box was lost/);
    } finally {
      await cluster.gate({ state: "open" });
    }
    await using again = await own.open();
    assert.equal((await exec(again, "cat a.txt")).all, "one\n");
  },
);
