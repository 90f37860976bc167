import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test from "node:test";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { EVENTS, JSON_TYPE, type Served, startLoopback } from "../fakes/loopback.ts";
import { type Measured, measured } from "../fixtures/measured.ts";
import { scratch } from "../fixtures/scratch.ts";

/** Replies of a model that have no end, or lost theirs, against the program as it is built. */

const MAX_MIB = 250;

const asked = (provider: string, url: string, ...more: readonly string[]): readonly string[] => [
  "run",
  "--json",
  "--intent",
  "direct",
  "--model",
  "m",
  "--provider",
  provider,
  "--base-url",
  url,
  ...more,
  "say something",
];

/** Nothing of it is an answer, and it cost no more memory than any run may. */
function isBroken(ran: Measured, reason: RegExp): void {
  const last = JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
  const said = ran.stdout.slice(-600) + ran.stderr.slice(-600);
  assert.deepEqual([ran.code, last["status"], last["answer"]], [5, "model", null], said);
  assert.match(String(last["reason"]), reason);
  assert.ok(ran.peak > 0 && ran.peak < MAX_MIB, `${ran.peak} MiB`);
}

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] });
const stream = (body: Served["body"] & object, ends: Served["ends"]): Served => ({
  headers: EVENTS,
  body,
  ...(ends === undefined ? {} : { ends }),
});
const delta = (fields: object): string =>
  `event: content_block_delta\n${event({ type: "content_block_delta", index: 0, delta: fields })}`;
const block = (content: object): string =>
  event({ type: "content_block_start", index: 0, content_block: content });

const argument = (args: string): string =>
  chunk({ tool_calls: [{ index: 0, function: { arguments: args } }] });
const BEGUN = chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "bash", arguments: "" } }] });
const WORDS = "and so it goes ".repeat(40);

const ENDLESS: Readonly<Record<string, readonly [provider: string, served: Served, reason: RegExp]>> = {
  "text in tokens": ["openai", stream([chunk({ content: "more " }).repeat(200)], "endless"), /endless/],
  "text in large pieces": ["openai", stream([chunk({ content: WORDS }).repeat(100)], "endless"), /endless/],
  "a line without its end": ["openai", stream(["data: ", "x".repeat(2 ** 20)], "endless"), /end/],
  "arguments of a call": ["openai", stream([BEGUN, argument(WORDS).repeat(20)], "endless"), /endless/],
  "calls with long names": [
    "openai",
    stream([chunk({ tool_calls: [{ index: 0, function: { name: "n".repeat(9000) } }] })], "endless"),
    /endless/,
  ],
  "empty events": ["openai", stream([": ping\n\n".repeat(50_000)], "endless"), /endless/],
  "empty lines of one event": ["openai", stream(["data:\n".repeat(50_000)], "endless"), /end/],
  "a whole answer": [
    "openai",
    {
      headers: JSON_TYPE,
      body: ['{"choices":[{"message":{"content":"', WORDS.repeat(2000)],
      ends: "endless",
    },
    /endless/,
  ],
  "the text of an error": [
    "openai",
    { status: 400, body: [WORDS.repeat(2000)], ends: "endless" },
    /HTTP 400/,
  ],
  "a signature": [
    "anthropic",
    stream(
      [
        block({ type: "thinking", thinking: "", signature: "" }),
        delta({ type: "signature_delta", signature: WORDS.repeat(100) }),
      ],
      "endless",
    ),
    /end/,
  ],
};

for (const [what, [provider, served, reason]] of Object.entries(ENDLESS))
  test(`${what} that never ends is a failure, and uses no memory`, async () => {
    await using place = await scratch();
    await using server = await startLoopback([served]);
    const url = provider === "openai" ? `${server.url}/v1` : server.url;
    isBroken(await measured(place, asked(provider, url)), reason);
  });

test("an Ollama that never stops is given up, whether its lines end or not", async () => {
  for (const piece of [`${JSON.stringify({ message: { content: WORDS } })}\n`, "x".repeat(65_536)]) {
    await using place = await scratch();
    const chat = (_body: unknown, response: ServerResponse): void => {
      const more = (): void => void (response.destroyed || response.write(piece.repeat(20), more));
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      more();
    };
    await using server = await startFakeOllama({ models: [{ name: "m" }], routes: { "/api/chat": chat } });
    isBroken(await measured(place, asked("ollama", server.url)), /end/);
  }
});

test("an endless list of models is a failure", async () => {
  await using place = await scratch();
  await using server = await startLoopback([
    { body: ['{"data":[', '{"id":"m"},'.repeat(9000)], ends: "endless" },
  ]);
  const words = ["model", "list", "--provider", "openai", "--base-url", `${server.url}/v1`];
  const ran = await measured(place, words);
  assert.equal(ran.code, 5, ran.stderr);
  assert.ok(ran.peak < MAX_MIB, `${ran.peak} MiB`);
});

test("a server that sends very slowly is given up when the time is up", async () => {
  await using place = await scratch();
  await using server = await startLoopback([stream([chunk({ content: "a" }), 300], "endless")]);
  const ran = await measured(place, asked("openai", `${server.url}/v1`, "--max-time", "2s"));
  assert.equal(ran.code, 3, ran.stderr);
});

const text = (words: string, finish: string): Served =>
  stream([chunk({ content: words }, finish), "data: [DONE]\n\n"], "done");

test("a truncated reply is continued, and one that keeps being truncated is a failure", async () => {
  for (const [replies, broken] of [
    [[text("one-", "length"), text("two", "stop")], undefined],
    [[text("one ", "length")], /cut off at its length limit/],
    [[text("one ", "content_filter")], /filtered/],
    [[stream([chunk({ content: "one " })], "done")], /broke off/],
  ] as const) {
    await using place = await scratch();
    // The first two requests ask for the list of models, which is empty here.
    await using server = await startLoopback([replies[0], replies[0], ...replies]);
    const ran = await measured(place, asked("openai", `${server.url}/v1`));
    if (broken === undefined) assert.match(ran.stdout, /"answer":"one-two"/);
    else isBroken(ran, broken);
  }
});

test("a truncated answer that must fit a schema is a failure, even if it fits", async () => {
  await using place = await scratch({ "form.json": '{"type":"integer"}' });
  await using server = await startLoopback([text("12", "length")]);
  const words = asked("openai", `${server.url}/v1`, "--output-schema", place.at("form.json"));
  isBroken(await measured(place, words), /cut off at its length limit/);
});

test("a long reply that ends is an answer", async () => {
  await using place = await scratch();
  const long = chunk({ content: WORDS }).repeat(1000);
  await using server = await startLoopback([stream([long, chunk({}, "stop"), "data: [DONE]\n\n"], "done")]);
  const ran = await measured(place, asked("openai", `${server.url}/v1`));
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(ran.stdout.includes(WORDS.repeat(50)));
});

test("a scripted model is bounded too", async () => {
  for (const [reply, reason] of [
    [{ text: WORDS, times: 1_000_000 }, /endless/],
    [{ thinking: WORDS, times: 1_000_000 }, /empty|endless/],
  ] as const) {
    await using place = await scratch();
    const file = await place.write("s.jsonl", `${JSON.stringify({ reply: [reply], repeat: "forever" })}\n`);
    const words = ["run", "--json", "--provider", "scripted", "--model", file, "--intent", "direct", "hello"];
    isBroken(await measured(place, words), reason);
  }
});
