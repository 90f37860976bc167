import assert from "node:assert/strict";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createPlainServer, type Server } from "node:net";
import test from "node:test";
import { openReply } from "../../../src/models/providers/api-request.ts";
import { Concessions } from "../../../src/models/providers/api-request.ts";
import { WireFailure } from "../../../src/models/model-api.ts";
import { type Served, startLoopback } from "../../fakes/loopback.ts";
import { SELF_SIGNED } from "./self-signed.ts";

const KEY = "sk-secret-1234";

function ask(url: string, signal = new AbortController().signal, connectMs = 1000): Promise<unknown> {
  return openReply({
    context: { url, model: "m", key: KEY, keyName: "OPENAI_API_KEY", tools: false },
    headers: { authorization: `Bearer ${KEY}`, "x-api-key": KEY },
    body: { model: "m" },
    concessions: new Concessions([]),
    signal,
    connectMs,
  });
}

async function failureOf(asking: Promise<unknown>): Promise<WireFailure> {
  try {
    await asking;
  } catch (thrown) {
    assert.ok(thrown instanceof WireFailure, String(thrown));
    assert.doesNotMatch(`${thrown.message} ${thrown.remedy}`, new RegExp(KEY));
    return thrown;
  }
  return assert.fail("it was answered");
}

const short = ({ kind, passing, message }: WireFailure) => ({ kind, passing, message });

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

test("an address where nothing listens is a failure with a fix", async () => {
  const server = await startLoopback([{}]);
  await server.close();
  const failure = await failureOf(ask(`${server.url}/v1/chat/completions`));
  assert.deepEqual(short(failure), {
    kind: "unreachable",
    passing: false,
    message: `${server.url}: nothing is listening there (ECONNREFUSED)`,
  });
  assert.match(failure.remedy, /harness config set base_url URL/);
});

test("a name in the address is not shown", async () => {
  const server = await startLoopback([{}]);
  await server.close();
  const { message } = await failureOf(ask(server.url.replace("//", "//user:hunter2@")));
  assert.doesNotMatch(message, /hunter2|user/);
});

for (const [sentence, url] of [
  ["an invalid address", "not an address"],
  ["another protocol", "ftp://127.0.0.1/v1"],
] as const)
  test(`${sentence} is a failure`, async () => {
    const { kind, remedy } = await failureOf(ask(url));
    assert.deepEqual([kind, remedy], ["unreachable", "harness config set base_url URL"]);
  });

test("a redirect is not followed, and the key is not sent there", async () => {
  await using other = await startLoopback([{ body: "{}" }]);
  for (const status of [301, 302, 307, 308]) {
    await using server = await startLoopback([
      { status, headers: { location: `${other.url}/v1/chat/completions?token=x` } },
    ]);
    const failure = await failureOf(ask(server.url));
    assert.deepEqual(short(failure), {
      kind: "unreachable",
      passing: false,
      message: `${server.url} is not a model server: it redirects to ${other.url}`,
    });
  }
  assert.deepEqual(other.heard, []);
});

test("an untrusted certificate is named as the reason", async () => {
  const server = createSecureServer(SELF_SIGNED);
  const port = await listening(server);
  try {
    const failure = await failureOf(ask(`https://localhost:${port}/v1`));
    assert.equal(failure.kind, "unreachable");
    assert.match(failure.message, /not signed by anyone that this machine trusts/);
    assert.match(failure.remedy, /NODE_EXTRA_CA_CERTS/);
  } finally {
    server.close();
  }
});

test("https to a server without TLS is named as the reason", async () => {
  await using server = await startLoopback([{}]);
  const failure = await failureOf(ask(server.url.replace("http:", "https:")));
  assert.equal(failure.kind, "unreachable");
  assert.match(failure.remedy, /http:\/\//);
});

test("a server that does not speak HTTP is not a model server", async () => {
  const server = createPlainServer((socket) => socket.end("220 mail.example.org ESMTP\r\n"));
  const port = await listening(server);
  const failure = await failureOf(ask(`http://127.0.0.1:${port}/v1`));
  assert.equal(failure.kind, "unreachable");
  assert.match(failure.message, /does not speak HTTP/);
  server.close();
});

test("a connection that is not established is a timeout", async () => {
  const server = createPlainServer(() => undefined);
  const port = await listening(server);
  const failure = await failureOf(ask(`https://127.0.0.1:${port}/v1`, undefined, 60));
  assert.deepEqual(short(failure), {
    kind: "timeout",
    passing: true,
    message: `https://127.0.0.1:${port}: no connection within 60 ms`,
  });
  server.close();
});

test("a server that hangs up is a passing failure", async () => {
  const server = createPlainServer((socket) => socket.destroy());
  const port = await listening(server);
  const { kind, passing } = await failureOf(ask(`http://127.0.0.1:${port}/v1`));
  assert.deepEqual({ kind, passing }, { kind: "unreachable", passing: true });
  server.close();
});

test("cancelling while nothing arrives ends at once", async () => {
  const server = createPlainServer(() => undefined);
  const port = await listening(server);
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 20);
  assert.equal((await failureOf(ask(`http://127.0.0.1:${port}/v1`, abort.signal))).kind, "cancelled");
  server.close();
});

const page = (status: number, title: string): Served => ({
  status,
  headers: { "content-type": "text/html" },
  body: `<!doctype html><html><head><title>${title}</title></head><body>long</body></html>`,
});

const ANSWERS: readonly (readonly [string, Served, string, boolean, RegExp])[] = [
  ["a web page with status 404", page(404, "Nothing"), "unreachable", false, /not a model server.*web page/],
  ["a page that asks for a login", page(403, "Sign in"), "unreachable", false, /not a model server/],
  ["a page of a proxy without its server", page(502, "Bad Gateway"), "server", true, /HTTP 502: Bad Gateway/],
  ["a page of a proxy that wants a password", page(401, "Login"), "unauthorised", false, /HTTP 401: Login/],
  ["an unknown path", { status: 404, body: '{"detail":"Not Found"}' }, "unreachable", false, /404/],
  ["an empty refusal", { status: 500 }, "server", true, /^HTTP 500$/],
];

for (const [sentence, served, kind, passing, says] of ANSWERS)
  test(`${sentence} is reported as such`, async () => {
    await using server = await startLoopback([served]);
    const failure = await failureOf(ask(server.url));
    assert.deepEqual([failure.kind, failure.passing], [kind, passing]);
    assert.match(failure.message, says);
  });

const WAITS: readonly (readonly [string, Record<string, string>, number | null])[] = [
  ["seconds", { "retry-after": "7" }, 7000],
  ["parts of seconds", { "retry-after": "0.25" }, 250],
  ["milliseconds", { "retry-after-ms": "120", "retry-after": "1" }, 120],
  ["a date that is past", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, 0],
  ["nonsense", { "retry-after": "soon" }, null],
  ["nothing", {}, null],
];

for (const [sentence, headers, ms] of WAITS)
  test(`a server may say how long to wait: ${sentence}`, async () => {
    await using server = await startLoopback([{ status: 429, headers, body: '{"error":"slow down"}' }]);
    assert.equal((await failureOf(ask(server.url))).retryAfterMs, ms);
  });

test("a server may say until when to wait", async () => {
  const headers = { "retry-after": new Date(Date.now() + 60_000).toUTCString() };
  await using server = await startLoopback([{ status: 429, headers, body: "{}" }]);
  const { retryAfterMs } = await failureOf(ask(server.url));
  assert.ok(retryAfterMs !== null && retryAfterMs > 50_000 && retryAfterMs <= 60_000);
});
