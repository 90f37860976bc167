import assert from "node:assert/strict";
import test from "node:test";
import { ollamaEmbedder } from "../../src/models/embeddings.ts";
import { askOllama, ollamaStream, Refused } from "../../src/models/providers/ollama-client.ts";
import { startLoopback, type Served } from "../fakes/loopback.ts";

const NEVER = new AbortController().signal;

const stream = (baseUrl: string, signal = NEVER): Promise<AsyncGenerator<unknown, void>> =>
  ollamaStream({
    baseUrl,
    signal,
    ask: (client) => client.chat({ model: "m", stream: true }),
    longestLine: 1000,
    strange: "strange",
    unfinished: "unfinished",
  });

async function linesFrom(served: Served): Promise<readonly unknown[]> {
  await using server = await startLoopback([served]);
  const lines: unknown[] = [];
  try {
    for await (const line of await stream(server.url)) lines.push(line);
  } catch (thrown) {
    assert.ok(thrown instanceof Error);
    lines.push(thrown.message);
  }
  return lines;
}

test("no header of the client library and no key from the environment is sent", async () => {
  await using server = await startLoopback([{ body: '{"version":"1"}' }]);
  assert.deepEqual(await askOllama(server.url, NEVER, (client) => client.version()), {
    kind: "json",
    value: { version: "1" },
  });
  const [heard] = server.heard;
  assert.deepEqual(Object.keys(heard?.headers ?? {}).toSorted(), ["accept", "connection", "host"]);
});

const STREAMS: readonly (readonly [string, Served, readonly unknown[]])[] = [
  ["lines", { body: '{"a":1}\n{"done":true}\n{"b":2}\n' }, [{ a: 1 }, { done: true }]],
  [
    "a character in two pieces",
    { body: '{"a":"ö🙂"}\n{"done":true}', slice: 1 },
    [{ a: "ö🙂" }, { done: true }],
  ],
  ["an error that is null", { body: '{"error":null,"done":true}\n' }, [{ done: true }]],
  ["an error", { body: '{"a":1}\n{"error":"boom"}\n' }, [{ a: 1 }, "boom"]],
  ["an error in parts", { body: '{"error":{"message":"boom"}}\n' }, ['{"message":"boom"}']],
  ["a line that is not JSON", { body: '{"a":1}\n<html>\n{"done":true}\n' }, [{ a: 1 }, "strange"]],
  ["a line that is not an object", { body: "[1]\n" }, ["strange"]],
  ["an end too early", { body: '{"a":1}\n' }, [{ a: 1 }, "unfinished"]],
  ["no line", { body: "" }, ["unfinished"]],
];

for (const [sentence, served, expected] of STREAMS)
  test(`a stream with ${sentence} is read correctly`, async () => {
    assert.deepEqual(await linesFrom(served), expected);
  });

test("a refusal is thrown in the server's words, and nothing is printed", async (context) => {
  const printed = context.mock.method(console, "log", () => undefined);
  const page = { status: 502, headers: { "content-type": "text/html", "retry-after": "7" }, body: "<html>" };
  await using server = await startLoopback([{ status: 404, body: '{"error":"no model"}' }, page]);
  const refusals: unknown[] = [];
  for (let asked = 0; asked < 2; asked += 1)
    await stream(server.url).catch((thrown: unknown) => {
      assert.ok(thrown instanceof Refused);
      refusals.push([thrown.status, thrown.words, thrown.retryAfter]);
    });
  assert.deepEqual(refusals, [
    [404, "no model", undefined],
    [502, "", "7"],
  ]);
  assert.equal(printed.mock.callCount(), 0);
});

test("a request ends when its signal is aborted, before the headers and in the middle of the body", async () => {
  await using server = await startLoopback([{ body: ['{"a":1}\n'], ends: "silent" }]);
  const abort = new AbortController();
  const lines = await stream(server.url, abort.signal);
  assert.deepEqual(await lines.next(), { done: false, value: { a: 1 } });
  const next = lines.next();
  abort.abort();
  await assert.rejects(next);
  await server.left;
  await assert.rejects(stream(server.url, abort.signal));
  assert.equal(server.heard.length, 1);
});

test("one connection serves successive calls, embeddings and streams too", async () => {
  await using server = await startLoopback([
    { body: '{"models":[]}' },
    { body: '{"embeddings":[[1]]}' },
    { body: '{"done":true}\n' },
  ]);
  await askOllama(server.url, NEVER, (client) => client.list());
  await ollamaEmbedder(server.url, "m").embed(["a"], NEVER);
  for await (const line of await stream(server.url)) assert.deepEqual(line, { done: true });
  assert.equal(new Set(server.heard.map(({ port }) => port)).size, 1);
});
