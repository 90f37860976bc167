import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { ServerResponse } from "node:http";
import path from "node:path";
import test, { after } from "node:test";
import { parseGrant } from "../../../src/core/network.ts";
import type { ExecResult } from "../../../src/core/ports.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import type { NetworkRequest } from "../../../src/docker/egress/box-network.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { foundAt } from "../../fixtures/https-stub.ts";
import { boxesOver } from "../../fixtures/standing-boxes.ts";
import { realBox } from "../../fixtures/real-box.ts";
import { startHttp } from "../../fakes/loopback.ts";

/** Answers at once, except for /held, which is answered when `release` is called. */
const held: ServerResponse[] = [];
const server = await startHttp(({ url = "" }, response) => {
  if (url.startsWith("/held")) held.push(response);
  else if (url.startsWith("/size/")) response.end(Buffer.alloc(Number(url.slice(6)), "x"));
  else response.end("hello\n");
});
const release = (): void => {
  for (const response of held.splice(0)) response.end("late\n");
};

after(() => server[Symbol.asyncDispose]());

function granted(): NetworkRequest {
  const { port } = server;
  return {
    grants: [parseGrant("plain.test:80:private")],
    trust: () => Promise.resolve(""),
    ...foundAt(port),
  };
}

type Real = Awaited<ReturnType<typeof realBox>>;
const granting = (wanted: Partial<BoxRequest> = {}): Promise<Real> =>
  realBox({}, { network: granted(), ...wanted });

interface Ran {
  readonly out: string;
  readonly result: ExecResult;
}

async function sh({ box }: Real, line: string, timeoutMs = 30_000): Promise<Ran> {
  const request = { words: ["bash", "-c", line], timeoutMs, keep: { head: 2 ** 16, tail: 0 } };
  const result = await box.exec(request, AbortSignal.timeout(60_000));
  return { out: Buffer.concat([result.stdout.head, result.stderr.head]).toString("utf8"), result };
}

const GET = "curl -sS --max-time 20 http://plain.test/";
/** Of a command of the box: the process that is called so and was started by the first one. */
const BRIDGE = "grep -lax bridge /proc/[0-9]*/comm | cut -d/ -f3";

const hello = async (real: Real): Promise<void> => assert.equal((await sh(real, GET)).out, "hello\n");

/** A program of Python that posts much to a host. */
const post = (host: string): string => `import urllib.request, urllib.error
try:
  print(urllib.request.urlopen("http://${host}/", data=b"x" * 20000000).read().decode())
except urllib.error.HTTPError as answer:
  print(answer.read().decode())`;

test("a program that sends much sees the answer to it, a denial as well as a host's", { skip }, async () => {
  await using real = await granting();
  const { out } = await sh(real, `python3 -c '${post("other.test")}'; python3 -c '${post("plain.test")}'`);
  assert.match(out, /^harness: the host other\.test is not granted; [^\n]*\n+hello\n+$/);
});

test("it is not counted as a process of a call, and never left over", { skip }, async () => {
  await using real = await granting();
  await using plain = await realBox();
  const [one, other] = [await sh(real, "sleep 0.3"), await sh(plain, "sleep 0.3")];
  assert.deepEqual([one.result.leftovers, one.result.killed], [0, false]);
  assert.equal(one.result.peak.pids, other.result.peak.pids);
  await hello(real);
});

test("it survives calls that leave processes behind", { skip }, async () => {
  await using real = await granting();
  const LEAVES = "(setsid sleep 100 & sleep 100 &) ; echo done";
  const left = await sh(real, LEAVES);
  assert.equal(left.out, "done\n");
  assert.ok(left.result.leftovers >= 2);
  await hello(real);
  const beside = sh(real, `sleep 2; ${GET}`);
  assert.ok((await sh(real, LEAVES)).result.leftovers >= 2);
  await hello(real);
  assert.equal((await beside).out, "hello\n");
  assert.equal((await sh(real, "sleep 100", 300)).result.timed_out, true);
  await hello(real);
});

test("killed or stopped by a command it is restarted, with pauses", { skip }, async () => {
  await using real = await granting();
  const [first] = (await sh(real, BRIDGE)).out.trim().split("\n");
  for (const signal of ["KILL", "STOP", "TERM"]) {
    await sh(real, `kill -${signal} $(${BRIDGE}); sleep 0.1`);
    await hello(real);
  }
  assert.notEqual((await sh(real, BRIDGE)).out.trim(), first);
  const often =
    "n=0; begun=$(date +%s%3N); end=$((SECONDS+3)); while [ $SECONDS -lt $end ]; do pkill -KILL -x bridge && n=$((n+1)); done; echo $n $(($(date +%s%3N)-begun))";
  const [kills = 0, ms = 0] = (await sh(real, often)).out.trim().split(" ").map(Number);
  // One that is being taken down can be met more than once; without a pause between lives there would be hundreds.
  assert.ok(kills >= 1 && kills < ms / 100, `${kills} lives in ${ms} ms`);
  await hello(real);
});

test("its port stays reserved while it restarts, and connections wait", { skip }, async () => {
  await using real = await granting();
  const line = `for i in 1 2 3 4 5; do pkill -KILL -x bridge; sleep 0.05; done
python3 - <<'END'
import socket
for kind in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    s = socket.socket()
    if kind: s.setsockopt(socket.SOL_SOCKET, kind, 1)
    try: s.bind(("127.0.0.1", 3128)); s.listen(); print("TAKEN")
    except OSError as e: print(e.strerror)
END
${GET}`;
  assert.equal((await sh(real, line)).out, `${"Address already in use\n".repeat(3)}hello\n`);
});

const TUNNELS = `import socket, sys
many = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(1000)]
for s in many: s.sendall(b"GET http://plain.test/held HTTP/1.1\\r\\nHost: plain.test\\r\\nConnection: close\\r\\n\\r\\n")
print("asked", flush=True)
good = 0
for s in many:
    got = b""
    while (more := s.recv(4096)): got += more
    good += got.startswith(b"HTTP/1.1 200") and got.endswith(b"late\\n")
print(good)`;

test("a thousand simultaneous tunnels each get their own answer", { skip }, async () => {
  await using real = await granting();
  const request = { words: ["python3", "-c", TUNNELS], timeoutMs: 60_000, keep: { head: 4096, tail: 0 } };
  const running = real.box.exec(request, AbortSignal.timeout(60_000));
  while (held.length < 1000) await Promise.race([once(server.server, "request"), running.then(assertNone)]);
  release();
  const { stdout, stderr } = await running;
  assert.equal(Buffer.concat([stdout.head, stderr.head]).toString("utf8"), "asked\n1000\n");
  await hello(real);
});

const assertNone = ({ stdout, stderr }: ExecResult): never => {
  throw new Error(Buffer.concat([stdout.head, stderr.head]).toString("utf8"));
};

test(
  "large amounts of data arrive complete, also with a slow reader and after the other side has finished",
  { skip },
  async () => {
    await using real = await granting();
    const size = 64 * 2 ** 20;
    const sum = "md5sum | cut -c1-32";
    const expected = (await sh(real, `head -c ${size} /dev/zero | tr '\\0' x | ${sum}`)).out;
    const got = await sh(real, `curl -sS http://plain.test/size/${size} | (sleep 0.5; cat) | ${sum}`);
    assert.equal(got.out, expected);
  },
);

test("with idle tunnels it uses no processor time", { skip }, async () => {
  await using real = await granting();
  const line = `python3 - <<'END'
import socket, time
def ask(path):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(("GET http://plain.test%s HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n" % path).encode())
    return s
slow = ask("/size/${8 * 2 ** 20}"); half = ask("/held/half"); half.shutdown(socket.SHUT_WR); open = ask("/held/open")
time.sleep(0.5)
pid = [p for p in __import__("os").listdir("/proc") if p.isdigit() and __import__("builtins").open("/proc/%s/comm" % p).read() == "bridge\\n"][0]
ticks = lambda: sum(map(int, __import__("builtins").open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[11:13]))
before = ticks(); time.sleep(1.5); print(ticks() - before)
END`;
  const { out } = await sh(real, line);
  release();
  assert.ok(Number(out) <= 5, `${out} ticks of a hundredth in one and a half seconds`);
});

test("a box that ends with open tunnels leaves no container, process or folder", { skip }, async () => {
  const real = await granting();
  const { workspace } = real.box;
  const { HostConfig } = await engine.api.getContainer(await real.container()).inspect();
  const source = HostConfig.Mounts?.find(({ Target }) => Target === "/run/harness")?.Source ?? "";
  assert.ok(existsSync(path.join(source, "egress.sock")));
  const running = sh(real, "curl -sS http://plain.test/held/end").catch(() => undefined);
  while (held.length === 0) await once(server.server, "request");
  await real[Symbol.asyncDispose]();
  await running;
  release();
  assert.deepEqual(await boxesOver(workspace), []);
  assert.equal(existsSync(path.dirname(source)), false);
});

test(
  "it works over an overlay and a copy, and with full access there is a network anyway",
  { skip },
  async () => {
    for (const isolation of ["overlay", "copy"] as const) {
      await using real = await granting({ isolation });
      await hello(real);
    }
    await using real = await granting({ mode: "danger-full-access" });
    assert.equal(real.box.network, undefined);
    assert.equal((await sh(real, "env | grep -c -i proxy")).out, "0\n");
  },
);
