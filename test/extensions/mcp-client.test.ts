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

test("many pages are combined into one list", async () => {
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
  test(`a server that ${scenario} has no tools, which is reported once, and calls to it do not wait`, async () => {
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

test("a server that is too slow is reported with the cause and a remedy, one that exits is not", async () => {
  await using hangs = await opened("hangs-at-start", { initMs: 100, slow });
  assert.match(hangs.server.why, /^it was not ready within 100 ms: it loads itself$/);
  await using dies = await opened("dies-at-start", { slow });
  assert.doesNotMatch(dies.server.why, /loads itself/);
});

test("output before the first message is ignored", async () => {
  await using files = await opened("greets");
  assert.ok(files.server.isUp);
});

test("endless pages are cut off", async () => {
  await using files = await opened("endless-pages");
  assert.equal(files.server.tools.length, 40);
});

test("a call that hangs times out, and its server is told to stop", async () => {
  await using files = await opened("good", { callMs: 50 });
  const result = await files.server.call("hang", {}, never());
  assert.equal(result.kind, "timed_out");
  await until(() => cancelledIn(files).length > 0);
  assert.ok(files.server.isUp);
});

test("a cancelled call ends at once, and its server is told to stop", async () => {
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

test("answers to unknown requests are ignored", async () => {
  await using files = await opened("wrong-ids", { callMs: 100 });
  assert.equal((await files.server.call("echo", { text: "a" }, never())).kind, "timed_out");
});

test("requests of a server for a model, a person or folders are refused, and its pings are answered", async () => {
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

test("new tools are available once the server announces them", async () => {
  await using files = await opened("good");
  const before = files.changes();
  await files.server.call("grow", {}, never());
  await until(() => files.changes() > before);
  assert.ok(namesOf(files).includes("grown1"));
});

test("a server restarted while a list was pending is listed when it announces a change", async () => {
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

test("a storm of change announcements causes only one more list", async () => {
  await using files = await opened("storm");
  await until(() => files.changes() > 1);
  const lists = files.program.heard.filter((each) => JSON.stringify(each).includes("tools/list"));
  assert.equal(lists.length, 2);
});

test("a server that dies during a call fails it, loses its tools, is reported once, and is restarted", async () => {
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

test("a server that keeps dying is given up, with a final notice", async () => {
  await using files = await opened((start) => (start === 1 ? "good" : "dies-at-start"), { delays: [1, 1] });
  await files.server.call("die", {}, never());
  await until(() => files.notices.length === 2);
  assert.equal(files.program.starts(), 3);
  assert.match(files.notices[1] ?? "", /no further attempt after 3 starts; see: harness mcp logs files/);
  assert.match((await files.server.call("echo", {}, never())).text, /is not available/);
});

test("a server whose box is gone is started in the next one, without a notice", async () => {
  await using files = await opened("good");
  files.program.end("place", "the box was closed");
  await until(() => !files.server.isUp);
  assert.deepEqual([namesOf(files), files.notices], [[], []]);
  await files.server.ready();
  assert.ok(files.server.isUp);
  assert.deepEqual(files.notices, []);
});

test("a start that failed is retried when the server is next needed", async () => {
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

test("disposing does not wait for a server that is still starting", async () => {
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

test("resources and prompts are requested in the same way", async () => {
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
  ["an empty answer is stated as such", { content: [] }, "ok", "(nothing)"],
  [
    "a failure without text gets one",
    { isError: true, content: [] },
    "failed",
    "It failed without a message.",
  ],
  ["a value is JSON", { content: [], structuredContent: { a: 1 } }, "ok", '{\n "a": 1\n}'],
  [
    "a value already present as text is not repeated",
    { content: [text('{"a":1}')], structuredContent: { a: 1 } },
    "ok",
    '{"a":1}',
  ],
  [
    "a number already present as text is not repeated",
    { content: [text("3")], structuredContent: { result: 3 } },
    "ok",
    "3",
  ],
  [
    "a list already present as text is not repeated",
    { content: [text("[1, 2]")], structuredContent: { r: [1, 2] } },
    "ok",
    "[1, 2]",
  ],
  [
    "a list already present as separate texts is not repeated",
    { content: [text("1"), text("a"), text('{"b": 2}')], structuredContent: { result: [1, "a", { b: 2 }] } },
    "ok",
    '1\na\n{"b": 2}',
  ],
  [
    "a value with more than the text is shown",
    { content: [text("1"), text("2")], structuredContent: { result: [1, 2, 3] } },
    "ok",
    '1\n2\n{\n "result": [\n  1,\n  2,\n  3\n ]\n}',
  ],
  [
    "a single text in a value is not repeated",
    { content: [text("a")], structuredContent: { content: "a" } },
    "ok",
    "a",
  ],
  [
    "a picture is named",
    { content: [{ type: "image", data: "QUJD", mimeType: "image/\u202epng" }] },
    "ok",
    "[image image/<U+202E>png, 3 B: not passed on]",
  ],
  ["a resource is its text", { contents: [{ uri: "a:b", text: "in" }] }, "ok", "[a:b]\nin"],
  ["a list of another kind is shown as JSON", { prompts: [] }, "ok", '{\n "prompts": []\n}'],
  ["hidden characters are made visible", { content: [text("\u001b[31ma\u200bb")] }, "ok", "␛[31ma<U+200B>b"],
  [
    "a missing list is not a valid answer",
    { content: "x" },
    "failed",
    "The server's answer is not a valid MCP result.",
  ],
  ["a plain text is not a valid answer", "x", "failed", "The server's answer is not a valid MCP result."],
] as const)
  test(name, () => {
    const result = toolResult(given);
    assert.deepEqual([result.kind, result.text], [kind, expected]);
  });

test("an answer is bounded in parts, length and depth", () => {
  const many = toolResult({ content: Array.from({ length: 500 }, () => text("a")) });
  assert.match(many.text, /\[300 further parts are left out\]$/);
  const long = toolResult({ content: [text("x".repeat(2 ** 21))] });
  assert.ok(long.text.length < 2 ** 20);
  assert.match(long.text, /the rest is left out/);
  const deep: unknown = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
  assert.equal(toolResult({ structuredContent: deep }).text, "[a value that is nested too deep]");
  // Indented, a value could be many times as long as it was sent.
  let wide: unknown = Array.from({ length: 100_000 }, () => 0);
  for (let level = 0; level < 50; level += 1) wide = [wide];
  assert.equal(toolResult({ structuredContent: wide }).text, JSON.stringify(wide));
});
