import assert from "node:assert/strict";
import test from "node:test";
import { LineTransport } from "../../src/extensions/mcp-transports.ts";
import { McpServer, toolResult } from "../../src/extensions/mcp-client.ts";
import { type FakeProgram, fakeProgram } from "../fakes/mcp-program.ts";
import { until } from "../fixtures/until.ts";

interface Opened extends AsyncDisposable {
  readonly server: McpServer;
  readonly program: FakeProgram;
  readonly notices: string[];
  readonly changes: () => number;
}

interface Given {
  readonly initMs?: number;
  readonly slow?: () => string;
  readonly callMs?: number;
  readonly delays?: readonly number[];
}

async function opened(scenario: string | ((start: number) => string), given: Given = {}): Promise<Opened> {
  const program = fakeProgram(typeof scenario === "string" ? () => scenario : scenario);
  const notices: string[] = [];
  const state = { changes: 0 };
  const server = new McpServer({
    name: "files",
    version: "1",
    open: () => {
      const transport = new LineTransport(program.start);
      return Promise.resolve({ transport, end: transport.end });
    },
    initMs: given.initMs ?? 5000,
    callMs: given.callMs ?? 5000,
    ...(given.slow === undefined ? {} : { slow: given.slow }),
    delays: given.delays ?? [],
    changed: () => (state.changes += 1),
    notice: (text) => notices.push(text),
  });
  await server.ready();
  return {
    server,
    program,
    notices,
    changes: () => state.changes,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const namesOf = ({ server }: Opened): readonly string[] =>
  server.tools.map((tool) => String((tool as { readonly name?: unknown }).name));

const never = (): AbortSignal => new AbortController().signal;

test("a server is started, lists its tools, and answers", async () => {
  await using files = await opened("good");
  assert.ok(files.server.isUp);
  assert.ok(namesOf(files).includes("echo"));
  const said = await files.server.call("echo", { text: "hello" }, never());
  assert.deepEqual(said, { kind: "ok", text: "hello" });
  assert.equal((await files.server.call("fail", {}, never())).kind, "failed");
  assert.deepEqual(files.notices, []);
});

test("many pages are one list", async () => {
  await using files = await opened("thousands");
  assert.equal(files.server.tools.length, 2000);
});

for (const [scenario, why] of [
  ["hangs-at-start", /not ready within/],
  ["dies-at-start", /exit code 3\); it printed: no licence␛\[31m found/],
  ["dies-with-a-trace", /exit code 1\); it printed: Error: Cannot find module 'clock'/],
  ["floods", /without being asked/],
  ["floods-answers", /not MCP/],
  ["endless-line", /a line longer than 8\.0 MiB/],
  ["prose", /not MCP/],
  ["old", /protocol version/],
  ["no-list", /not a list/],
] as const)
  test(`a server that ${scenario} has no tools, which is said once, and no call to it waits`, async () => {
    await using files = await opened(scenario, { initMs: scenario === "hangs-at-start" ? 100 : 60_000 });
    assert.ok(!files.server.isUp);
    assert.deepEqual(namesOf(files), []);
    assert.equal(files.notices.length, 1);
    assert.match(files.notices[0] ?? "", why);
    const result = await files.server.call("echo", { text: "a" }, never());
    assert.equal(result.kind, "failed");
    assert.match(result.text, /is not available/);
    await files.server.ready();
    assert.equal(files.notices.length, 1);
  });

const slow = (): string => "it loads itself";

test("one that is too slow is told with the cause and what would help; one that ends is not", async () => {
  await using hangs = await opened("hangs-at-start", { initMs: 100, slow });
  assert.match(hangs.server.why, /^it was not ready within 100 ms: it loads itself$/);
  await using dies = await opened("dies-at-start", { slow });
  assert.doesNotMatch(dies.server.why, /loads itself/);
});

test("a greeting before the first message is passed over", async () => {
  await using files = await opened("greets");
  assert.ok(files.server.isUp);
});

test("pages without an end are cut", async () => {
  await using files = await opened("endless-pages");
  assert.equal(files.server.tools.length, 40);
});

test("a call that hangs is timed out, and its server is told to stop", async () => {
  await using files = await opened("good", { callMs: 50 });
  const result = await files.server.call("hang", {}, never());
  assert.equal(result.kind, "timed_out");
  await until(() => cancelledIn(files).length > 0);
  assert.ok(files.server.isUp);
});

test("a call that is cancelled ends at once, and its server is told to stop", async () => {
  await using files = await opened("good");
  const stop = new AbortController();
  const call = files.server.call("hang", {}, stop.signal);
  await until(() => files.program.heard.some((each) => JSON.stringify(each).includes('"hang"')));
  stop.abort(new Error("enough"));
  assert.equal((await call).kind, "cancelled");
  await until(() => cancelledIn(files).length > 0);
});

const cancelledIn = ({ program }: Opened): readonly unknown[] =>
  program.heard.filter((each) => JSON.stringify(each).includes("notifications/cancelled"));

test("answers to what nobody asked are no answers", async () => {
  await using files = await opened("wrong-ids", { callMs: 100 });
  assert.equal((await files.server.call("echo", { text: "a" }, never())).kind, "timed_out");
});

test("a server that asks for a model, a person or folders is refused, and answered when it asks whether we live", async () => {
  await using files = await opened("asks-back");
  const { text } = await files.server.call("echo", {}, never());
  assert.deepEqual(JSON.parse(text), {
    "sampling/createMessage": -32_601,
    "elicitation/create": -32_601,
    "roots/list": -32_601,
    "made/up": -32_601,
    ping: "answered",
  });
});

test("tools that come are there once the server says so", async () => {
  await using files = await opened("good");
  const before = files.changes();
  await files.server.call("grow", {}, never());
  await until(() => files.changes() > before);
  assert.ok(namesOf(files).includes("grown1"));
});

test("a server that was started anew while its last list was waited out is listed when it says so, too", async () => {
  await using files = await opened("good", { delays: [1] });
  const before = files.changes();
  await files.server.call("grow", {}, never());
  await until(() => files.changes() > before);
  await files.server.call("die", {}, never());
  await until(() => files.server.isUp);
  assert.ok(!namesOf(files).includes("grown1"));
  await files.server.call("grow", {}, never());
  await until(() => namesOf(files).includes("grown1"));
});

test("a storm of changed lists is one more list, not one for each", async () => {
  await using files = await opened("storm");
  await until(() => files.changes() > 1);
  const lists = files.program.heard.filter((each) => JSON.stringify(each).includes("tools/list"));
  assert.equal(lists.length, 2);
});

test("a server that dies at a call fails it, loses its tools, says so once, and is started again", async () => {
  await using files = await opened("good", { delays: [1, 1] });
  const result = await files.server.call("die", {}, never());
  assert.equal(result.kind, "failed");
  assert.match(result.text, /exit code 9/);
  assert.deepEqual(namesOf(files), []);
  await until(() => files.server.isUp);
  assert.ok(namesOf(files).includes("echo"));
  assert.equal(files.program.starts(), 2);
  assert.match(
    files.notices[0] ?? "",
    /its tools are not available: it ended by itself \(exit code 9\); it will be restarted/,
  );
  assert.match(files.notices[1] ?? "", /is available again/);
  assert.equal(files.notices.length, 2);
});

test("a server that always dies is given up, with a last word", async () => {
  await using files = await opened((start) => (start === 1 ? "good" : "dies-at-start"), { delays: [1, 1] });
  await files.server.call("die", {}, never());
  await until(() => files.notices.length === 2);
  assert.equal(files.program.starts(), 3);
  assert.match(files.notices[1] ?? "", /no further attempt after 3 starts; see: harness mcp logs files/);
  assert.match((await files.server.call("echo", {}, never())).text, /is not available/);
});

test("a server whose box is gone is started in the next one, and nothing is said", async () => {
  await using files = await opened("good");
  files.program.end("place", "the box was closed");
  await until(() => !files.server.isUp);
  assert.deepEqual([namesOf(files), files.notices], [[], []]);
  await files.server.ready();
  assert.ok(files.server.isUp);
  assert.deepEqual(files.notices, []);
});

test("what cannot be started now is tried when it is wanted next", async () => {
  const program = fakeProgram(() => "good");
  let tries = 0;
  await using server = new McpServer({
    name: "files",
    version: "1",
    open: () => {
      tries += 1;
      if (tries === 1) return Promise.reject(new Error("there is no box"));
      return Promise.resolve({
        transport: new LineTransport(program.start),
        end: () => ({ reason: "", isPlace: false }),
      });
    },
    initMs: 5000,
    callMs: 5000,
    changed: () => undefined,
    notice: assert.fail,
  });
  await server.ready();
  assert.ok(!server.isUp);
  await server.ready();
  assert.ok(server.isUp);
});

test("its end waits for no server that is still starting", async () => {
  const files = await opened("good");
  await files.server[Symbol.asyncDispose]();
  assert.ok(!files.server.isUp);
  assert.equal((await files.server.call("echo", {}, never())).kind, "failed");
  const program = fakeProgram(() => "hangs-at-start");
  const server = new McpServer({
    name: "files",
    version: "1",
    open: () =>
      Promise.resolve({
        transport: new LineTransport(program.start),
        end: () => ({ reason: "", isPlace: false }),
      }),
    initMs: 600_000,
    callMs: 5000,
    changed: () => undefined,
    notice: assert.fail,
  });
  const ready = server.ready();
  await server[Symbol.asyncDispose]();
  await ready;
});

test("resources and prompts are asked for in the same way", async () => {
  await using files = await opened("good");
  assert.ok(files.server.offers("resources"));
  const read = await files.server.ask("resources/read", { uri: "mem:a" }, never());
  assert.equal(read.text, "[mem:a]\nthe resource");
  assert.match((await files.server.ask("prompts/get", { name: "p" }, never())).text, /say so/);
});

const text = (said: string) => ({ type: "text", text: said });

for (const [name, given, kind, expected] of [
  ["texts are lines", { content: [text("a"), text("b")] }, "ok", "a\nb"],
  ["an error is a failure", { content: [text("no")], isError: true }, "failed", "no"],
  ["nothing is said to be nothing", { content: [] }, "ok", "(nothing)"],
  [
    "a failure without words has some",
    { isError: true, content: [] },
    "failed",
    "It failed without a message.",
  ],
  ["a value is JSON", { content: [], structuredContent: { a: 1 } }, "ok", '{\n "a": 1\n}'],
  [
    "a value that stands there as text is not said twice",
    { content: [text('{"a":1}')], structuredContent: { a: 1 } },
    "ok",
    '{"a":1}',
  ],
  ["nor is a number in a value", { content: [text("3")], structuredContent: { result: 3 } }, "ok", "3"],
  ["nor a list in a value", { content: [text("[1, 2]")], structuredContent: { r: [1, 2] } }, "ok", "[1, 2]"],
  [
    "nor a list in a value, item by item",
    { content: [text("1"), text("a"), text('{"b": 2}')], structuredContent: { result: [1, "a", { b: 2 }] } },
    "ok",
    '1\na\n{"b": 2}',
  ],
  [
    "a value that says more is said",
    { content: [text("1"), text("2")], structuredContent: { result: [1, 2, 3] } },
    "ok",
    '1\n2\n{\n "result": [\n  1,\n  2,\n  3\n ]\n}',
  ],
  ["nor is one text in a value", { content: [text("a")], structuredContent: { content: "a" } }, "ok", "a"],
  [
    "a picture is named",
    { content: [{ type: "image", data: "QUJD", mimeType: "image/\u202epng" }] },
    "ok",
    "[image image/<U+202E>png, 3 B: not passed on]",
  ],
  ["a resource is its text", { contents: [{ uri: "a:b", text: "in" }] }, "ok", "[a:b]\nin"],
  ["a list of another kind is JSON", { prompts: [] }, "ok", '{\n "prompts": []\n}'],
  ["what is hidden is shown", { content: [text("\u001b[31ma\u200bb")] }, "ok", "␛[31ma<U+200B>b"],
  ["no list is no answer", { content: "x" }, "failed", "The server's answer is not a valid MCP result."],
  ["nor is text", "x", "failed", "The server's answer is not a valid MCP result."],
] as const)
  test(name, () => {
    const result = toolResult(given);
    assert.deepEqual([result.kind, result.text], [kind, expected]);
  });

test("an answer has an end, in its parts, its length and its depth", () => {
  const many = toolResult({ content: Array.from({ length: 500 }, () => text("a")) });
  assert.match(many.text, /\[300 further parts are left out\]$/);
  const long = toolResult({ content: [text("x".repeat(2 ** 21))] });
  assert.ok(long.text.length < 2 ** 20);
  assert.match(long.text, /the rest is left out/);
  const deep: unknown = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
  assert.equal(toolResult({ structuredContent: deep }).text, "[a value that is nested too deep]");
});
