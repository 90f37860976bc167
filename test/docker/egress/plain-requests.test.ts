import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, type Socket } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { MAX_WAITING } from "../../../src/docker/egress/forward-request.ts";
import { answering, egress, exchange, granted, httpAnswer, PUBLIC, stub } from "../../fixtures/egress.ts";

const GRANTS = [granted("example.org")];
const ANSWER = httpAnswer("hello", "Connection: close\r\n");
const request = (head: string, body = ""): string => `${head.replaceAll("\n", "\r\n")}\r\n\r\n${body}`;
const PLAIN = "GET http://example.org/ HTTP/1.1\nHost: example.org";

/** What the client got, what the host got, and the rules of the ledger. */
async function sent(
  ...pieces: readonly string[]
): Promise<readonly [answer: string, came: string, rules: string]> {
  await using server = await stub(answering(ANSWER));
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(way.proxy.socket, ...pieces);
  const rules = way.proxy.ledger().connections.map(({ rule }) => rule);
  return [answer, server.came(), rules.join(" ")];
}

for (const [what, head] of [
  ["as it is", PLAIN],
  ["in capitals", "GET HTTP://EXAMPLE.ORG/ HTTP/1.1\nHost: Example.Org"],
  ["with a trailing dot", "GET http://example.org./ HTTP/1.1\nHost: example.org"],
  ["with its port", "GET http://example.org:80/ HTTP/1.1\nHost: example.org"],
  ["by HTTP/1.0 without a Host", "GET http://example.org/ HTTP/1.0"],
  ["without a path", "GET http://example.org HTTP/1.1\nHost: example.org"],
] as const)
  test(`a granted host requested ${what} gets the same normalised request`, async () => {
    const [answer, came, rules] = await sent(request(`${head}\nConnection: close`));
    assert.match(answer, /^HTTP\/1\.1 200 [^]*hello$/);
    assert.match(came, /^GET \/ HTTP\/1\.1\r\nHost: example\.org\r\n/);
    assert.equal(rules, "granted");
  });

for (const [what, head, rule] of [
  [
    "another name behind userinfo",
    "GET http://example.org@other.test/ HTTP/1.1\nHost: example.org",
    "authority",
  ],
  ["userinfo", "GET http://a:b@example.org/ HTTP/1.1\nHost: example.org", "authority"],
  ["a percent sign in the name", "GET http://example%2eorg/ HTTP/1.1\nHost: example.org", "authority"],
  [
    "a name with the granted host as its beginning",
    "GET http://example.org.other.test/ HTTP/1.1\nHost: example.org",
    "not-granted",
  ],
  [
    "a name with the granted host as its end",
    "GET http://notexample.org/ HTTP/1.1\nHost: example.org",
    "not-granted",
  ],
  ["loopback in octal", "GET http://0177.0.0.1/ HTTP/1.1\nHost: example.org", "address-literal"],
  ["another port", "GET http://example.org:8080/ HTTP/1.1\nHost: example.org:8080", "port"],
  ["another Host", "GET http://example.org/ HTTP/1.1\nHost: other.test", "host"],
  ["two Hosts", "GET http://example.org/ HTTP/1.1\nHost: example.org\nHost: other.test", "host"],
  ["the same Host twice", "GET http://example.org/ HTTP/1.1\nHost: example.org\nHost: example.org", "host"],
  ["a Host with another port", "GET http://example.org/ HTTP/1.1\nHost: example.org:8080", "host"],
  ["a path alone", "GET / HTTP/1.1\nHost: example.org", "authority"],
  ["https without a tunnel", "GET https://example.org/ HTTP/1.1\nHost: example.org", "authority"],
  ["another scheme", "GET ftp://example.org/ HTTP/1.1\nHost: example.org", "authority"],
  ["the method TRACE", "TRACE http://example.org/ HTTP/1.1\nHost: example.org", "method"],
  [
    "an ambiguous transfer coding",
    "POST http://example.org/ HTTP/1.1\nHost: example.org\nTransfer-Encoding: gzip, chunked\n\n0",
    "malformed",
  ],
] as const)
  test(`a request with ${what} is refused and not forwarded`, async () => {
    const [answer, came, rules] = await sent(request(head));
    assert.match(answer, /^HTTP\/1\.1 403 [^]*\r\nConnection: close\r\n[^]*harness: /i);
    assert.deepEqual([came, rules], ["", rule]);
  });

const POST = "POST http://example.org/ HTTP/1.1\nHost: example.org";

for (const [what, text] of [
  ["a length and chunks", request(`${POST}\nContent-Length: 5\nTransfer-Encoding: chunked`, "0\r\n\r\n")],
  ["chunks and a length", request(`${POST}\nTransfer-Encoding: chunked\nContent-Length: 5`, "0\r\n\r\n")],
  ["two lengths", request(`${POST}\nContent-Length: 5\nContent-Length: 6`, "hello")],
  ["a length that is a list", request(`${POST}\nContent-Length: 5, 5`, "hello")],
  ["a length with a sign", request(`${POST}\nContent-Length: +5`, "hello")],
  ["a folded header", request(`${POST}\nX-A: b\n c: d\nContent-Length: 0`)],
  ["a blank before the colon", request(`${POST}\nContent-Length : 5`, "hello")],
  ["a header without a colon", request(`${POST}\nContent-Length`)],
  ["a NUL in a header", request(`${POST}\nX-A: b\0c`)],
  ["a NUL in the host", request("GET http://example.org\0.other.test/ HTTP/1.1\nHost: example.org")],
  ["a blank in the host", request("GET http://exam ple.org/ HTTP/1.1\nHost: example.org")],
  ["lines that end in LF only", "GET http://example.org/ HTTP/1.1\nHost: example.org\n\n"],
  ["an invalid version", request("GET http://example.org/ HTTP/9.9\nHost: example.org")],
  ["more headers than fit", request(`${PLAIN}\n${`X-A: ${"b".repeat(1000)}\n`.repeat(40)}X-B: c`)],
  ["bytes that are not HTTP", "\x16\x03\x01\0\x05hello"],
] as const)
  test(`a request with ${what} cannot be parsed and is not forwarded`, async () => {
    const [answer, came, rules] = await sent(text);
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.deepEqual([came, rules], ["", "malformed"]);
  });

test("invalid chunks also end the request to the host", async () => {
  await using server = await stub(() => undefined);
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(
    way.proxy.socket,
    request(`${POST}\nTransfer-Encoding: chunked`, "5\r\nhello\r\n"),
    "zz\r\nGET http://example.org/second HTTP/1.1\r\nHost: example.org\r\n\r\n",
  );
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.doesNotMatch(server.came(), /second|\r\n0\r\n\r\n/);
});

test("a second request on the same connection is judged separately", async () => {
  await using server = await stub((socket) => socket.on("data", () => socket.write(httpAnswer("hello"))));
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(
    way.proxy.socket,
    request("GET http://example.org/1 HTTP/1.1\nHost: example.org") +
      request("GET http://example.org/2 HTTP/1.1\nHost: example.org") +
      request("GET http://other.test/3 HTTP/1.1\nHost: example.org") +
      request("GET http://example.org/4 HTTP/1.1\nHost: example.org"),
  );
  assert.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 403"]);
  assert.deepEqual(server.came().match(/GET \S+/g), ["GET /1", "GET /2"]);
  assert.equal(server.connections(), 2);
});

test("a body is framed again and carries nothing after its end", async () => {
  const [, came] = await sent(
    request(
      `${POST}\nConnection: close\nTransfer-Encoding: chunked`,
      "5;x=y\r\nhello\r\n0\r\nX-Trailer: a\r\n\r\n",
    ),
  );
  assert.match(came, /\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/);
  assert.doesNotMatch(came, /X-Trailer|x=y/);
});

test("connection headers and method overrides are not forwarded", async () => {
  const [, came] = await sent(
    request(
      `${PLAIN}\nProxy-Authorization: Basic abc\nProxy-Connection: keep-alive\nTE: trailers\nUpgrade: websocket\nX-Named: a\nX-HTTP-Method-Override: DELETE\nX-Stays: b\nConnection: X-Named, close, upgrade`,
    ),
  );
  assert.match(came, /\r\nX-Stays: b\r\n/);
  assert.doesNotMatch(came, /proxy|trailers|websocket|named|override/i);
});

test("a name that resolves differently the second time is judged again", async () => {
  await using server = await stub(answering(ANSWER));
  const answers = [[PUBLIC], ["127.0.0.1"]];
  await using way = await egress(server.port, {
    grants: GRANTS,
    resolve: () => Promise.resolve(answers.shift() ?? []),
  });
  assert.match(await exchange(way.proxy.socket, request(`${PLAIN}\nConnection: close`)), /hello$/);
  assert.match(
    await exchange(way.proxy.socket, request(PLAIN)),
    /^HTTP\/1\.1 403 [^]*leads to this host itself/,
  );
  assert.deepEqual([way.resolved.length, way.dialled], [2, [`${PUBLIC}:80`]]);
});

test("a redirect is left to the program and judged when it follows", async () => {
  await using server = await stub(
    answering(
      "HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
  );
  await using way = await egress(server.port, { grants: GRANTS });
  assert.match(
    await exchange(way.proxy.socket, request(`${PLAIN}\nConnection: close`)),
    /302 [^]*http:\/\/other\.test\//,
  );
  assert.match(
    await exchange(way.proxy.socket, request("GET http://other.test/ HTTP/1.1\nHost: other.test")),
    /^HTTP\/1\.1 403 /,
  );
  assert.deepEqual(way.resolved, ["example.org"]);
});

test("a name without an address and a host that does not answer are failures, not denials", async () => {
  await using way = await egress(1, {
    grants: [...GRANTS, granted("gone.test")],
    resolve: (host) =>
      host === "gone.test" ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve([PUBLIC]),
  });
  assert.match(
    await exchange(way.proxy.socket, request("GET http://gone.test/ HTTP/1.1\nHost: gone.test")),
    /^HTTP\/1\.1 502 [^]*ENOTFOUND/,
  );
  assert.match(await exchange(way.proxy.socket, request(PLAIN)), /^HTTP\/1\.1 502 [^]*ECONNREFUSED/);
  assert.deepEqual(
    way.told.map(({ verdict, rule }) => [verdict, rule]),
    [
      ["allowed", "unreachable"],
      ["allowed", "unreachable"],
    ],
  );
});

for (const headers of ["Upgrade: own\r\nConnection: Upgrade\r\n", ""])
  test(`a host that changes the protocol ${headers === "" ? "without a word" : "as asked"} is a failure`, async () => {
    await using server = await stub(answering(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\nhello`));
    await using way = await egress(server.port, { grants: GRANTS });
    const answer = await exchange(way.proxy.socket, request(`${PLAIN}\nConnection: Upgrade\nUpgrade: own`));
    assert.match(answer, /^HTTP\/1\.1 502 [^]*another protocol\n$/);
  });

const MUCH = "x".repeat(8 * 2 ** 20);

test("an answer comes before the whole request was sent", async () => {
  const early = httpAnswer("too much").replace("200 OK", "413 Too Much");
  // This host reads nothing more, and does not close the connection either.
  await using server = await stub((socket) =>
    socket.once("data", () => {
      socket.pause();
      socket.write(early);
    }),
  );
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(
    way.proxy.socket,
    request(`${POST}\nContent-Length: ${MUCH.length}`, MUCH),
    request(`${PLAIN}\nConnection: close`),
  );
  assert.match(answer, /^HTTP\/1\.1 413 [^]*too muchHTTP\/1\.1 413 [^]*too much$/);
});

for (const [what, host, expected] of [
  ["denial", "other.test", /^HTTP\/1\.1 403 [^]*other\.test is not granted/],
  ["host's answer", "example.org", /^HTTP\/1\.1 200 [^]*hello$/],
] as const)
  test(`the ${what} that ends a connection comes after everything that the client sends was read`, async () => {
    await using server = await stub((socket) => socket.once("data", () => socket.pause().write(ANSWER)));
    await using way = await egress(server.port, { grants: GRANTS });
    const client = connect({ path: way.proxy.socket });
    client.on("error", () => undefined).pause();
    client.write(
      request(`${POST.replaceAll("example.org", host)}\nConnection: close\nContent-Length: ${MUCH.length}`),
    );
    const read = new Promise((resolve) => client.write(MUCH, (thrown) => resolve(thrown ?? "read")));
    assert.equal(await Promise.race([read, once(client, "close")]), "read");
    const answer = (await client.toArray()).join("");
    assert.match(answer, expected);
  });

test("a host may answer while it is still sent the request", async () => {
  const echo = createHttpServer((came, answer) => void came.pipe(answer));
  await using server = await stub((socket) => void echo.emit("connection", socket));
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(
    way.proxy.socket,
    request(`${POST}\nConnection: close\nContent-Length: ${MUCH.length}`, MUCH),
  );
  assert.equal(answer.match(/x/g)?.length, MUCH.length);
});

test("an unreadable answer is a failure", async () => {
  await using server = await stub(
    answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello"),
  );
  await using way = await egress(server.port, { grants: GRANTS });
  assert.match(await exchange(way.proxy.socket, request(PLAIN)), /^HTTP\/1\.1 502 /);
});

test("an interrupted answer is cut off and not ended regularly", async () => {
  await using server = await stub((socket) =>
    socket.once("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", () => socket.destroy()),
    ),
  );
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(way.proxy.socket, request(PLAIN));
  assert.match(answer, /Content-Length: 50\r\n[^]*hello$/);
});

test("a client that disconnects ends the request to the host", async () => {
  await using server = await stub(() => undefined);
  await using way = await egress(server.port, { grants: GRANTS });
  const client = connect(way.proxy.socket);
  client.write(request(PLAIN));
  for (; server.came() === "";) await sleep(5);
  client.destroy();
  for (; way.told.length === 0;) await sleep(5);
  assert.equal(way.told[0]?.rule, "unreachable");
});

test("a host that does not read slows the client down", async () => {
  await using server = await stub((socket) => socket.pause());
  await using way = await egress(server.port, { grants: GRANTS });
  const client = connect(way.proxy.socket);
  client.on("error", () => undefined);
  const length = 2 ** 26;
  client.write(request(`${POST}\nContent-Length: ${length}`));
  client.write(Buffer.alloc(length));
  // The proxy has met it, and no more is taken from one look to the next.
  for (let before = -1; client.writableLength !== before || way.proxy.ledger().connections.length === 0;) {
    before = client.writableLength;
    await sleep(60);
  }
  assert.ok(client.writableLength > 0, "all of it was taken");
  assert.ok((way.proxy.ledger().connections[0]?.up ?? length) < 2 ** 24);
  client.destroy();
});

test("bytes sent and received count against the run's budget", async () => {
  await using server = await stub(answering(httpAnswer("x".repeat(5000), "Connection: close\r\n")));
  await using way = await egress(server.port, { grants: GRANTS, limits: { bytesUp: 3000, bytesDown: 7000 } });
  const ask = (): Promise<string> => exchange(way.proxy.socket, request(`${PLAIN}\nConnection: close`));
  assert.match(await ask(), /^HTTP\/1\.1 200 [^]*x{5000}$/);
  assert.doesNotMatch(await ask(), /x{5000}/);
  assert.match(await ask(), /^HTTP\/1\.1 403 [^]*more than the 7000 bytes/);
  assert.equal(server.connections(), 2);
  await using other = await egress(server.port, { grants: GRANTS, limits: { bytesUp: 3000 } });
  const upload = await exchange(
    other.proxy.socket,
    request(`${POST}\nContent-Length: 4000`, "y".repeat(4000)),
  );
  assert.match(upload, /^HTTP\/1\.1 403 [^]*sent more than the 3000 bytes/);
  assert.deepEqual(
    other.told.map(({ verdict, rule }) => [verdict, rule]),
    [["denied", "budget"]],
  );
});

test("an unused connection or one that breaks off inside a head is not a denial", async () => {
  await using way = await egress(1, { grants: GRANTS, limits: { headMs: 20 } });
  for (const text of ["", "GET http://exam"]) {
    const client = connect(way.proxy.socket);
    client.on("error", () => undefined).end(text);
    await once(client.resume(), "close");
  }
  assert.deepEqual(way.told, []);
});

test("a silent host is given up, and so is a silent client", async () => {
  await using server = await stub(() => undefined);
  await using way = await egress(server.port, { grants: GRANTS, limits: { idleMs: 40, headMs: 40 } });
  assert.match(
    await exchange(way.proxy.socket, request(PLAIN)),
    /^HTTP\/1\.1 502 [^]*nothing came for 0\.04 s/,
  );
});

test("the number of pipelined requests is limited", async () => {
  await using server = await stub(() => undefined);
  await using way = await egress(server.port, { grants: GRANTS });
  const many = async (count: number): Promise<Socket> => {
    const client = connect(way.proxy.socket);
    client.on("error", () => undefined);
    client.write(request(PLAIN).repeat(count));
    for (; !client.destroyed && way.dialled.length === 0;) await sleep(5);
    return client;
  };
  const patient = await many(MAX_WAITING);
  assert.deepEqual([patient.destroyed, way.told.length], [false, 0]);
  patient.destroy();
  const flood = await many(MAX_WAITING + 50);
  if (!flood.destroyed) await once(flood, "close");
  for (; way.told.length < 2;) await sleep(5);
  const rules = way.told
    .map(({ verdict, rule }) => `${verdict} ${rule}`)
    .filter((each) => each.startsWith("denied"));
  assert.deepEqual(rules, ["denied connections"]);
});

test("a flood of denials uses up no connections, and the ledger stays bounded", async () => {
  await using server = await stub(answering(ANSWER));
  await using way = await egress(server.port, { grants: GRANTS });
  for (let round = 0; round < 15; round += 1)
    await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        exchange(way.proxy.socket, `CONNECT h${at}.test:443 HTTP/1.1\r\n\r\n`),
      ),
    );
  const { connections, dropped } = way.proxy.ledger();
  assert.deepEqual([connections.length, dropped], [600, 0]);
  assert.equal(way.told.length, 500);
  assert.match(await exchange(way.proxy.socket, request(`${PLAIN}\nConnection: close`)), /hello$/);
  assert.equal(server.connections(), 1);
});
