import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import type { OwnRequests } from "../../src/core/network.ts";
import { McpServer } from "../../src/extensions/mcp-client.ts";
import { httpTransport } from "../../src/extensions/mcp-transports.ts";
import { type McpWeb, startMcpWeb } from "../fakes/mcp-web.ts";
import { until } from "../fixtures/until.ts";

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

const never = (): AbortSignal => new AbortController().signal;

test("a server that has forgotten its session is told of, greeted anew after a while, and used again", async () => {
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

test("a server that forgets again and again is given up; an answer that is an error is no such thing", async () => {
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
