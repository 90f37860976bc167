import assert from "node:assert/strict";
import test, { after, before, describe } from "node:test";
import { parseGrant } from "../../src/core/network.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { foundAt } from "../fixtures/https-stub.ts";
import { realBox } from "../fixtures/real-box.ts";
import { python } from "./kernel-calls.ts";
import { startHttp } from "../fakes/loopback.ts";

/** A server of the host's that only the proxy may lead to, under one name. */
const visits: string[] = [];
const server = await startHttp(({ headers, url }, response) => {
  visits.push(headers.host ?? "");
  if (url === "/away") response.writeHead(302, { Location: "http://elsewhere.test/" });
  response.end("HOST\n");
});

after(() => server[Symbol.asyncDispose]());

const GET = "curl -sS --max-time 20 http://plain.test/";

const ask = (host: string): string =>
  python(`import socket
s = socket.socket(1); s.connect("/run/harness/egress.sock")
s.sendall(b"GET http://${host}/ HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n")
print(s.makefile().readline().strip())`);

/** Where nothing can be mounted, a box's own user has the folder: what it does there it does to itself. */
const WAYS = [
  ["by a socket that is mounted", false],
  ["by the stream of a box of a remote engine", true],
] as const;

/** A Podman that is reached over a network is refused: it does not report what the checks of a box need. */
const onPodman = process.env["HARNESS_TEST_PODMAN"] !== undefined && "Podman is used on this machine only";

for (const [way, relayed] of WAYS)
  describe(way, () => {
    const none = skip || (relayed && onPodman);
    const kept = new AsyncDisposableStack();
    const shared: { box?: OwnedBox } = {};
    before(async () => {
      if (none !== false) return;
      const grants = [parseGrant("plain.test:80:private")];
      const network = { grants, trust: () => Promise.resolve("trusted\n"), ...foundAt(server.port) };
      const on = !relayed ? {} : { engine: kept.use(await overNetwork()).engine };
      const isolation = relayed ? "copy" : "bind";
      shared.box = kept.use(await realBox({}, { network, isolation }, on)).box;
    });
    after(() => kept.disposeAsync());

    async function said(line: string): Promise<string> {
      const { box } = shared;
      if (box === undefined) throw new Error("no box");
      const request = { words: ["bash", "-c", line], timeoutMs: 30_000, keep: { head: 2 ** 16, tail: 0 } };
      const { stdout, stderr } = await box.exec(request, AbortSignal.timeout(40_000));
      return Buffer.concat([stdout.head, stderr.head]).toString("utf8");
    }

    /** What is granted is still reached, whatever was tried. */
    const allowed = async (): Promise<void> => assert.equal(await said(GET), "HOST\n");

    test("the box has no interface, route or name except its loopback", { skip: none }, async () => {
      const line = `tail -n +3 /proc/net/dev | cut -d: -f1 | grep -v -w -E 'lo|tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0'
tail -n +2 /proc/net/route; getent ahosts plain.test; ${python(`import socket
for family, address in ((2, "198.51.100.7"), (2, "169.254.169.254"), (2, "172.17.0.1"), (10, "2001:db8::1")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind); s.settimeout(3)
        try: s.connect((address, 80)); print("ROUTE", address)
        except OSError as e: print(e.strerror)`)}`;
      assert.match(await said(line), /^((Network is unreachable|Cannot assign requested address)\n){8}$/);
      await allowed();
    });

    test(
      "a server on the host's loopback cannot be reached, neither directly nor through the proxy",
      { skip: none },
      async () => {
        visits.length = 0;
        const port = server.port;
        const line = `(exec 3<>/dev/tcp/127.0.0.1/${port}; echo GET >&3; cat <&3) 2>&1
for at in 127.0.0.1 localhost 0.0.0.0 [::1] 2130706433 0x7f.1 127.1 [::ffff:127.0.0.1] 169.254.169.254; do
  curl -sS --noproxy '' -o /dev/null -w '%{http_code}\\n' http://$at:${port}/ -x http://127.0.0.1:3128
done`;
        const answers = (await said(line)).split("\n").filter((each) => /^\d{3}$/.test(each));
        assert.ok(answers.length >= 8 && answers.every((code) => /^4\d\d$/.test(code)), answers.join(" "));
        assert.deepEqual(visits, []);
        await allowed();
      },
    );

    test("requests sent to the socket directly are judged like others", { skip: none }, async () => {
      visits.length = 0;
      assert.match(await said(ask("elsewhere.test")), /^HTTP\/1\.1 403 /);
      assert.deepEqual(visits, []);
      assert.match(await said(ask("plain.test")), /^HTTP\/1\.1 200 /);
    });

    if (relayed)
      test(
        "a server put in the socket's place receives only the box's own requests",
        { skip: none },
        async () => {
          visits.length = 0;
          const line = python(`import os, signal, socket, subprocess
at = "/run/harness/egress.sock"
relay = int(subprocess.check_output("grep -lax relay /proc/[0-9]*/comm | cut -d/ -f3", shell=True))
os.unlink(at); own = socket.socket(1); own.bind(at); own.listen(9)
other = socket.create_connection(("127.0.0.1", 3128)); other.sendall(b"asked")
print(own.accept()[0].recv(9).decode())
os.kill(relay, signal.SIGKILL)`);
          assert.equal(await said(line), "asked\n");
          assert.deepEqual(visits, []);
          await allowed();
        },
      );
    else
      test(
        "the socket cannot be replaced, and its folder cannot be written, moved or covered",
        { skip: none },
        async () => {
          const line = `cd /run
for try in "touch harness/x" "rm -f harness/egress.sock" "mv harness/egress.sock harness/y" "mv harness away" "rmdir harness" \\
  "ln -sfn /tmp harness/egress.sock" "mount --bind /tmp harness" "umount harness" "chmod 777 harness" "cp /dev/null harness/ca.pem"; do
  $try >/dev/null 2>&1 && echo "DONE $try"
done; cat harness/ca.pem`;
          assert.equal(await said(line), "trusted\n");
          await allowed();
        },
      );

    test("the bridge and the runner cannot be read or traced", { skip: none }, async () => {
      const line = `for pid in 1 $(grep -laxE 'bridge|relay' /proc/[0-9]*/comm | cut -d/ -f3); do
  for file in mem environ maps; do head -c 1 /proc/$pid/$file >/dev/null 2>&1 && echo "READ $pid $file"; done
  ls /proc/$pid/fd >/dev/null 2>&1 && echo "LISTED $pid"
done; head -c 4 /proc/self/environ | wc -c; ${python(`import ctypes, subprocess
libc = ctypes.CDLL(None, use_errno=True)
pids = subprocess.check_output("grep -laxE 'bridge|relay' /proc/[0-9]*/comm | cut -d/ -f3", shell=True).split()
print(len(pids), any(libc.ptrace(16, int(pid), 0, 0) == 0 for pid in pids))`)}`;
      assert.equal(await said(line), `4\n${relayed ? 2 : 1} False\n`);
      await allowed();
    });

    test("a redirect to another host is judged again", { skip: none }, async () => {
      visits.length = 0;
      assert.match(await said(`${GET}away -L -i`), /^HTTP\/1\.1 302 [^]*HTTP\/1\.1 403 /);
      assert.deepEqual(visits, ["plain.test"]);
      await allowed();
    });
  });
