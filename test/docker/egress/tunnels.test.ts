import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, createServer, type TLSSocket } from "node:tls";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { clientHello, connected, egress, exchange, granted, stub } from "../../fixtures/egress.ts";

const GRANTS = [granted("example.org")];
const HELLO = await clientHello({ servername: "example.org" });
const CONNECT = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";

const echo = (socket: Socket): void => void socket.pipe(socket);

test("a hello that comes with the CONNECT is read, and one in two packets and records", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const cut = Buffer.concat([
    Buffer.from([22, 3, 1, 0, 40]),
    HELLO.subarray(5, 45),
    Buffer.from([22, 3, 1, (HELLO.length - 45) >> 8, (HELLO.length - 45) & 255]),
  ]);
  client.write(cut);
  await sleep(10);
  assert.equal(server.came(), "");
  client.write(HELLO.subarray(45));
  await once(client, "data");
  assert.equal(server.came(), Buffer.concat([cut, HELLO.subarray(45)]).toString("latin1"));
  client.destroy();
  await using other = await stub((socket) => socket.once("data", () => socket.end("bye")));
  await using second = await egress(other.port, { grants: GRANTS });
  assert.match(
    await exchange(second.proxy.socket, Buffer.concat([Buffer.from(CONNECT), HELLO])),
    /200 [^]*bye$/,
  );
});

test("a client that says nothing, or leaves, is not waited for", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS, limits: { helloMs: 30 } });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  await once(client.resume(), "end");
  const gone = await connected(way.proxy.socket, "example.org:443");
  gone.client.destroy();
  assert.deepEqual(
    way.told.map(({ verdict, rule }) => [verdict, rule]),
    [["denied", "hello-timeout"]],
  );
  assert.equal(server.came(), "");
});

test("an address is reached by TLS without a name, where it is granted", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: [granted("9.9.9.9")] });
  const { client } = await connected(way.proxy.socket, "0x9.9.9.9:443");
  client.write(await clientHello({}));
  await once(client, "data");
  assert.deepEqual([way.resolved, way.dialled], [[], ["9.9.9.9:443"]]);
  client.destroy();
});

test("what the client ends, the host may still answer, and the other way round", async () => {
  await using server = await stub((socket) => socket.resume().on("end", () => socket.end("the rest")));
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.end(HELLO);
  assert.equal(String((await once(client, "data"))[0]), "the rest");
  for (; way.told.length === 0;) await sleep(5);
  assert.deepEqual([way.told[0]?.up, way.told[0]?.down, way.told[0]?.rule], [HELLO.length, 8, "granted"]);
});

test("a server that asks for a second hello gets it", async () => {
  const world = makeSessionAuthority();
  const server = createServer({
    ecdhCurve: "prime256v1",
    SNICallback: (_, give) => give(null, world.contextFor("example.org")),
  });
  server.on("secureConnection", (socket: TLSSocket) => void socket.end("agreed"));
  await using there = await stub(() => undefined, server);
  await using way = await egress(there.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const ways = { servername: "example.org", ca: world.pem, minVersion: "TLSv1.3" as const };
  const tls = connect({ ...ways, socket: client, ecdhCurve: "secp521r1:prime256v1" });
  assert.equal(String((await once(tls, "data"))[0]), "agreed");
  assert.deepEqual(
    tls.getEphemeralKeyInfo(),
    { type: "ECDH", name: "prime256v1", size: 256 },
    "not the first",
  );
  tls.destroy();
});

const RETRY = Buffer.from(
  `160303002e0200002a0303cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c00130100`,
  "hex",
);

for (const [what, retry, servername, passes] of [
  ["the same name", RETRY, "example.org", true],
  ["another name", RETRY, "other.example.org", false],
  ["no name", RETRY, undefined, false],
  [
    "another name, unasked",
    Buffer.concat([RETRY.subarray(0, 20), Buffer.alloc(31)]),
    "other.example.org",
    true,
  ],
] as const)
  test(`a second hello with ${what} ${passes ? "goes through" : "is the end of the tunnel"}`, async () => {
    await using server = await stub((socket) =>
      socket.once("data", () => {
        socket.write(retry.subarray(0, 12));
        socket.write(retry.subarray(12));
      }),
    );
    await using way = await egress(server.port, { grants: GRANTS });
    const { client } = await connected(way.proxy.socket, "example.org:443");
    client.write(HELLO);
    let came = Buffer.alloc(0);
    client.on("data", (chunk: Buffer) => (came = Buffer.concat([came, chunk])));
    for (; came.length < retry.length;) await sleep(5);
    const second = await clientHello(servername === undefined ? {} : { servername });
    const changed = Buffer.from("140303000101", "hex");
    client.write(Buffer.concat([changed, second.subarray(0, 40)]));
    await sleep(10);
    client.write(second.subarray(40));
    const whole = HELLO.toString("latin1") + changed.toString("latin1") + second.toString("latin1");
    if (passes) for (; server.came().length < whole.length;) await sleep(5);
    else await once(client, "end");
    assert.equal(server.came() === whole, passes);
    if (!passes) assert.equal(server.came(), HELLO.toString("latin1"), "nothing of it is passed on");
    const rules = way.proxy.ledger().connections.map(({ verdict, rule }) => `${verdict} ${rule}`);
    assert.equal(rules.filter((each) => each === "denied sni").length, passes ? 0 : 1, rules.join());
    client.destroy();
  });

test("a client that is cut off ends the host's connection", async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  await using server = await stub((socket) => {
    socket.once("data", () => socket.write("x".repeat(2 ** 20)));
    socket.once("close", () => leave());
  });
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(HELLO);
  await once(client, "data");
  client.destroy();
  await left;
});

test("a tunnel in which nothing moves is closed, one in which something does is not", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS, limits: { idleMs: 600 } });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.on("data", () => undefined).write(HELLO);
  // Longer in all than it may stand still; each pause is a small part of that, also on a busy machine.
  for (let round = 0; round < 14; round += 1) {
    await sleep(50);
    client.write("still here");
  }
  assert.equal(way.told.length, 0);
  await once(client, "end");
  for (; way.told.length === 0;) await sleep(5);
  assert.deepEqual([way.told[0]?.verdict, way.told[0]?.rule], ["allowed", "idle"]);
});

test("bytes of tunnels are held to the run's budget", async () => {
  await using server = await stub((socket) => socket.once("data", () => socket.write(Buffer.alloc(100_000))));
  await using way = await egress(server.port, { grants: GRANTS, limits: { bytesDown: 50_000 } });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  let came = 0;
  client.on("data", (chunk: Buffer) => (came += chunk.length)).write(HELLO);
  await once(client, "end");
  assert.ok(came <= 50_000);
  assert.match(
    await exchange(way.proxy.socket, CONNECT),
    /^HTTP\/1\.1 403 [^]*received more than the 50000 bytes/,
  );
  assert.deepEqual(
    way.told.map(({ verdict, rule }) => [verdict, rule]),
    [
      ["denied", "budget"],
      ["denied", "budget"],
    ],
  );
});

test("a side that does not read holds up the other", async () => {
  await using server = await stub((socket) => {
    socket.once("data", () => socket.write(Buffer.alloc(2 ** 26)));
  });
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(HELLO);
  client.pause();
  let before = -1;
  for (let passed = 0; passed !== before; passed = way.proxy.ledger().connections[0]?.down ?? 0) {
    before = passed;
    await sleep(60);
  }
  assert.ok(before < 2 ** 24, `${before} bytes were taken for nobody`);
  client.destroy();
});

test("a thousand tunnels are open at a time, and no more than there may be", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS, limits: { connections: 1000 } });
  const tunnels: Socket[] = [];
  const opened = async (): Promise<void> => {
    const { client } = await connected(way.proxy.socket, "example.org:443");
    client.write(HELLO);
    await once(client, "data");
    tunnels.push(client);
  };
  for (; tunnels.length < 1000;) await Promise.all(Array.from({ length: 100 }, opened));
  assert.equal(server.connections(), 1000);
  assert.equal(await exchange(way.proxy.socket, CONNECT), "");
  assert.equal(way.told.at(-1)?.rule, "connections");
  for (const client of tunnels.slice(0, 500)) client.write("again");
  await Promise.all(tunnels.slice(0, 500).map((client) => once(client, "data")));
  for (const client of tunnels) client.destroy();
  for (; way.told.length < 1001;) await sleep(5);
  assert.equal(way.told.filter(({ verdict }) => verdict === "allowed").length, 1000);
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.destroy();
});

test("the end of the proxy ends its tunnels, and their lines are written", async () => {
  await using server = await stub(echo);
  const way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(HELLO);
  await once(client, "data");
  assert.equal(way.proxy.ledger().connections[0]?.down, HELLO.length);
  await way[Symbol.asyncDispose]();
  assert.deepEqual(
    way.told.map(({ host, up, down }) => [host, up, down]),
    [["example.org", HELLO.length, HELLO.length]],
  );
  client.destroy();
});
