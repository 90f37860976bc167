import assert from "node:assert/strict";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { connect } from "node:net";
import test from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import type { Connection, OwnAnswer, OwnRequest } from "../../../src/core/network.ts";
import { GrantedRequests } from "../../../src/docker/egress/own-requests.ts";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { answering, granted, httpAnswer, PUBLIC, type Stub, stub } from "../../fixtures/egress.ts";

type Options = ConstructorParameters<typeof GrantedRequests>[0];

const LIVE = new AbortController().signal;
const asking = (url: string, more: Partial<OwnRequest> = {}): OwnRequest => ({
  url,
  method: "GET",
  headers: {},
  ...more,
});

/** Every name is at PUBLIC, every address leads to `port` on loopback. */
function way(port: number, options: Partial<Options>) {
  const [told, dialled, resolved]: [Connection[], string[], string[]] = [[], [], []];
  const { resolve } = options;
  const requests = new GrantedRequests({
    grants: [],
    onConnection: (line) => void told.push(line),
    dial: (address, asked) => {
      dialled.push(`${address}:${asked}`);
      return connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    },
    ...options,
    resolve: (host) => {
      resolved.push(host);
      return resolve === undefined ? Promise.resolve([PUBLIC]) : resolve(host);
    },
  });
  return {
    requests,
    told,
    dialled,
    resolved,
    [Symbol.asyncDispose]: () => requests[Symbol.asyncDispose](),
  };
}

async function bodyOf(answer: OwnAnswer): Promise<string> {
  if (answer.kind !== "answered") return `${answer.kind}: ${answer.reason}`;
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const NAMING: RequestListener = (request, response) => void response.end(`for ${request.headers.host}`);
const WORLD = makeSessionAuthority();

/** A server with a TLS certificate for `host`, whatever name is requested. */
function secure(listener: RequestListener, host = "example.org"): Promise<Stub> {
  const http = createHttpServer({ keepAliveTimeout: 0 }, listener);
  const server = createServer({ SNICallback: (_, give) => give(null, WORLD.contextFor(host)) });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => undefined);
    http.emit("connection", socket);
  });
  return stub(() => undefined, server);
}

test("a granted host is contacted at the address that was judged, and the ledger records it", async () => {
  await using server = await stub(answering(httpAnswer("hello", "X-A: b\r\nConnection: close\r\n")));
  await using own = way(server.port, { grants: [granted("example.org")] });
  const answer = await own.requests.send(
    asking("http://EXAMPLE.org/a?b=c#d", { headers: { accept: "text/plain" } }),
    LIVE,
  );
  assert.ok(answer.kind === "answered");
  assert.deepEqual([answer.status, answer.headers.find(([name]) => name === "x-a")?.[1]], [200, "b"]);
  assert.equal(await bodyOf(answer), "hello");
  assert.equal(
    server.came(),
    "GET /a?b=c HTTP/1.1\r\naccept: text/plain\r\nhost: example.org\r\nconnection: close\r\n\r\n",
  );
  assert.deepEqual([own.dialled, own.resolved], [[`${PUBLIC}:80`], ["example.org"]]);
  assert.deepEqual(
    own.told.map(({ host, port, method, verdict, rule, down }) => [host, port, method, verdict, rule, down]),
    [["example.org", 80, "GET", "allowed", "granted", 5]],
  );
});

test("a host that is not granted and an address that is not of the web are refused before any name is resolved", async () => {
  await using server = await stub(answering(httpAnswer("hello")));
  await using own = way(server.port, {
    grants: [
      granted("example.org"),
      granted("*.wide.example"),
      granted("reads.example", { methods: ["GET"] }),
    ],
    denied: ["no.wide.example"],
  });
  const table: readonly (readonly [url: string, rule: string, method?: string])[] = [
    ["http://other.example/", "not-granted"],
    ["http://example.org.evil.example/", "not-granted"],
    ["http://example.org:8080/", "port"],
    ["http://no.wide.example/", "denied-host"],
    ["http://reads.example/", "method", "POST"],
    ["http://127.0.0.1/", "address-literal"],
    ["http://0x7f.1/", "address-literal"],
    ["http://[::1]/", "address-literal"],
    ["file:///etc/passwd", "url"],
    ["data:text/plain,a", "url"],
    ["ftp://example.org/", "url"],
    ["http://user:word@example.org/", "url"],
    ["example.org", "url"],
  ];
  for (const [url, rule, method = "GET"] of table) {
    const answer = await own.requests.send(asking(url, { method }), LIVE);
    assert.deepEqual([url, answer.kind, answer.kind === "refused" && answer.rule], [url, "refused", rule]);
  }
  assert.deepEqual([own.dialled, own.resolved, server.connections()], [[], [], 0]);
  assert.ok(own.told.every(({ verdict }) => verdict === "denied"));
  const twin = await own.requests.send(asking("http://reads.example/"), LIVE);
  assert.equal(twin.kind, "answered");
});

test("a granted name that resolves to this host, a private network or metadata is refused", async () => {
  await using server = await stub(answering(httpAnswer("hello")));
  const answers = [["127.0.0.1"], ["10.0.0.7"], ["169.254.169.254"], ["::ffff:127.0.0.1"], [PUBLIC]];
  await using own = way(server.port, {
    grants: [granted("example.org")],
    resolve: () => Promise.resolve(answers.shift() ?? ["127.0.0.1"]),
  });
  const found: string[] = [];
  for (let count = 0; count < 5; count += 1)
    found.push((await own.requests.send(asking("http://example.org/"), LIVE)).kind);
  assert.deepEqual(found, ["refused", "refused", "refused", "refused", "answered"]);
  // The name is resolved once for each request, and the address that was judged is the one that is dialled.
  assert.deepEqual([own.dialled, own.resolved.length], [[`${PUBLIC}:80`], 5]);
  await using open = way(server.port, {
    grants: [granted("example.org", { private: true })],
    resolve: () => Promise.resolve(["10.0.0.7"]),
  });
  assert.equal((await open.requests.send(asking("http://example.org/"), LIVE)).kind, "answered");
});

test("a host with another host's TLS certificate is not contacted", async () => {
  await using server = await secure(NAMING);
  const grants = [granted("example.org"), granted("other.example")];
  await using own = way(server.port, { grants, roots: WORLD.pem });
  assert.equal(
    await bodyOf(await own.requests.send(asking("https://example.org/"), LIVE)),
    "for example.org",
  );
  const other = await own.requests.send(asking("https://other.example/"), LIVE);
  assert.match(await bodyOf(other), /^unreachable: other\.example cannot be verified: .*altnames/i);
  await using strict = way(server.port, { grants });
  const unknown = await strict.requests.send(asking("https://example.org/"), LIVE);
  assert.match(await bodyOf(unknown), /^unreachable: example\.org cannot be verified/);
});

test("budgets apply in both directions, slow and endless servers are dropped, and a cancelled request ends", async () => {
  const grants = [granted("example.org")];
  const endless = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
  await using server = await stub((socket) =>
    socket.once("data", () => {
      socket.write(endless);
      const more = (): void => {
        if (!socket.destroyed) socket.write("x".repeat(4096), () => setImmediate(more));
      };
      more();
    }),
  );
  await using own = way(server.port, { grants, limits: { bytesDown: 100_000 } });
  const answer = await own.requests.send(asking("http://example.org/"), LIVE);
  await assert.rejects(bodyOf(answer), /received more than the 100000 bytes/);
  const again = await own.requests.send(asking("http://example.org/"), LIVE);
  assert.deepEqual([again.kind, again.kind === "refused" && again.rule], ["refused", "budget"]);
  assert.deepEqual(
    own.told.map(({ rule }) => rule),
    ["budget", "budget"],
  );

  await using small = way(server.port, { grants, limits: { bytesUp: 200 } });
  const post = asking("http://example.org/", { method: "POST", body: "x".repeat(400) });
  assert.match(await bodyOf(await small.requests.send(post, LIVE)), /sent more than the 200 bytes/);

  await using silent = await stub(() => undefined);
  await using slow = way(silent.port, { grants, limits: { idleMs: 50 } });
  assert.match(await bodyOf(await slow.requests.send(asking("http://example.org/"), LIVE)), /nothing came/);
  await using patient = way(silent.port, { grants });
  const leaving = new AbortController();
  const waiting = patient.requests.send(asking("http://example.org/"), leaving.signal);
  leaving.abort();
  assert.deepEqual(await waiting, { kind: "unreachable", reason: "it was ended" });
});

test("an oversized or invalid response head is reported in words", async () => {
  const grants = [granted("example.org")];
  for (const bytes of [
    `HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(40_000)}\r\n\r\n`,
    "what is this\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ]) {
    await using server = await stub(answering(bytes));
    await using own = way(server.port, { grants });
    const answer = await own.requests.send(asking("http://example.org/"), LIVE);
    assert.match(await bodyOf(answer), /^unreachable: its answer cannot be read/);
  }
});

test("a proxy of the host is used, and a withdrawn grant ends its open request", async () => {
  await using proxy = await stub(answering(httpAnswer("by proxy")));
  await using own = way(1, {
    grants: [granted("example.org")],
    env: { http_proxy: `http://me:word@127.0.0.1:${proxy.port}` },
  });
  assert.equal(await bodyOf(await own.requests.send(asking("http://example.org/a"), LIVE)), "by proxy");
  assert.match(proxy.came(), /^GET http:\/\/example\.org\/a HTTP\/1\.1\r\n[^]*proxy-authorization: Basic /);

  const found = Promise.withResolvers<readonly string[]>();
  await using silent = await stub(() => undefined);
  await using early = way(silent.port, { resolve: () => found.promise });
  const end = early.requests.grant([granted("example.org")]);
  const asked = early.requests.send(asking("http://example.org/"), LIVE);
  end();
  found.resolve([PUBLIC]);
  assert.equal(await bodyOf(await asked), "unreachable: its grant has ended");
  assert.equal(silent.came(), "");

  await using server = await stub((socket) =>
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nso ")),
  );
  await using later = way(server.port, {});
  const withdraw = later.requests.grant([granted("example.org")]);
  const answer = await later.requests.send(asking("http://example.org/"), LIVE);
  const reading = bodyOf(answer);
  withdraw();
  await assert.rejects(reading);
  assert.equal((await later.requests.send(asking("http://example.org/"), LIVE)).kind, "refused");
});
