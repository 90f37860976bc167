// also slow: a thousand tunnels; the bridge's own test has them, too
import assert from "node:assert/strict";
import test from "node:test";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, createServer, type TLSSocket } from "node:tls";
import {
  judgeHello,
  MAX_HELLO_LENGTH,
  MAX_RECORDS,
  readClientHello,
} from "../../../src/docker/egress/tunnel.ts";
import { clientHello, connected, egress, exchange, granted, stub } from "../../fixtures/egress.ts";
import { fc } from "../../fixtures/property.ts";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const HELLO = await clientHello({ servername: "Example.ORG" });
const MESSAGE = HELLO.subarray(5);

/** The message in records of these sizes; the last has the rest. */
function records(message: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, message.length]) {
    const part = message.subarray(at, at + size);
    if (part.length > 0) parts.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
    at += size;
  }
  return Buffer.concat(parts);
}

const vector = (size: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(size);
  head.writeUIntBE(body.length, 0, size);
  return Buffer.concat([head, body]);
};
const extension = (type: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([type >> 8, type & 255]), vector(2, body)]);
const named = (...names: readonly string[]): Buffer =>
  extension(
    0,
    vector(
      2,
      Buffer.concat(names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))]))),
    ),
  );

/** A hello with these extensions; null has no list of such at all. */
function made(extensions: readonly Buffer[] | null): Buffer {
  const body = Buffer.concat([
    Buffer.alloc(34),
    vector(1, Buffer.alloc(32)),
    vector(2, Buffer.from([19, 1])),
    vector(1, Buffer.from([0])),
    ...(extensions === null ? [] : [vector(2, Buffer.concat(extensions))]),
  ]);
  return records(Buffer.concat([Buffer.from([1]), vector(3, body)]), []);
}

/** The name, or the rule that speaks against it. */
function read(bytes: Buffer): string | null {
  const found = readClientHello(bytes);
  return found.kind === "hello"
    ? found.serverName
    : found.kind === "denied"
      ? `! ${found.denial.rule}`
      : "more";
}

test("the server name of a client hello is read and normalised", () => {
  assert.equal(read(HELLO), "example.org");
  assert.equal(read(made([named("Example.Org.")])), "example.org");
  assert.equal(read(made([])), null);
  assert.equal(read(made(null)), null);
});

test("a client hello split into records anywhere is read as a whole, and an incomplete one asks for more", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 6 }), (sizes) => {
      const bytes = records(MESSAGE, sizes);
      assert.equal(read(bytes), "example.org");
      for (let length = 0; length < bytes.length; length += 7)
        assert.equal(read(bytes.subarray(0, length)), "more");
    }),
    { numRuns: 50 },
  );
});

for (const [what, bytes, expected] of [
  ["two names in one list", made([named("example.org", "other.test")]), "! sni"],
  ["two lists of names", made([named("example.org"), named("other.test")]), "! sni"],
  ["an empty name", made([named("")]), "! not-tls"],
  ["an empty list", made([extension(0, vector(2, Buffer.alloc(0)))]), "! not-tls"],
  [
    "a name of another kind",
    made([extension(0, vector(2, Buffer.concat([Buffer.from([1]), vector(2, Buffer.from("a"))])))]),
    "! not-tls",
  ],
  ["an extension twice", made([extension(10, Buffer.alloc(2)), extension(10, Buffer.alloc(2))]), "! not-tls"],
  ["inconsistent lengths", made([extension(0, Buffer.from([0, 200, 0]))]), "! not-tls"],
  ["an invalid record", Buffer.from("GET / HTTP/1.1\r\n"), "! not-tls"],
  ["a data record", Buffer.from([23, 3, 3, 0, 1, 0]), "! not-tls"],
  ["another message first", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), "! not-tls"],
  ["an old version's hello", Buffer.from([0x80, 0x2e, 1, 3, 1]), "! not-tls"],
  ["an empty record", Buffer.from([22, 3, 1, 0, 0]), "! not-tls"],
  ["a message of megabytes", Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255]), "! sni"],
  [
    "another record in between",
    Buffer.concat([records(MESSAGE, []).subarray(0, 5), MESSAGE.subarray(0, 20)]),
    "more",
  ],
] as const)
  test(`a client hello with ${what} is ${expected}`, () => {
    assert.equal(read(bytes), expected);
  });

test("a client hello that does not end is refused before it gets long", () => {
  const bytes = records(
    Buffer.concat([Buffer.from([1, 0, 0x3f, 0xff]), Buffer.alloc(MAX_HELLO_LENGTH - 100)]),
    [5000, 5000],
  );
  assert.equal(read(bytes), "more");
  assert.equal(read(Buffer.concat([bytes, Buffer.from([22, 3, 1, 0x3f, 0]), Buffer.alloc(80)])), "! sni");
});

const pieces = (count: number): Buffer => records(MESSAGE, Array<number>(count - 1).fill(1));

test("a client hello in too many records is refused, however short they are", () => {
  assert.equal(read(pieces(MAX_RECORDS)), "example.org");
  assert.equal(read(pieces(MAX_RECORDS + 1)), "! not-tls");
});

test("any bytes are parsed without an exception", () => {
  const changed = fc
    .tuple(fc.nat(HELLO.length - 1), fc.nat(255), fc.nat(HELLO.length))
    .map(([at, byte, length]) => {
      const bytes = Buffer.from(HELLO);
      bytes[at] = byte;
      return bytes.subarray(0, length);
    });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), changed), (bytes) => {
      assert.notEqual(read(Buffer.from(bytes)), undefined);
    }),
    { numRuns: 1000 },
  );
});

function rule(bytes: Buffer, host: string, literal = false): string {
  const found = readClientHello(bytes);
  assert.equal(found.kind, "hello");
  return judgeHello(found, host, literal)?.rule ?? "";
}

test("the server name must be the tunnel's, and an encrypted hello cannot hide another", () => {
  const encrypted = extension(0xfe_0d, Buffer.alloc(40));
  assert.equal(rule(HELLO, "example.org"), "");
  assert.equal(rule(HELLO, "a.example.org"), "sni");
  assert.equal(rule(made([]), "example.org"), "sni");
  assert.equal(rule(made([]), "10.0.0.1", true), "");
  assert.equal(rule(made([named("10.0.0.1")]), "10.0.0.1", true), "sni");
  assert.equal(rule(made([named("example.org"), encrypted]), "example.org"), "");
  assert.equal(rule(made([named("front.test"), encrypted]), "example.org"), "sni");
});

const GRANTS = [granted("example.org")];
const WHOLE_HELLO = await clientHello({ servername: "example.org" });
const CONNECT = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";

const echo = (socket: Socket): void => void socket.pipe(socket);

test("a client hello sent with the CONNECT is read, and one split over packets and records", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const cut = Buffer.concat([
    Buffer.from([22, 3, 1, 0, 40]),
    WHOLE_HELLO.subarray(5, 45),
    Buffer.from([22, 3, 1, (WHOLE_HELLO.length - 45) >> 8, (WHOLE_HELLO.length - 45) & 255]),
  ]);
  client.write(cut);
  await sleep(10);
  assert.equal(server.came(), "");
  client.write(WHOLE_HELLO.subarray(45));
  await once(client, "data");
  assert.equal(server.came(), Buffer.concat([cut, WHOLE_HELLO.subarray(45)]).toString("latin1"));
  client.destroy();
  await using other = await stub((socket) => socket.once("data", () => socket.end("bye")));
  await using second = await egress(other.port, { grants: GRANTS });
  assert.match(
    await exchange(second.proxy.socket, Buffer.concat([Buffer.from(CONNECT), WHOLE_HELLO])),
    /200 [^]*bye$/,
  );
});

test("a client that is silent or leaves is not waited for", async () => {
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

test("a granted address is reached by TLS without a server name", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: [granted("9.9.9.9")] });
  const { client } = await connected(way.proxy.socket, "0x9.9.9.9:443");
  client.write(await clientHello({}));
  await once(client, "data");
  assert.deepEqual([way.resolved, way.dialled], [[], ["9.9.9.9:443"]]);
  client.destroy();
});

test("when one side ends its direction the other may still send", async () => {
  await using server = await stub((socket) => socket.resume().on("end", () => socket.end("the rest")));
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.end(WHOLE_HELLO);
  assert.equal(String((await once(client, "data"))[0]), "the rest");
  for (; way.told.length === 0;) await sleep(5);
  assert.deepEqual(
    [way.told[0]?.up, way.told[0]?.down, way.told[0]?.rule],
    [WHOLE_HELLO.length, 8, "granted"],
  );
});

test("a server that asks for a second client hello gets it", async () => {
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
  test(`a second client hello with ${what} ${passes ? "goes through" : "is the end of the tunnel"}`, async () => {
    await using server = await stub((socket) =>
      socket.once("data", () => {
        socket.write(retry.subarray(0, 12));
        socket.write(retry.subarray(12));
      }),
    );
    await using way = await egress(server.port, { grants: GRANTS });
    const { client } = await connected(way.proxy.socket, "example.org:443");
    client.write(WHOLE_HELLO);
    let came = Buffer.alloc(0);
    client.on("data", (chunk: Buffer) => (came = Buffer.concat([came, chunk])));
    for (; came.length < retry.length;) await sleep(5);
    const second = await clientHello(servername === undefined ? {} : { servername });
    const changed = Buffer.from("140303000101", "hex");
    client.write(Buffer.concat([changed, second.subarray(0, 40)]));
    await sleep(10);
    client.write(second.subarray(40));
    const whole = WHOLE_HELLO.toString("latin1") + changed.toString("latin1") + second.toString("latin1");
    if (passes) for (; server.came().length < whole.length;) await sleep(5);
    else await once(client, "end");
    assert.equal(server.came() === whole, passes);
    if (!passes) assert.equal(server.came(), WHOLE_HELLO.toString("latin1"), "nothing of it is passed on");
    const rules = way.proxy.ledger().connections.map(({ verdict, rule }) => `${verdict} ${rule}`);
    assert.equal(rules.filter((each) => each === "denied sni").length, passes ? 0 : 1, rules.join());
    client.destroy();
  });

test("a second client hello that is sent before it is requested is judged, too", async () => {
  for (const [servername, passes] of [
    ["example.org", true],
    ["other.example.org", false],
  ] as const) {
    await using server = await stub((socket) => socket.once("data", () => socket.write(RETRY)));
    await using way = await egress(server.port, { grants: GRANTS });
    const { client } = await connected(way.proxy.socket, "example.org:443");
    const second = await clientHello({ servername });
    client.write(Buffer.concat([WHOLE_HELLO, second]));
    const whole = WHOLE_HELLO.toString("latin1") + second.toString("latin1");
    if (passes) for (; server.came().length < whole.length;) await sleep(5);
    else await once(client.resume(), "end");
    assert.equal(server.came(), passes ? whole : WHOLE_HELLO.toString("latin1"));
    client.destroy();
  }
});

test("early data follows the hello once the server has answered, however much it is", async () => {
  const early = Buffer.concat([Buffer.from("1703032000", "hex"), Buffer.alloc(0x2000, "early")]);
  const all = Buffer.concat([WHOLE_HELLO, ...Array.from({ length: 100 }, () => early)]).toString("latin1");
  const NO_RETRY = Buffer.concat([RETRY.subarray(0, 20), Buffer.alloc(31)]);
  await using server = await stub((socket) => socket.once("data", () => socket.write(NO_RETRY)));
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.resume().write(all, "latin1");
  for (; server.came().length < all.length;) await sleep(5);
  assert.ok(server.came() === all);
  client.destroy();
});

test("a message that shares a record with the client hello is refused", () => {
  const shared = Buffer.concat([MESSAGE, MESSAGE]);
  assert.equal(read(records(shared, [])), "! not-tls");
  assert.equal(read(records(shared, []).subarray(0, 5 + MESSAGE.length)), "! not-tls");
  assert.equal(read(records(shared, [MESSAGE.length])), "example.org", "the twin: a record of its own");
});

test("a client that disconnects ends the host's connection", async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  await using server = await stub((socket) => {
    socket.once("data", () => socket.write("x".repeat(2 ** 20)));
    socket.once("close", () => leave());
  });
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(WHOLE_HELLO);
  await once(client, "data");
  client.destroy();
  await left;
});

test("an idle tunnel is closed, an active one is not", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS, limits: { idleMs: 600 } });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.on("data", () => undefined).write(WHOLE_HELLO);
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

test("bytes of tunnels count against the run's budget", async () => {
  await using server = await stub((socket) => socket.once("data", () => socket.write(Buffer.alloc(100_000))));
  await using way = await egress(server.port, { grants: GRANTS, limits: { bytesDown: 50_000 } });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  let came = 0;
  client.on("data", (chunk: Buffer) => (came += chunk.length)).write(WHOLE_HELLO);
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

test("a side that does not read slows down the other", async () => {
  await using server = await stub((socket) => {
    socket.once("data", () => socket.write(Buffer.alloc(2 ** 26)));
  });
  await using way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(WHOLE_HELLO);
  client.pause();
  let before = -1;
  for (let passed = 0; passed !== before; passed = way.proxy.ledger().connections[0]?.down ?? 0) {
    before = passed;
    await sleep(60);
  }
  assert.ok(before < 2 ** 24, `${before} bytes were taken for nobody`);
  client.destroy();
});

slowTest("a thousand tunnels can be open at a time, and no more than the limit", async () => {
  await using server = await stub(echo);
  await using way = await egress(server.port, { grants: GRANTS, limits: { connections: 1000 } });
  const tunnels: Socket[] = [];
  const opened = async (): Promise<void> => {
    const { client } = await connected(way.proxy.socket, "example.org:443");
    client.write(WHOLE_HELLO);
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

test("closing the proxy ends its tunnels and writes their ledger lines", async () => {
  await using server = await stub(echo);
  const way = await egress(server.port, { grants: GRANTS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(WHOLE_HELLO);
  await once(client, "data");
  assert.equal(way.proxy.ledger().connections[0]?.down, WHOLE_HELLO.length);
  await way[Symbol.asyncDispose]();
  assert.deepEqual(
    way.told.map(({ host, up, down }) => [host, up, down]),
    [["example.org", WHOLE_HELLO.length, WHOLE_HELLO.length]],
  );
  client.destroy();
});
