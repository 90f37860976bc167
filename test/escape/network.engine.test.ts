import assert from "node:assert/strict";
import { chownSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { once } from "node:events";
import test, { after, before } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, never } from "../fixtures/escape-cases.ts";
import { OWNER, Room } from "../fixtures/escape.ts";
import { python } from "./kernel-calls.ts";
import { unlocked } from "./unlocked.ts";

/** A listener of the host that counts who comes. Nothing here ever leaves the machine. */
interface Counter extends AsyncDisposable {
  readonly port: number;
  readonly count: () => number;
}

async function listen(at: string | { readonly host: string; readonly port: number }): Promise<Counter> {
  const seen = { count: 0 };
  const server: Server = createServer((socket) => {
    seen.count += 1;
    socket.on("error", () => undefined);
    socket.resume().end("HOST\n");
  });
  if (typeof at === "string") server.listen(at);
  else server.listen(at);
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    count: () => seen.count,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

const ABSTRACT = `harness-test-${process.pid}`;
const shared = {
  v4: undefined as Counter | undefined,
  v6: undefined as Counter | undefined,
  abstract: undefined as Counter | undefined,
};

before(async () => {
  shared.v4 = await listen({ host: "127.0.0.1", port: 0 });
  shared.v6 = await listen({ host: "::1", port: 0 }).catch(() => undefined);
  shared.abstract = await listen(`\0${ABSTRACT}`);
});
after(async () => {
  for (const counter of Object.values(shared)) await counter?.[Symbol.asyncDispose]();
});

const dial = (port: number): string =>
  `(exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3); (exec 3<>/dev/tcp/localhost/${port}; cat <&3); (exec 3<>/dev/tcp/::1/${shared.v6?.port ?? port}; cat <&3)`;
const dialAbstract = `perl -MSocket -e 'socket(my $s,AF_UNIX,SOCK_STREAM,0);connect($s,pack("Sa*",AF_UNIX,"\\0${ABSTRACT}")) or exit 1; print <$s>'`;
const OWN_SERVER = python(`import socket
s = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(s.getsockname()); s.accept()[0].send(b"own"); print(a.recv(9))`);

test(
  "a server on the host's loopback cannot be reached from the box, and the box's own can",
  { skip },
  async () => {
    await using room = await Room.make();
    const port = shared.v4?.port ?? 0;
    assert.doesNotMatch((await room.exec(dial(port))).all, /HOST/);
    assert.deepEqual([shared.v4?.count(), shared.v6?.count() ?? 0], [0, 0]);
    assert.equal((await room.exec(OWN_SERVER)).all, "b'own'\n");
    assert.match(await unlocked(dial(port), { NetworkMode: "host" }), /HOST/, "the control reaches it");
    assert.ok((shared.v4?.count() ?? 0) >= 1);
  },
);

test("an abstract socket of the host is not visible in the box", { skip }, async () => {
  await using room = await Room.make();
  assert.equal((await room.exec(dialAbstract)).all, "");
  assert.equal(shared.abstract?.count(), 0);
  assert.equal(await unlocked(dialAbstract, { NetworkMode: "host" }), "HOST\n", "the control reaches it");
});

const udp = (family: number, address: string): string =>
  python(`import socket
s = socket.socket(${family}, socket.SOCK_DGRAM)
try: s.connect((${JSON.stringify(address)}, 53)); print("ROUTE", s.getsockname()[0])
except OSError as e: print(e.strerror)`);

/** Connecting a datagram socket sends nothing: it only asks for a route. The addresses are for documentation. */
const ROUTES: readonly Attack[] = [
  {
    name: "name lookup",
    run: `grep -i internal /etc/hosts; getent ahosts canary.invalid; ${udp(2, "198.51.100.53")}`,
    denied: (_, { all }) => assert.equal(all.trim(), "Network is unreachable"),
    twin: "getent ahosts localhost",
  },
  {
    name: "a DNS resolver",
    run: "grep nameserver /etc/resolv.conf | grep -v -E '^nameserver 127\\.0\\.0\\.1$'; grep -E '^(search|domain) [a-z]' /etc/resolv.conf; true",
    denied: (_, { all }) => assert.equal(all, ""),
    // Podman leaves the file empty, which means the same: the resolver of the box itself, which there is not.
    twin: "test -r /etc/resolv.conf",
  },
  {
    name: "interfaces, routes, neighbours",
    run: "tail -n +3 /proc/net/dev | grep -v -E '^ *(lo|tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0):'; tail -n +2 /proc/net/route; tail -n +2 /proc/net/arp; awk '$10 != \"lo\"' /proc/net/ipv6_route | grep -v -E '(tun|gre|vti|sit)'; true",
    denied: (_, { all }) => assert.equal(all, ""),
    twin: "grep lo: /proc/net/dev",
  },
  {
    name: "routes to anywhere: documentation, metadata, the usual gateways, all ones",
    run:
      ["198.51.100.7", "169.254.169.254", "172.17.0.1", "192.168.65.2", "10.0.0.1", "255.255.255.255"]
        .map((address) => udp(2, address))
        .join("\n") + `\n${udp(10, "2001:db8::1")}`,
    denied: never(/ROUTE/),
    twin: udp(2, "127.0.0.1"),
    allowed: (_, { all }) => assert.equal(all, "ROUTE 127.0.0.1\n"),
  },
  {
    name: "a self-made interface and route",
    run: `cat /proc/net/dev /proc/net/route | cut -d: -f1 > /tmp/before
${python(`import socket, struct
def ask(kind, body):
    s = socket.socket(16, 3, 0); s.bind((0, 0))
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
    print(kind, errno.errorcode.get(-struct.unpack("=i", s.recv(4096)[16:20])[0], "ok"))
name = struct.pack("=HH8s", 12, 3, b"dummy7\\0\\0") + struct.pack("=HH", 16, 18) + struct.pack("=HH8s", 12, 1, b"dummy\\0\\0\\0")
ask(16, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + name)
ask(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([198, 51, 100, 9])))
ask(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("=HHI", 8, 4, 1))`)}
cat /proc/net/dev /proc/net/route | cut -d: -f1 | cmp - /tmp/before && echo same`,
    denied: (_, { all }) => assert.equal(all, "16 EPERM\n20 EPERM\n24 EPERM\nsame\n"),
    twin: "python3 -c 'import socket; print(socket.if_nameindex())'",
  },
  {
    name: "sockets of the engine and of the desktop",
    run: "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/dbus/system_bus_socket /run/systemd/private /tmp/.X11-unix /run/user; do [ -e $s ] && echo THERE $s; done; find / -xdev -type s 2>/dev/null | grep -v ^{W}; env | grep -i -E 'proxy|DOCKER_HOST|SSH_AUTH_SOCK|DBUS'; true",
    denied: (_, { all }) => assert.equal(all, ""),
    twin: python("import socket; s = socket.socket(1); s.bind('/tmp/own.sock'); os.unlink('/tmp/own.sock')"),
  },
];

attacks(ROUTES);

test("the same line has a route in an ordinary container", { skip }, async () => {
  assert.match(await unlocked(udp(2, "198.51.100.53"), { NetworkMode: "bridge" }), /^ROUTE/);
});

test(
  "two boxes cannot connect to each other, neither by loopback nor by abstract sockets",
  { skip },
  async () => {
    await using one = await Room.make();
    await using two = await Room.make();
    // Both listen until somebody says that it is enough.
    const serve = python(`import socket
a = socket.create_server(("127.0.0.1", 4567)); b = socket.socket(1); b.bind("\\0${ABSTRACT}-box"); b.listen(); a.settimeout(120)
while True:
    with a.accept()[0] as s:
        s.settimeout(5)
        try:
            if s.recv(4) == b"stop": break
        except OSError: pass`);
    const dialBoth = python(`import socket
for s, to in ((socket.socket(), ("127.0.0.1", 4567)), (socket.socket(1), "\\0${ABSTRACT}-box")):
    try: s.connect(to); print("met")
    except OSError: print("alone")`);
    const dialedUntilMet = python(`import socket, time
for _ in range(600):
    try: socket.create_connection(("127.0.0.1", 4567)).close(); break
    except OSError: time.sleep(0.1)`);
    const enough = python(`import socket
socket.create_connection(("127.0.0.1", 4567)).sendall(b"stop")`);
    const serving = one.exec(serve);
    await two.box();
    await one.exec(dialedUntilMet);
    assert.equal((await one.exec(dialBoth)).all, "met\nmet\n", "the twin: in the same box");
    assert.equal((await two.exec(dialBoth)).all, "alone\nalone\n");
    await one.exec(enough);
    await serving;
  },
);

const connect = (path: string): string =>
  python(`import socket; s = socket.socket(1)
try: s.connect(${JSON.stringify(path)}); print("MET")
except OSError as e: print(e.strerror)`);

test(
  "a host program's socket is missing outside the workspace, and reachable inside it",
  { skip },
  async () => {
    await using room = await Room.make();
    await using beside = await listen(`${room.CAN}/s`);
    assert.equal((await room.exec(connect("{CAN}/s"))).all, "No such file or directory\n");
    assert.equal(beside.count(), 0);
    await using own = await listen(room.at("s"));
    if (process.getuid?.() === 0) chownSync(room.at("s"), OWNER, OWNER);
    assert.equal(
      (await room.exec(connect("{W}/s"))).all,
      "MET\n",
      "a limit: what listens in the workspace is part of it",
    );
    assert.equal(own.count(), 1);
  },
);
