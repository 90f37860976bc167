import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import test from "node:test";
import { Client, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import type { ToolResult } from "../../src/core/tool.ts";
import {
  type AnsweredCall,
  type McpHost,
  type OfferedCall,
  serveMcp,
} from "../../src/extensions/mcp-server.ts";

interface Served {
  readonly input: PassThrough;
  readonly written: () => readonly Record<string, unknown>[];
  readonly calls: readonly OfferedCall[];
  readonly serving: ReturnType<typeof serveMcp>;
  readonly send: (...messages: readonly (object | string)[]) => void;
  readonly until: (holds: (written: readonly Record<string, unknown>[]) => boolean) => Promise<void>;
}

type Answer = (call: OfferedCall, signal: AbortSignal) => Promise<ToolResult>;

const said = (text: string): ToolResult => ({ kind: "ok", text });

/** A server over two pipes, whose host gives the scripted answers. */
function served(answer: Answer = () => Promise.resolve(said("done")), write?: () => Promise<void>): Served {
  const input = new PassThrough();
  const written: Record<string, unknown>[] = [];
  const calls: OfferedCall[] = [];
  const heard = new EventTarget();
  const host: McpHost = {
    version: "1.2.3",
    instructions: "how it is used",
    tools: [
      { name: "bash", description: "runs", schema: { type: "object", properties: {} }, reads: false },
      { name: "read_file", description: "reads", schema: { type: "object" }, reads: true },
    ],
    call: async (call, signal): Promise<AnsweredCall> => {
      calls.push(call);
      return { result: await answer(call, signal), about: { session: "s1" } };
    },
  };
  const put = async (message: object): Promise<void> => {
    written.push(JSON.parse(JSON.stringify(message)) as Record<string, unknown>);
    heard.dispatchEvent(new Event("written"));
    await write?.();
  };
  const serving = serveMcp(host, { input, write: put }, { progressMs: 5 });
  return {
    input,
    written: () => written,
    calls,
    serving,
    send: (...messages) => {
      for (const each of messages) input.write(typeof each === "string" ? each : `${JSON.stringify(each)}\n`);
    },
    until: async (holds) => {
      while (!holds(written)) await once(heard, "written");
    },
  };
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: "hello",
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "probe", version: "7" } },
};
const call = (id: number, name: string, more: object = {}): object => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: { n: id }, ...more },
});
const answersOf = (place: Served, id: unknown) => place.written().filter((each) => each["id"] === id);
const errorOf = (place: Served, id: unknown): unknown => answersOf(place, id)[0]?.["error"];

async function opened(answer?: Answer, write?: () => Promise<void>): Promise<Served> {
  const place = served(answer, write);
  place.send(INITIALIZE, { jsonrpc: "2.0", method: "notifications/initialized" });
  await place.until((written) => written.length === 1);
  return place;
}

/** Each with what the client agrees on, and what it asks for. */
const ERAS = [
  ["2025-11-25", "legacy"],
  ["2026-07-28", "auto"],
  ["2026-07-28", { pin: "2026-07-28" }],
] as const;

for (const [version, mode] of ERAS)
  test(`the SDK's client gets tools and instructions, calls, and is answered: ${version}, ${JSON.stringify(mode)}`, async () => {
    const place = served(({ args }) => Promise.resolve(said(`got ${JSON.stringify(args)}`)));
    const client = new Client({ name: "unit", version: "1" }, { versionNegotiation: { mode } });
    const transport: Transport = {
      start: () => Promise.resolve(),
      close: () => Promise.resolve(),
      send: (message) => Promise.resolve(place.send(message)),
    };
    let told = 0;
    const deliver = (): void => {
      for (const message of place.written().slice(told)) transport.onmessage?.(message as JSONRPCMessage);
      told = place.written().length;
    };
    const timer = setInterval(deliver, 1);
    try {
      await client.connect(transport);
      assert.equal(client.getNegotiatedProtocolVersion(), version);
      assert.equal(client.getInstructions(), "how it is used");
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
        [
          ["bash", false],
          ["read_file", true],
        ],
      );
      const result = await client.callTool({ name: "bash", arguments: { command: "ls" } });
      assert.deepEqual(result.content, [{ type: "text", text: 'got {"command":"ls"}' }]);
      assert.equal(result.isError, false);
      assert.deepEqual(place.calls, [{ name: "bash", args: { command: "ls" }, client: "unit 1" }]);
    } finally {
      clearInterval(timer);
      await place.serving.close();
    }
  });

const ENDINGS: readonly (readonly [ToolResult, boolean, object])[] = [
  [{ kind: "ok", text: "t", exitCode: 0, full: "o1" }, false, { kind: "ok", exit_code: 0, full: "o1" }],
  [
    { kind: "failed", cause: "program", text: "t", exitCode: 3 },
    true,
    { kind: "failed", cause: "program", exit_code: 3 },
  ],
  [{ kind: "denied", cause: "policy", text: "why" }, true, { kind: "denied", cause: "policy" }],
  [{ kind: "blocked", cause: "filesystem", text: "why" }, true, { kind: "blocked", cause: "filesystem" }],
  [{ kind: "invalid", issues: ["x"], text: "why" }, true, { kind: "invalid" }],
  [{ kind: "timed_out", cause: "timeout", text: "t" }, true, { kind: "timed_out", cause: "timeout" }],
];

for (const [result, isError, about] of ENDINGS)
  test(`a call that is ${result.kind} is ${isError ? "an error with its reason" : "a result"}`, async () => {
    const place = await opened(() => Promise.resolve(result));
    place.send(call(1, "bash"));
    await place.until(() => answersOf(place, 1).length > 0);
    const own = Object.fromEntries(Object.entries(about).map(([key, value]) => [`harness/${key}`, value]));
    assert.deepEqual(answersOf(place, 1)[0]?.["result"], {
      content: [{ type: "text", text: result.text }],
      isError,
      _meta: { ...own, "harness/session": "s1" },
    });
    await place.serving.close();
  });

test("an invalid message is answered with an error, and the server continues", async () => {
  const place = await opened();
  place.send("{no json\n", '[{"jsonrpc":"2.0"}]\n', "17\n", '{"jsonrpc":"1.0","id":5,"method":"x"}\n');
  place.send({ jsonrpc: "2.0", id: 6, method: "no/such" }, { jsonrpc: "2.0", id: 7, method: "tools/call" });
  place.send({ jsonrpc: "2.0", id: 99, result: {} }, { jsonrpc: "2.0", method: "no/such" });
  place.send(call(8, "bash"));
  await place.until(() => answersOf(place, 8).length > 0);
  assert.deepEqual(
    answersOf(place, null).map((each) => (each["error"] as { code: number }).code),
    [-32_700, -32_600, -32_600],
  );
  for (const [id, code] of [
    [5, -32_600],
    [6, -32_601],
    [7, -32_602],
  ])
    assert.equal((errorOf(place, id) as { code: number }).code, code, `${id}`);
  assert.equal(place.calls.length, 1);
  await place.serving.close();
});

test("a message that is too long is refused, and the next one is served", async () => {
  const place = await opened();
  place.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"`);
  for (let n = 0; n < 9; n += 1) place.send("y".repeat(1024 * 1024));
  place.send('"}}\n', call(2, "bash"));
  await place.until(() => answersOf(place, 2).length > 0);
  assert.match(JSON.stringify(errorOf(place, null)), /larger than 8 MiB/);
  await place.serving.close();
});

test("a call cancelled by the client is ended and gets no answer", async () => {
  const ended = Promise.withResolvers<void>();
  const place = await opened(async (_, signal) => {
    await once(signal, "abort");
    ended.resolve();
    return { kind: "cancelled", cause: "user", text: "" };
  });
  place.send(call(1, "bash"));
  await new Promise((resolve) => setImmediate(resolve));
  place.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  await ended.promise;
  place.send({ jsonrpc: "2.0", id: 2, method: "tools/list" });
  await place.until(() => answersOf(place, 2).length > 0);
  assert.deepEqual(answersOf(place, 1), []);
  await place.serving.close();
});

test("the number of open calls is limited and ids must be unique, and excess calls are refused without running", async () => {
  const gate = Promise.withResolvers<ToolResult>();
  const place = await opened(() => gate.promise);
  place.send(call(0, "bash"), call(0, "bash"));
  for (let id = 1; id < 300; id += 1) place.send(call(id, "bash"));
  await place.until((written) => written.length >= 1 + 1 + 300 - 64);
  assert.match(JSON.stringify(errorOf(place, 0)), /this id is in use/);
  assert.match(JSON.stringify(errorOf(place, 299)), /Too many requests/);
  assert.equal(place.calls.length, 64);
  gate.resolve(said("late"));
  await place.until((written) => written.length === 1 + 1 + 300);
  place.send(call(500, "bash"));
  await place.until(() => answersOf(place, 500).length > 0);
  assert.equal(errorOf(place, 500), undefined);
  await place.serving.close();
});

test("cheap requests in a burst are all answered", async () => {
  const place = await opened();
  for (let id = 0; id < 500; id += 1) place.send({ jsonrpc: "2.0", id, method: "tools/list" });
  await place.until((written) => written.length === 501);
  assert.deepEqual(
    place.written().filter((each) => "error" in each),
    [],
  );
  await place.serving.close();
});

test("nothing more is read while the client does not read its answers", async () => {
  const gate = Promise.withResolvers<void>();
  const place = await opened(undefined, () => gate.promise);
  for (let id = 0; id < 50; id += 1) place.send({ jsonrpc: "2.0", id, method: "ping" });
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(place.written().length < 5, `${place.written().length} were written`);
  gate.resolve();
  await place.until((written) => written.length === 51);
  await place.serving.close();
});

test("a long call sends progress to a client that requests it", async () => {
  const gate = Promise.withResolvers<ToolResult>();
  const place = await opened(() => gate.promise);
  place.send(call(1, "bash", { _meta: { progressToken: "p" } }));
  await place.until(
    (written) => written.filter((each) => each["method"] === "notifications/progress").length > 2,
  );
  gate.resolve(said("done"));
  await place.until(() => answersOf(place, 1).length > 0);
  const shown = place
    .written()
    .flatMap((each) => (each["method"] === "notifications/progress" ? [each["params"]] : []));
  const steps = shown.map((each) => (each as { progress: number }).progress);
  assert.deepEqual(
    steps,
    steps.toSorted((a, b) => a - b),
  );
  assert.match(JSON.stringify(shown[0]), /"progressToken":"p".*"bash: running for 0 s"/);
  const count = place.written().length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(place.written().length, count);
  await place.serving.close();
});

test("a client that disconnects ends its running calls", async () => {
  const ended = Promise.withResolvers<void>();
  const place = await opened(async (_, signal) => {
    await once(signal, "abort");
    ended.resolve();
    return said("");
  });
  place.send(call(1, "bash"));
  await new Promise((resolve) => setImmediate(resolve));
  place.input.end();
  await place.serving.closed;
  await ended.promise;
});

test("the name of a client is one short line", async () => {
  const place = served();
  const clientInfo = { name: `evil\n\u001B[2J${"x".repeat(500)}`, version: "1" };
  place.send({ ...INITIALIZE, params: { ...INITIALIZE.params, clientInfo } }, call(1, "bash"));
  await place.until(() => answersOf(place, 1).length > 0);
  const client = place.calls[0]?.client ?? "";
  assert.equal(client.length, 60);
  assert.doesNotMatch(client, /[\n\u001B]/);
  await place.serving.close();
});
