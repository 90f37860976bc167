import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { Readable } from "node:stream";
import {
  fetchBy,
  httpTransport,
  LineTransport,
  programInBox,
  programOnHost,
} from "../../src/extensions/mcp-transports.ts";
import { McpServer } from "../../src/extensions/mcp-client.ts";
import { fakeBox } from "../fakes/box.ts";
import { scratch } from "../fixtures/scratch.ts";
import type { OwnAnswer, OwnRequest, OwnRequests } from "../../src/core/network.ts";
import { type McpWeb, startMcpWeb } from "../fakes/mcp-web.ts";
import { until } from "../fixtures/until.ts";

const FIXTURE = path.join(import.meta.dirname, "../fixtures/mcp-server.ts");

const serverOver = (transport: LineTransport): McpServer =>
  new McpServer({
    name: "files",
    version: "1",
    open: () => Promise.resolve({ transport, end: transport.end }),
    initMs: 20_000,
    callMs: 20_000,
    delays: [],
    changed: () => undefined,
    notice: () => undefined,
  });

const never = (): AbortSignal => new AbortController().signal;

test("a program on the host has only the variables it is given, and is gone at the end", async () => {
  await using place = await scratch();
  const env = { PATH: process.env["PATH"] ?? "", TOKEN: "mine" };
  process.env["HARNESS_TEST_SECRET"] = "not for servers";
  const words = [process.execPath, FIXTURE, "good"];
  const transport = new LineTransport(programOnHost({ words, env, folder: place.path }));
  {
    await using server = serverOver(transport);
    await server.ready();
    const said = await server.call("env", { name: "TOKEN" }, never());
    assert.deepEqual(said, { kind: "ok", text: "mine" });
    assert.equal((await server.call("env", { name: "HARNESS_TEST_SECRET" }, never())).text, "(unset)");
    await server.call("write", { path: place.at("pid"), text: "here" }, never());
    assert.equal(await place.read("pid"), "here");
  }
  delete process.env["HARNESS_TEST_SECRET"];
  assert.deepEqual(transport.end(), { reason: "", isPlace: false });
});

/** A shell's words that leave a process behind in a group of its own, with the pipes; its number is in `pid`. */
const DAEMON =
  "setsid sh -c 'echo $$ > pid; exec sleep 3600' & while [ ! -s pid ]; do sleep 0.05; done; echo begun >&2;";

test("a server whose daemon keeps its pipes can be ended, and its own end is noticed", async () => {
  for (const [last, expected] of [
    ["exec cat", ""],
    ["exit 3", "it ended by itself (exit code 3); it printed: begun"],
  ] as const) {
    await using place = await scratch({});
    const words = ["/bin/sh", "-c", `${DAEMON} ${last}`];
    const env = { PATH: process.env["PATH"] ?? "" };
    const transport = new LineTransport(programOnHost({ words, env, folder: place.path }));
    const closed = Promise.withResolvers<void>();
    Object.assign(transport, { onclose: () => closed.resolve() });
    await transport.start();
    await until(() => transport.errors !== "");
    const pid = Number(await place.read("pid"));
    if (expected === "") await transport.close();
    await closed.promise;
    assert.equal(transport.end().reason, expected);
    process.kill(pid, "SIGKILL");
  }
});

test("a missing program and one that dies are reported with the reason and their last output", async () => {
  await using place = await scratch();
  const started = async (words: readonly string[]): Promise<McpServer> => {
    const server = serverOver(new LineTransport(programOnHost({ words, env: {}, folder: place.path })));
    await server.ready();
    return server;
  };
  await using missing = await started([place.at("none")]);
  assert.match(missing.why, /cannot be started: .*ENOENT/);
  await using dead = await started([process.execPath, FIXTURE, "dies-at-start"]);
  assert.match(dead.why, /exit code 3.*no licence/);
});

test("in a box a server is a command without a time limit, in a workspace folder, and ends with its box", async () => {
  const box = fakeBox({ workspace: "/repo" });
  const transport = new LineTransport(programInBox(box, { words: ["cat"], env: { A: "b" }, folder: "sub" }));
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  Object.assign(transport, { onclose: resolve });
  await transport.start();
  const [asked] = box.asked;
  assert.deepEqual(
    [asked?.words, asked?.env, asked?.folder, asked?.timeoutMs],
    [["cat"], { A: "b" }, "/repo/sub", 0],
  );
  box.lose("the engine went away");
  await closed;
  assert.ok(transport.end().isPlace);
});

/** As the gate gives it, without any judgement. */
const plainly: OwnRequests = {
  send: async ({ url, method, headers, body }, signal) => {
    const sent = body === undefined ? {} : { body: Buffer.from(body) };
    const answer = await fetch(url, { method, headers, signal, ...sent });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return {
      kind: "answered",
      status: answer.status,
      headers: [...answer.headers],
      body: Readable.from([bytes]),
    };
  },
};

async function opened(web: McpWeb, delays: readonly number[]) {
  const notices: string[] = [];
  const server = new McpServer({
    name: "web",
    version: "1",
    open: () => {
      const transport = httpTransport(web.url, {}, plainly);
      return Promise.resolve({ transport, end: () => ({ reason: "", isPlace: false }) });
    },
    initMs: 5000,
    callMs: 5000,
    delays,
    changed: () => undefined,
    notice: (text) => notices.push(text),
  });
  await server.ready();
  return { server, notices, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

test("a server that forgot its session is reported, reinitialised after a while and used again", async () => {
  await using web = await startMcpWeb();
  await using here = await opened(web, [10, 10]);
  const { server, notices } = here;
  assert.equal((await server.call("echo", { text: "one" }, never())).text, "one");
  web.forget();
  const lost = await server.call("echo", { text: "two" }, never());
  assert.equal(lost.kind, "failed");
  assert.match(lost.text, /The MCP server web is not available: it no longer knows its session/);
  assert.deepEqual(server.tools, []);
  await until(() => server.isUp);
  assert.equal((await server.call("echo", { text: "three" }, never())).text, "three");
  assert.deepEqual(
    notices.map((text) => text.replace(/ in .*/, "")),
    [
      "the MCP server web and its tools are not available: it no longer knows its session; it will be restarted",
      "the MCP server web is available again",
    ],
  );
  assert.equal(web.heard.filter(({ body }) => body.includes('"initialize"')).length, 2);
});

test("a server that keeps forgetting is given up, and an error answer does not count as forgetting", async () => {
  await using web = await startMcpWeb();
  await using here = await opened(web, []);
  const { server, notices } = here;
  assert.equal((await server.call("fail", {}, never())).kind, "failed");
  assert.ok(server.isUp, "the twin");
  web.forget();
  await server.call("echo", { text: "two" }, never());
  assert.match(notices.join(), /no longer knows its session; no further attempt after 1 start/);
  assert.equal(server.isUp, false);
});

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}

const answered = (
  status: number,
  body: AsyncIterable<Uint8Array>,
  headers: readonly (readonly [string, string])[] = [],
): OwnAnswer => ({
  kind: "answered",
  status,
  headers,
  body,
});

for (const [what, status, headers, expected] of [
  [
    "redirects to another host",
    302,
    [["location", "http://169.254.169.254/"]],
    /redirects to http:\/\/169\.254/,
  ],
  [
    "redirects within its host",
    307,
    [["location", "/other\u001b[2J"]],
    /redirects to \/other␛\[2J \(HTTP 307\)/,
  ],
  ["needs a key", 401, [["www-authenticate", "Bearer"]], /refuses the request \(HTTP 401\).*"headers"/],
  ["needs more than a key", 403, [["www-authenticate", 'Bearer error="insufficient_scope"']], /\(HTTP 403\)/],
  ["is overloaded", 429, [], /^HTTP 429: /],
] as const)
  test(`a server that ${what} is requested at no other address, and the reason is reported`, async () => {
    const asked: string[] = [];
    const send: OwnRequests["send"] = ({ url }) => {
      asked.push(url);
      return Promise.resolve({ kind: "answered", status, headers, body: Readable.from([]) });
    };
    await using server = new McpServer({
      name: "web",
      version: "1",
      open: () => {
        const transport = httpTransport("http://127.0.0.1:1/mcp", { authorization: "Bearer k" }, { send });
        return Promise.resolve({ transport, end: () => ({ reason: "", isPlace: false }) });
      },
      initMs: 5000,
      callMs: 5000,
      delays: [],
      changed: () => undefined,
      notice: () => undefined,
    });
    await server.ready();
    assert.match(server.why, expected);
    assert.deepEqual([...new Set(asked)], ["http://127.0.0.1:1/mcp"]);
  });

test("a client's request to fetch is sent unchanged, and its answer is streamed", async () => {
  const asked: OwnRequest[] = [];
  const fetch = fetchBy({
    send: (request) => {
      asked.push(request);
      return Promise.resolve(answered(200, pieces("{", "}"), [["content-type", "application/json"]]));
    },
  });
  const response = await fetch(new URL("http://example.org/a"), {
    method: "post",
    headers: new Headers({ "X-A": "b" }),
    body: "{}",
  });
  assert.deepEqual(asked, [
    { url: "http://example.org/a", method: "POST", headers: { "x-a": "b" }, body: "{}" },
  ]);
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/json"]);
  assert.deepEqual(await response.json(), {});
});

test("a redirect is returned instead of followed, some answers have no body, and leaving a body ends it", async () => {
  const left: string[] = [];
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield await Promise.resolve(Buffer.from("x"));
    } finally {
      left.push("left");
    }
  }
  const answers = [
    answered(302, pieces(), [["location", "/b"]]),
    answered(204, endless()),
    answered(200, endless()),
  ];
  const fetch = fetchBy({ send: () => Promise.resolve(answers.shift() ?? answered(500, pieces())) });
  assert.equal((await fetch("http://example.org/")).headers.get("location"), "/b");
  assert.deepEqual([(await fetch("http://example.org/")).body, left], [null, ["left"]]);
  await (await fetch("http://example.org/")).body?.cancel();
  assert.deepEqual(left, ["left", "left"]);
});

test("a refused or unreachable request rejects with its reason, and so does an unsupported body", async () => {
  const refused = fetchBy({
    send: () => Promise.resolve({ kind: "refused", rule: "not-granted", reason: "not granted" }),
  });
  await assert.rejects(refused("http://example.org/"), /^Error: not granted$/);
  await assert.rejects(refused("http://example.org/", { method: "POST", body: new FormData() }), TypeError);
});
