import assert from "node:assert/strict";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { HarnessError } from "../../../src/core/errors.ts";
import { openEgress } from "../../../src/docker/egress/egress-proxy.ts";
import {
  answering,
  clientHello,
  connected,
  egress,
  exchange,
  granted,
  httpAnswer,
  PUBLIC,
  stub,
} from "../../fixtures/egress.ts";

const GRANTS = [granted("example.org")];
const get = (host: string, named = host): string =>
  `GET http://${host}/a?b=c HTTP/1.1\r\nHost: ${named}\r\nConnection: close\r\n\r\n`;

test("a granted host is reached over http by the address that was judged", async () => {
  await using server = await stub(answering(httpAnswer("hello", "X-A: b\r\nConnection: close\r\n")));
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(way.proxy.socket, get("example.org"));
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[^]*X-A: b\r\n[^]*hello$/);
  assert.match(server.came(), /^GET \/a\?b=c HTTP\/1\.1\r\nHost: example\.org\r\n/);
  assert.deepEqual([way.dialled, way.resolved], [[`${PUBLIC}:80`], ["example.org"]]);
  const [line] = way.told;
  assert.deepEqual(
    { ...line, at: 0 },
    {
      at: 0,
      host: "example.org",
      port: 80,
      method: "GET",
      verdict: "allowed",
      rule: "granted",
      reason: "",
      up: line?.up,
      down: 5,
    },
  );
});

test("a host that is not granted is not resolved, and the answer says what would grant it", async () => {
  await using server = await stub(answering(httpAnswer("hello")));
  await using way = await egress(server.port, { grants: GRANTS });
  const answer = await exchange(way.proxy.socket, get("other.example.org"));
  assert.match(
    answer,
    /^HTTP\/1\.1 403 [^]*other\.example\.org is not granted; --allow-domain other\.example\.org would grant it/,
  );
  assert.match(
    await exchange(way.proxy.socket, "CONNECT other.example.org:443 HTTP/1.1\r\n\r\n"),
    /^HTTP\/1\.1 403 /,
  );
  assert.deepEqual([way.dialled, way.resolved, server.connections()], [[], [], 0]);
  assert.deepEqual(
    way.proxy.ledger().connections.map(({ host, port, verdict, rule }) => [host, port, verdict, rule]),
    [
      ["other.example.org", 80, "denied", "not-granted"],
      ["other.example.org", 443, "denied", "not-granted"],
    ],
  );
  way.proxy.grant([granted("*.example.org")]);
  assert.match(await exchange(way.proxy.socket, get("other.example.org")), /^HTTP\/1\.1 200 /);
});

test("a withdrawn grant is no longer valid and ends the tunnels that depended on it", async () => {
  await using server = await stub((socket) => socket.on("data", () => socket.write("pong")));
  await using way = await egress(server.port, { grants: GRANTS });
  const hello = async (host: string) => {
    const { client } = await connected(way.proxy.socket, `${host}:443`);
    client.write(await clientHello({ servername: host }));
    await once(client, "data");
    return client;
  };
  const withdraw = way.proxy.grant([granted("other.example.org"), granted("example.org")]);
  const [stays, goes] = [await hello("example.org"), await hello("other.example.org")];
  const closed = once(goes.resume(), "end");
  withdraw();
  withdraw();
  await closed;
  stays.write("ping");
  assert.equal(String((await once(stays, "data"))[0]), "pong", "the twin: another grant lets it through");
  const again = "CONNECT other.example.org:443 HTTP/1.1\r\n\r\n";
  assert.match(await exchange(way.proxy.socket, again), /^HTTP\/1\.1 403 /);
  way.proxy.grant([granted("other.example.org")]);
  (await hello("other.example.org")).destroy();
  stays.destroy();
});

test("nothing is sent to a host whose grant was withdrawn while it was connected to", async () => {
  await using server = await stub(answering(httpAnswer("hello")));
  const found = Promise.withResolvers<readonly string[]>();
  await using way = await egress(server.port, { resolve: () => found.promise });
  const withdraw = way.proxy.grant(GRANTS);
  const answer = exchange(way.proxy.socket, get("example.org"));
  for (; way.resolved.length === 0;) await sleep(5);
  withdraw();
  assert.equal(await answer, "");
  found.resolve([PUBLIC]);
  for (; way.dialled.length === 0;) await sleep(5);
  way.proxy.grant(GRANTS);
  assert.match(await exchange(way.proxy.socket, get("example.org")), /^HTTP\/1\.1 200 /);
  assert.equal(server.came().match(/GET/g)?.length, 1);
});

test("a CONNECT after a request that is not yet answered is refused", async () => {
  await using server = await stub(() => undefined);
  await using way = await egress(server.port, { grants: GRANTS });
  const unanswered = get("example.org").replace("Connection: close\r\n", "");
  const answer = await exchange(
    way.proxy.socket,
    `${unanswered}CONNECT example.org:443 HTTP/1.1\r\n\r\n`,
    await clientHello({ servername: "example.org" }),
  );
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.equal(way.told[0]?.rule, "malformed");
});

test("without grants there is no network", async () => {
  await using server = await stub(answering(httpAnswer("hello")));
  await using way = await egress(server.port, {});
  assert.match(await exchange(way.proxy.socket, get("example.org")), /^HTTP\/1\.1 403 /);
  assert.equal(server.connections(), 0);
});

test("a tunnel passes the client hello and later data unchanged", async () => {
  await using server = await stub((socket) => socket.on("data", () => socket.write("pong")));
  await using way = await egress(server.port, { grants: GRANTS });
  const hello = await clientHello({ servername: "example.org" });
  const { client, head } = await connected(way.proxy.socket, "example.org:443");
  assert.match(head, /^HTTP\/1\.1 200 /);
  client.write(hello.subarray(0, 7));
  await sleep(10);
  assert.equal(server.came(), "");
  client.write(hello.subarray(7));
  assert.equal(String((await once(client, "data"))[0]), "pong");
  assert.equal(server.came(), hello.toString("latin1"));
  client.end();
  client.destroy();
  for (; way.told.length === 0;) await sleep(5);
  const [line] = way.told;
  assert.deepEqual(
    { verdict: line?.verdict, up: line?.up, down: line?.down, method: line?.method },
    { verdict: "allowed", up: hello.length, down: 4, method: null },
  );
});

for (const [what, said, rule] of [
  ["another name", await clientHello({ servername: "other.example.org" }), "sni"],
  ["no name", await clientHello({}), "sni"],
  ["something that is not TLS", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "not-tls"],
] as const)
  test(`a tunnel whose client sends ${what} carries nothing`, async () => {
    await using server = await stub(answering("secret"));
    await using way = await egress(server.port, { grants: GRANTS });
    const { client } = await connected(way.proxy.socket, "example.org:443");
    client.write(said);
    const [alert] = (await once(client, "data")) as [Buffer];
    assert.deepEqual([...alert], [21, 3, 3, 0, 2, 2, 49]);
    assert.equal(server.came(), "");
    assert.deepEqual(
      way.proxy.ledger().connections.map((line) => [line.host, line.verdict, line.rule]),
      [["example.org", "denied", rule]],
    );
    client.destroy();
  });

test("a name that resolves to a private address is refused, unless its grant is marked private", async () => {
  await using server = await stub(answering(httpAnswer("inside")));
  const inside = { resolve: () => Promise.resolve(["10.1.2.3"]) };
  await using closed = await egress(server.port, { ...inside, grants: GRANTS });
  assert.match(
    await exchange(closed.proxy.socket, get("example.org")),
    /^HTTP\/1\.1 403 [^]*example\.org:private would allow it/,
  );
  assert.deepEqual(closed.dialled, []);
  await using other = await egress(server.port, {
    ...inside,
    grants: [granted("example.org", { ports: [8080] })],
  });
  assert.match(
    await exchange(other.proxy.socket, get("example.org:8080")),
    /--allow-domain example\.org:8080:private would allow it/,
    "with the port, where it is another than the usual",
  );
  await using open = await egress(server.port, {
    ...inside,
    grants: [granted("example.org", { private: true })],
  });
  assert.match(await exchange(open.proxy.socket, get("example.org")), /inside$/);
  assert.deepEqual(open.dialled, ["10.1.2.3:80"]);
});

test("grants for public addresses and for private ones do not add up to more", async () => {
  await using server = await stub(answering(httpAnswer("inside")));
  const grants = [granted("example.org"), granted("example.org", { methods: ["GET"], private: true })];
  const inside = { resolve: () => Promise.resolve(["10.1.2.3"]) };
  await using way = await egress(server.port, { ...inside, grants });
  assert.match(await exchange(way.proxy.socket, get("example.org")), /inside$/);
  const post = get("example.org").replace("GET", "POST");
  assert.match(await exchange(way.proxy.socket, post), /^HTTP\/1\.1 403 [^]*example\.org:private would/);
  await using outside = await egress(server.port, { grants });
  assert.match(await exchange(outside.proxy.socket, post), /inside$/, "the twin: a public address");
});

test("the socket is open to every user, and its folder can only be passed through", async () => {
  await using way = await egress(1, {});
  const [socket, folder] = [await stat(way.proxy.socket), await stat(path.dirname(way.proxy.socket))];
  assert.deepEqual([socket.mode & 0o777, folder.mode & 0o777], [0o666, 0o711]);
});

test("a socket path longer than the kernel allows is refused", async () => {
  await assert.rejects(
    openEgress({ folder: `/tmp/${"a".repeat(100)}`, grants: [] }),
    (thrown) =>
      thrown instanceof HarnessError && /more than 107 bytes/.test(thrown.message) && thrown.remedy !== "",
  );
});
