import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import { HarnessError } from "../../../src/core/errors.ts";
import { isUnreadable, parseAuthority } from "../../../src/docker/egress/judge-host.ts";
import { makeSessionAuthority } from "../../../src/docker/egress/tls-ending.ts";
import { proxyFor, upstreamFrom } from "../../../src/docker/egress/reach-host.ts";
import {
  answering,
  clientHello,
  connected,
  egress,
  exchange,
  granted,
  httpAnswer,
  type Stub,
  stub,
} from "../../fixtures/egress.ts";

const GRANTS = [granted("example.org")];
const PLAIN = "GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";
const WORD = "p%40ssword";
const BASIC = `Basic ${Buffer.from(`user:p@ss/word`).toString("base64")}`;

/** A company's proxy: it answers a CONNECT with this, and leads the tunnel to `port`. */
const company = (port: number, status = "200 OK"): Promise<Stub> =>
  stub((socket) =>
    socket.once("data", (head: Buffer) => {
      if (!head.toString().startsWith("CONNECT "))
        return void socket.end(httpAnswer("by proxy", "Connection: close\r\n"));
      const server = connect(port, "127.0.0.1");
      server.on("error", () => undefined);
      socket.write(`HTTP/1.1 ${status}\r\nVia: company\r\n\r\n`);
      socket.pipe(server).pipe(socket);
    }),
  );

const env = (port: number): Readonly<Record<string, string>> => ({
  HTTPS_PROXY: `http://user:${encodeURIComponent("p@ss/word")}@127.0.0.1:${port}`,
  HTTP_PROXY: `http://user:${encodeURIComponent("p@ss/word")}@127.0.0.1:${port}`,
  NO_PROXY: "direct.test",
});

test("a tunnel uses the host's proxy, whose credentials the box never sees", async () => {
  await using server = await stub((socket) => socket.on("data", () => socket.write("pong")));
  await using proxy = await company(server.port);
  await using way = await egress(server.port, { grants: GRANTS, env: env(proxy.port) });
  const { client, head } = await connected(way.proxy.socket, "example.org:443");
  assert.match(head, /^HTTP\/1\.1 200 /);
  const hello = await clientHello({ servername: "example.org" });
  client.write(hello);
  assert.equal(String((await once(client, "data"))[0]), "pong");
  assert.equal(server.came(), hello.toString("latin1"));
  assert.ok(
    proxy
      .came()
      .startsWith(
        `CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: ${BASIC}\r\n\r\n`,
      ),
  );
  assert.deepEqual([way.resolved, way.dialled], [[], []]);
  client.destroy();
  assert.doesNotMatch(JSON.stringify([head, way.proxy.ledger()]), /ss\/word|Basic|Via/);
});

test("the name is judged before the proxy is contacted", async () => {
  await using proxy = await company(1);
  await using way = await egress(1, { grants: GRANTS, env: env(proxy.port) });
  assert.match(
    await exchange(way.proxy.socket, "CONNECT other.test:443 HTTP/1.1\r\n\r\n"),
    /^HTTP\/1\.1 403 /,
  );
  assert.match(
    await exchange(way.proxy.socket, "CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n"),
    /^HTTP\/1\.1 403 /,
  );
  assert.equal(proxy.connections(), 0);
});

test("a plain request is sent to the proxy with its whole address", async () => {
  await using proxy = await company(1);
  await using way = await egress(1, { grants: GRANTS, env: env(proxy.port) });
  assert.match(await exchange(way.proxy.socket, PLAIN), /by proxy$/);
  assert.match(proxy.came(), /^GET http:\/\/example\.org\/a HTTP\/1\.1\r\nHost: example\.org\r\n/);
  assert.ok(proxy.came().includes(`Proxy-Authorization: ${BASIC}\r\n`));
});

test("a proxy reached by TLS is verified, and data right after its answer is kept", async () => {
  const authority = makeSessionAuthority();
  const server = createServer({ SNICallback: (_, give) => give(null, authority.contextFor("localhost")) });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\nfirst words"));
  });
  await using proxy = await stub(() => undefined, server);
  const secured = { HTTPS_PROXY: `https://localhost:${proxy.port}` };
  await using way = await egress(1, { grants: GRANTS, env: secured, roots: authority.pem });
  const { client } = await connected(way.proxy.socket, "example.org:443");
  client.write(await clientHello({ servername: "example.org" }));
  assert.equal(String((await once(client, "data"))[0]), "first words");
  client.destroy();
  await using stranger = await egress(1, { grants: GRANTS, env: secured, roots: makeSessionAuthority().pem });
  const refused = await exchange(stranger.proxy.socket, "CONNECT example.org:443 HTTP/1.1\r\n\r\n");
  assert.match(refused, /^HTTP\/1\.1 502 [^]*the host's proxy cannot be reached/);
});

test("hosts in NO_PROXY are reached directly", async () => {
  await using server = await stub(answering(httpAnswer("direct", "Connection: close\r\n")));
  await using proxy = await company(1);
  await using way = await egress(server.port, {
    grants: [granted("direct.test")],
    env: env(proxy.port),
  });
  assert.match(await exchange(way.proxy.socket, PLAIN.replaceAll("example.org", "direct.test")), /direct$/);
  assert.equal(proxy.connections(), 0);
});

test("a proxy that refuses or is missing is a failure in words without its credentials", async () => {
  await using proxy = await company(1, "407 Proxy Authentication Required");
  await using way = await egress(1, { grants: GRANTS, env: env(proxy.port) });
  const refused = await exchange(way.proxy.socket, "CONNECT example.org:443 HTTP/1.1\r\n\r\n");
  assert.match(refused, /^HTTP\/1\.1 502 [^]*did not open a tunnel to example\.org: it answered 407/);
  await using gone = await egress(1, { grants: GRANTS, env: env(1) });
  const failed = await exchange(gone.proxy.socket, "CONNECT example.org:443 HTTP/1.1\r\n\r\n");
  assert.match(failed, /^HTTP\/1\.1 502 [^]*the host's proxy cannot be reached: .*ECONNREFUSED/);
  assert.doesNotMatch(refused + failed, /word|Basic/);
});

test("the environment's proxies are interpreted as tools do", () => {
  assert.equal(upstreamFrom({}), null);
  assert.equal(upstreamFrom({ HTTPS_PROXY: "" }), null);
  const both = upstreamFrom({
    https_proxy: "proxy.test:3128",
    HTTPS_PROXY: "http://other.test",
    ALL_PROXY: "https://all.test",
  });
  assert.deepEqual(both?.https, { host: "proxy.test", port: 3128, secure: false, authorization: null });
  assert.deepEqual(both?.http, { host: "all.test", port: 443, secure: true, authorization: null });
  assert.throws(
    () => upstreamFrom({ HTTPS_PROXY: `socks5://user:${WORD}@proxy.test` }),
    (thrown) =>
      thrown instanceof HarnessError &&
      /HTTPS_PROXY .*socks5/.test(thrown.message) &&
      !thrown.message.includes(WORD),
  );
});

for (const [direct, text, expected] of [
  ["example.org", "example.org", true],
  ["example.org", "a.example.org", true],
  ["example.org", "notexample.org", false],
  [".example.org", "a.example.org", true],
  [".example.org", "example.org", false],
  ["*.example.org", "a.example.org", true],
  ["Example.Org:8443", "example.org:8443", true],
  ["example.org:8443", "example.org", false],
  ["*", "example.org", true],
  ["a.test, example.org", "example.org", true],
  ["10.0.0.0/8", "10.1.2.3", true],
  ["10.0.0.0/8", "11.1.2.3", false],
  ["10.0.0.0/99", "10.1.2.3", false],
  ["10.1.2.3", "10.1.2.3", true],
  ["fd00::/8", "[fd00::1]", true],
  ["::1", "[::1]", true],
  ["", "localhost", true],
  ["", "127.0.0.2", true],
  ["", "example.org", false],
] as const)
  test(`NO_PROXY=${direct} ${expected ? "is" : "is not"} for ${text}`, () => {
    const upstream = upstreamFrom({ HTTPS_PROXY: "http://proxy.test", NO_PROXY: direct });
    const asked = parseAuthority(text, 443);
    assert.ok(upstream !== null && !isUnreadable(asked));
    assert.equal(proxyFor(upstream, asked, "https") === null, expected);
  });
