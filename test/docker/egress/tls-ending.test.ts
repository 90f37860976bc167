import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, createServer, type TLSSocket } from "node:tls";
import { gunzipSync, gzipSync } from "node:zlib";
import { READING, type SecretBinding } from "../../../src/core/network.ts";
import type { EgressOptions } from "../../../src/docker/egress/egress-proxy.ts";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { connected, type Egress, egress, exchange, granted, type Stub, stub } from "../../fixtures/egress.ts";

const WORLD = makeSessionAuthority();
const READS = [granted("example.org", { methods: READING })];

/** A server of the world's that is `host` by TLS. */
function secure(listener: RequestListener, host = "example.org"): Promise<Stub> {
  const http = createHttpServer({ keepAliveTimeout: 0 }, listener);
  const server = createServer({
    ALPNProtocols: ["http/1.1"],
    SNICallback: (_, give) => give(null, WORLD.contextFor(host)),
  });
  server.on(
    "secureConnection",
    (socket: TLSSocket) =>
      void http.emit(
        "connection",
        socket.on("error", () => undefined),
      ),
  );
  return stub(() => undefined, server);
}

const open = (port: number, options: Partial<EgressOptions>): Promise<Egress> =>
  egress(port, { roots: WORLD.pem, ...options });

/** A program's TLS connection through the tunnel. */
async function inTunnel(way: Egress): Promise<TLSSocket> {
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const tls = connect({ socket: client, servername: "example.org", ca: way.proxy.authority ?? "" });
  tls.on("error", () => undefined);
  await once(tls, "secureConnect");
  return tls;
}

const ended = (tls: TLSSocket): Promise<void> =>
  new Promise(
    (resolve) =>
      void tls
        .resume()
        .once("end", resolve)
        .once("close", () => resolve()),
  );

/** What a program in the box says through the tunnel and gets back; it trusts the session's authority. */
async function through(way: Egress, text: string, host = "example.org"): Promise<string> {
  const { client, head } = await connected(way.proxy.socket, `${host}:443`);
  if (!head.startsWith("HTTP/1.1 200")) return head;
  const tls = connect({
    socket: client,
    servername: host,
    ca: way.proxy.authority ?? "",
    ALPNProtocols: ["h2", "http/1.1"],
  });
  const chunks: Buffer[] = [];
  tls.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => undefined);
  tls.write(Buffer.from(text.replaceAll("\n", "\r\n"), "latin1"));
  await Promise.race([once(tls, "end"), once(tls, "close")]);
  tls.destroy();
  return Buffer.concat(chunks).toString("latin1");
}

const HEAD = "HTTP/1.1\nHost: example.org\nConnection: close";
const echo: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () =>
    response.end(
      JSON.stringify([request.method, request.url, request.rawHeaders, Buffer.concat(chunks).toString()]),
    ),
  );
};

test("the session's authority signs for one host at a time", async () => {
  const authority = makeSessionAuthority();
  const own = new X509Certificate(authority.pem);
  assert.ok(own.ca && own.verify(own.publicKey));
  for (const [host, name] of [
    ["example.org", "DNS:example.org"],
    ["10.1.2.3", "IP Address:10.1.2.3"],
    ["2001:db8::1", "IP Address:2001:DB8:0:0:0:0:0:1"],
  ] as const) {
    const server = createServer({ SNICallback: (_, give) => give(null, authority.contextFor(host)) });
    await using there = await stub(() => undefined, server);
    const client = connect({
      port: there.port,
      host: "127.0.0.1",
      servername: "any.test",
      ca: authority.pem,
      checkServerIdentity: () => undefined,
    });
    await once(client, "secureConnect");
    const leaf = client.getPeerX509Certificate();
    assert.ok(leaf?.checkIssued(own) === true && leaf.verify(own.publicKey) && !leaf.ca && client.authorized);
    assert.equal(leaf.subjectAltName, name);
    client.destroy();
  }
  assert.equal(authority.contextFor("example.org"), authority.contextFor("example.org"));
});

test("an authority exists only if some grant requires inspection", async () => {
  await using plain = await egress(1, { grants: [granted("example.org")] });
  assert.equal(plain.proxy.authority, null);
  plain.proxy.grant(READS);
  assert.match(plain.proxy.authority ?? "", /^-----BEGIN CERTIFICATE-----/);
  await using reads = await egress(1, { grants: READS });
  assert.notEqual(reads.proxy.authority, null);
});

test("a host granted for reading accepts GET and not PUT", async () => {
  await using server = await secure(echo);
  await using way = await open(server.port, { grants: READS });
  assert.match(
    await through(
      way,
      `GET /a?b HTTP/1.1\nHost: example.org\n\nPUT /c HTTP/1.1\nHost: example.org\nContent-Length: 5\n\nhello`,
    ),
    /200 OK[^]*\["GET","\/a\?b"[^]*HTTP\/1\.1 403 [^]*PUT is not granted for example\.org/,
  );
  assert.match(await through(way, `GET / ${HEAD}\nContent-Length: 5\n\nhello`), /403 [^]*a GET with a body/);
  assert.match(
    await through(
      way,
      `POST /p.git/git-upload-pack ${HEAD}\nContent-Type: application/x-git-upload-pack-request\nContent-Length: 4\n\n0000`,
    ),
    /200 OK/,
  );
  assert.match(
    await through(
      way,
      `POST /p.git/git-receive-pack ${HEAD}\nContent-Type: application/x-git-receive-pack-request\nContent-Length: 4\n\n0000`,
    ),
    /403 /,
  );
  for (; way.told.length < 5;) await sleep(5);
  assert.deepEqual(
    way.told.map(({ method, rule }) => `${method} ${rule}`),
    ["GET granted", "PUT method", "GET method", "POST granted", "POST method"],
  );
});

test("the Host header inside must be the tunnel's host", async () => {
  await using server = await secure(echo);
  await using way = await open(server.port, { grants: [...READS, granted("other.test")] });
  assert.match(
    await through(way, "GET / HTTP/1.1\nHost: other.test\nConnection: close\n\n"),
    /403 [^]*Host header/,
  );
  assert.match(
    await through(way, "GET http://other.test/ HTTP/1.1\nHost: example.org\nConnection: close\n\n"),
    /403 [^]*names a path/,
  );
  assert.match(await through(way, "GET / HTTP/1.1\nHost: example.org:443\nConnection: close\n\n"), /200 OK/);
  assert.equal(server.connections(), 1);
});

test("a request goes on only as long as the grant that allowed it", async () => {
  const came = Promise.withResolvers<void>();
  let whole = 0;
  await using server = await secure((request, response) => {
    request.on("data", () => came.resolve()).on("error", () => undefined);
    request.on("end", () => response.end(`whole ${(whole += 1)}`));
  });
  await using way = await open(server.port, { grants: READS });
  const client = await inTunnel(way);
  const withdraw = way.proxy.grant([granted("example.org", { methods: ["POST"] })]);
  client.write(`POST / ${HEAD}\nContent-Length: 10\n\nhello`.replaceAll("\n", "\r\n"));
  await came.promise;
  withdraw();
  await ended(client);
  for (; way.told.length === 0;) await sleep(5);
  assert.equal(whole, 0);
  assert.match(await through(way, `GET / ${HEAD}\n\n`), /whole 1/, "the twin: another grant allows it");
});

test("a tunnel in a tunnel is denied", async () => {
  await using server = await secure(echo);
  await using way = await open(server.port, { grants: READS });
  assert.equal(await through(way, "CONNECT other.test:443 HTTP/1.1\nHost: example.org\n\n"), "");
  assert.deepEqual(
    way.told.map(({ host, method, verdict, rule }) => [host, method, verdict, rule]),
    [["example.org", "CONNECT", "denied", "authority"]],
  );
});

test("headers that a server could take for others because of an underscore are not forwarded", async () => {
  await using server = await secure(echo);
  await using way = await open(server.port, { grants: READS });
  const answer = await through(
    way,
    `GET / ${HEAD}\nX_Http_Method_Override: PUT\nContent_Length: 5\nX_Stays: b\n\n`,
  );
  assert.match(answer, /X_Stays/);
  assert.doesNotMatch(answer, /override|content_length/i);
});

test("a host with another host's certificate gets nothing", async () => {
  await using server = await secure(echo, "other.test");
  await using way = await open(server.port, { grants: READS });
  assert.match(await through(way, `GET / ${HEAD}\n\n`), /502 [^]*example\.org cannot be verified/);
  await using stranger = await egress(server.port, { grants: READS });
  assert.match(await through(stranger, `GET / ${HEAD}\n\n`), /502 [^]*cannot be verified/);
});

test("a program that does not trust the session's authority is recorded in the ledger", async () => {
  await using way = await egress(1, { grants: READS });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const tls = connect({ socket: client, servername: "example.org" });
  await once(tls, "error");
  for (; way.told.length === 0;) await sleep(5);
  assert.equal(way.told[0]?.rule, "client-tls");
});

test("a name that resolves to a private address is refused inside the tunnel", async () => {
  await using way = await open(1, { grants: READS, resolve: () => Promise.resolve(["10.0.0.1"]) });
  assert.match(await through(way, `GET / ${HEAD}\n\n`), /403 [^]*private/);
  assert.deepEqual(way.dialled, []);
});

const INSIDE = { resolve: () => Promise.resolve(["10.1.2.3"]) };

test("a request reaches a private address only if one grant allows both its method and the address", async () => {
  await using server = await secure(echo);
  const readsInside = granted("example.org", { methods: READING, private: true });
  for (const outside of [["POST"], null]) {
    const grants = [granted("*.org", { methods: outside }), readsInside];
    await using way = await open(server.port, { ...INSIDE, grants });
    const one = "GET /a HTTP/1.1\nHost: example.org\n\n";
    assert.match(
      await through(way, `${one}POST /b ${HEAD}\nContent-Length: 0\n\n`),
      /200 OK[^]*"\/a"[^]*HTTP\/1\.1 403 [^]*has a private/,
    );
    assert.deepEqual(way.dialled, ["10.1.2.3:443"]);
  }
});

test("a tunnel to a public address is passed through if one grant allows any request there", async () => {
  await using server = await secure(echo);
  const grants = [granted("example.org"), granted("example.org", { methods: READING, private: true })];
  await using way = await open(server.port, { grants });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  const tls = connect({ socket: client, servername: "example.org", ca: WORLD.pem });
  await once(tls, "secureConnect");
  tls.destroy();
});

test("requests of a tunnel share a connection, and a closed one is replaced", async () => {
  let count = 0;
  await using server = await secure((request, response) => {
    count += 1;
    if (count === 2) response.shouldKeepAlive = false;
    echo(request, response);
  });
  await using way = await open(server.port, { grants: READS });
  const one = "GET / HTTP/1.1\nHost: example.org\n\n";
  const answer = await through(way, `${one}${one}GET / ${HEAD}\n\n`);
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 3);
  assert.equal(server.connections(), 2);
});

const VALUE = 's3cr3t/"value"+1';
const SECRET: SecretBinding = {
  name: "TOKEN",
  placeholder: "PLACEHOLDER-1",
  value: VALUE,
  hosts: ["example.org"],
};
const BOUND = { grants: [granted("example.org")], secrets: [SECRET] };

test("a secret's value is in the request to its host, and in nothing that is returned", async () => {
  let heard: unknown[] = [];
  await using server = await secure((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      heard = [
        request.url,
        request.headers.authorization,
        request.headers["x-token"],
        Buffer.concat(chunks).toString(),
      ];
      response.setHeader("X-Echo", request.headers["x-token"] ?? "");
      response.write(`<${VALUE.slice(0, 5)}`);
      setTimeout(
        () => response.end(`${VALUE.slice(5)}> ${request.headers.authorization} ${heard.join(" ")}`),
        15,
      );
    });
  });
  await using way = await open(server.port, BOUND);
  const basic = Buffer.from("user:PLACEHOLDER-1").toString("base64");
  const body = '{"a":"PLACEHOLDER-1"}';
  const answered = await through(
    way,
    `POST /?k=PLACEHOLDER-1 ${HEAD}\nAuthorization: Basic ${basic}\nX-Token: PLACEHOLDER-1\nContent-Type: application/json\nContent-Length: ${body.length}\n\n${body}`,
  );
  const answer = answered.replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
  assert.deepEqual(heard, [
    `/?k=${encodeURIComponent(VALUE)}`,
    `Basic ${Buffer.from(`user:${VALUE}`).toString("base64")}`,
    VALUE,
    JSON.stringify({ a: VALUE }),
  ]);
  assert.match(answer, /X-Echo: PLACEHOLDER-1\r\n/);
  assert.ok(answer.includes(`<PLACEHOLDER-1> Basic ${basic} /?k=PLACEHOLDER-1`), answer);
  for (const form of [
    VALUE,
    encodeURIComponent(VALUE),
    Buffer.from(VALUE).toString("base64"),
    Buffer.from(`user:${VALUE}`).toString("base64"),
    "s3cr3t",
  ])
    assert.ok(!answer.includes(form) && !JSON.stringify(way.proxy.ledger()).includes(form), form);
});

test("a value is taken out of an answer however it is written, and also if another value goes on like it", async () => {
  const [one, longer] = ["abc+/=d&e'f xyz12", "abc+/=d&e'f xyz12345"];
  const written = [
    one,
    longer,
    `${longer.slice(0, -1)}.`,
    encodeURIComponent(one).toLowerCase(),
    new URLSearchParams([["a", one]]).toString(),
    JSON.stringify(one).replaceAll("/", String.raw`\/`),
    Buffer.from(one).toString("base64url"),
    Buffer.from(`user:${longer}`).toString("base64"),
  ].join("\n");
  await using server = await secure((_, response) => {
    const pieces = written.split(/(?=.)/s);
    const next = (): void => {
      const piece = pieces.shift();
      if (piece === undefined) return void response.end();
      response.write(piece);
      setImmediate(next);
    };
    next();
  });
  await using way = await open(server.port, {
    ...BOUND,
    secrets: [
      { ...SECRET, value: one },
      { ...SECRET, placeholder: "PLACEHOLDER-2", value: longer },
    ],
  });
  const answer = await through(way, `GET / ${HEAD}\n\n`);
  const body = answer
    .slice(answer.indexOf("\r\n\r\n") + 4)
    .replaceAll(/\r?\n?[0-9a-f]+\r\n(.*?)(?=\r\n)/gs, "$1");
  assert.deepEqual(body.trim().split("\n").slice(0, 7), [
    "PLACEHOLDER-1",
    "PLACEHOLDER-2",
    "PLACEHOLDER-134.",
    "PLACEHOLDER-1",
    "a=PLACEHOLDER-1",
    '"PLACEHOLDER-1"',
    "PLACEHOLDER-1",
  ]);
  assert.match(body, /\ndXNlcjpPLACEHOLDER-2\w?={0,2}\s*$/);
});

test("a compressed answer is searched, and one that cannot be searched is withheld", async () => {
  let coding = "gzip";
  await using server = await secure((_, response) => {
    response.setHeader("content-encoding", coding);
    response.end(gzipSync(`a ${VALUE} b`));
  });
  await using way = await open(server.port, BOUND);
  assert.match(await through(way, `GET / ${HEAD}\n\n`), /a PLACEHOLDER-1 b/);
  coding = "own";
  const answer = await through(way, `GET / ${HEAD}\n\n`);
  assert.match(answer, /^HTTP\/1\.1 502 [^]*cannot be searched/);
  assert.throws(() => gunzipSync(Buffer.from(answer, "latin1")));
});

test("an answer without a body may name a compression", async () => {
  await using server = await secure((request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { "content-encoding": "gzip", "content-length": 0 }).end();
  });
  await using way = await open(server.port, BOUND);
  for (const line of ["HEAD /200", "GET /200", "GET /204", "GET /304"])
    assert.match(await through(way, `${line} ${HEAD}\n\n`), /^HTTP\/1\.1 [^]*\r\n\r\n(0\r\n\r\n)?$/, line);
  assert.deepEqual(
    way.told.map(({ rule }) => rule),
    ["granted", "granted", "granted", "granted"],
  );
});

test("a host with a secret is asked for whole answers, so that no part contains half of the value", async () => {
  await using server = await secure((request, response) => {
    const [from = "0"] = /(?<=bytes=)\d+/.exec(request.headers.range ?? "") ?? [];
    response.end(
      `${String(request.headers["x-token"])} ${String(request.headers["if-range"])}`.slice(Number(from)),
    );
  });
  await using way = await open(server.port, BOUND);
  const part = `GET / ${HEAD}\nRange: bytes=2-\nIf-Range: "a"\n`;
  assert.match(await through(way, `${part}X-Token: PLACEHOLDER-1\n\n`), /\r\nPLACEHOLDER-1 undefined\r\n/);
  // The twin: without a secret a part is what was asked for.
  await using reads = await open(server.port, { grants: READS });
  assert.match(await through(reads, `${part}X-Token: 0123\n\n`), /\r\n23 "a"$/);
});

test("a secret is not sent to other hosts or over http", async () => {
  await using server = await secure(echo, "other.test");
  await using way = await open(server.port, {
    ...BOUND,
    grants: [...BOUND.grants, granted("other.test", { methods: ["GET"] })],
  });
  const answer = await through(
    way,
    "GET / HTTP/1.1\nHost: other.test\nX-Token: PLACEHOLDER-1\nConnection: close\n\n",
    "other.test",
  );
  assert.match(answer, /PLACEHOLDER-1/);
  assert.ok(!server.came().includes(VALUE));
  const plain = "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nX-Token: PLACEHOLDER-1\r\n\r\n";
  assert.match(await exchange(way.proxy.socket, plain), /403 [^]*TOKEN is put into requests by https only/);
});

test("a body for a host with a secret must be there in time, and so must a head", async () => {
  await using server = await secure(echo);
  await using way = await open(server.port, { ...BOUND, limits: { idleMs: 200 } });
  const trickled = async (head: string, piece: string): Promise<string> => {
    const client = await inTunnel(way);
    let answer = "";
    client.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1");
      if (answer.endsWith(" s\n")) client.destroy();
    });
    client.write(head.replaceAll("\n", "\r\n"));
    const trickling = setInterval(() => client.write(piece), 20);
    await ended(client);
    clearInterval(trickling);
    client.destroy();
    return answer;
  };
  const post = `POST / ${HEAD}\nContent-Type: text/plain\nContent-Length: 100000\n\n`;
  assert.match(await trickled(post, "x"), /^HTTP\/1\.1 502 [^]*did not come within 0\.2 s\n$/);
  assert.equal(await trickled("GET / HTTP/1.1\nHost: example.org\n", "X-A: b\r\n"), "");
  assert.equal(server.connections(), 0);
});

test("a request in a tunnel that stands still ends as idle", async () => {
  await using server = await secure(() => undefined);
  await using way = await open(server.port, { ...BOUND, limits: { idleMs: 100 } });
  const client = await inTunnel(way);
  client.write(
    `POST / ${HEAD}\nContent-Type: text/plain\nContent-Length: 100000\n\n`.replaceAll("\n", "\r\n"),
  );
  await ended(client);
  client.destroy();
  for (; way.told.length === 0;) await sleep(5);
  assert.equal(way.told[0]?.rule, "idle");
});

test("a secret too short to be removed from answers is refused", async () => {
  await assert.rejects(
    open(1, { secrets: [{ ...SECRET, value: "abc" }] }),
    /TOKEN has fewer than 6 characters/,
  );
});
