import assert from "node:assert/strict";
import test from "node:test";
import type { ProviderEvent } from "../../src/core/model-provider.ts";
import { RememberedFallbacks } from "../../src/models/text-calls/text-protocol.ts";
import { type ModelWire, WireFailure } from "../../src/models/model-api.ts";
import { calls, failed, finished, REQUEST } from "../contract/provider-ask.ts";
import { asked, type Played, playing, providerOver, text } from "./ask.ts";

const CALL = '<tool_call>{"name": "list_dir", "arguments": {"path": "src"}}</tool_call>';
const LIST = [{ name: "list_dir", args: { path: "src" } }];
const unread = (raw: string): Played => [new WireFailure("server", "failed to parse the reply", { raw })];

test("calls in a reply that the server could not parse are found", async () => {
  const { wire, sent } = playing(unread(`I look. ${CALL}`));
  const answer = await asked(wire);
  assert.deepEqual([calls(answer), answer.text, sent.length], [LIST, "I look.", 1]);
  assert.deepEqual(finished(answer).notes, ["The server could not parse the reply; it was parsed here."]);
});

test("text of such a reply that was already shown is not shown twice", async () => {
  const { wire } = playing([text("I look. "), ...unread(`I look. ${CALL}`)]);
  const answer = await asked(wire);
  assert.deepEqual([calls(answer), answer.text], [LIST, "I look."]);
});

test("an unreadable reply is requested once more, then with the tools in the prompt, which is remembered", async () => {
  const { wire, sent } = playing(unread(""), unread("{"), [text(CALL)]);
  const fallbacks = new RememberedFallbacks();
  const answer = await asked(wire, { fallbacks });
  assert.deepEqual(calls(answer), LIST);
  assert.deepEqual(
    sent.map(({ nativeTools }) => nativeTools),
    [true, true, false],
  );
  assert.equal(fallbacks.has(REQUEST.model), true);
});

test("tools in the prompt are not remembered if they did not help", async () => {
  const { wire, sent } = playing(unread(""));
  const fallbacks = new RememberedFallbacks();
  const answer = await asked(wire, { fallbacks });
  assert.deepEqual([failed(answer).failure.kind, sent.length], ["server", 3]);
  assert.equal(fallbacks.has(REQUEST.model), false);
});

test("a model known to support no tools is not sent any", async () => {
  const { wire, sent } = playing([text(CALL)]);
  const fallbacks = new RememberedFallbacks();
  fallbacks.add(REQUEST.model, "it said so");
  assert.deepEqual(calls(await asked(wire, { fallbacks })), LIST);
  assert.deepEqual(
    sent.map(({ nativeTools, tools }) => [nativeTools, tools]),
    [[false, []]],
  );
});

test("a reply that has only thoughts is requested again without thinking", async () => {
  const { wire, sent } = playing([{ type: "thinking", text: "Hm." }], [text("Yes.")]);
  const answer = await asked(wire);
  assert.equal(answer.text, "Yes.");
  assert.deepEqual(
    sent.map(({ think, nativeTools }) => [think, nativeTools]),
    [
      [undefined, true],
      [false, true],
    ],
  );
});

test("text that a late end of thinking turns into a thought is taken back", async () => {
  const { wire } = playing([text("I could list src. "), text("Or not.\n</think>\n\nDone.")]);
  const answer = await asked(wire);
  assert.deepEqual(finished(answer).message.text, "Done.");
  assert.deepEqual(
    answer.waits.map(({ ms, attempt }) => ({ ms, attempt })),
    [{ ms: 0, attempt: 1 }],
  );
  assert.match(answer.thinking, /^I could list src\./);
});

test("thoughts inside the text alone count as an empty reply", async () => {
  const { wire, sent } = playing([text("<think>Hm.</think>")], [text("Yes.")]);
  assert.equal((await asked(wire)).text, "Yes.");
  assert.deepEqual(
    sent.map(({ think }) => think),
    [undefined, false],
  );
});

test("template marks alone count as an empty reply", async () => {
  for (const marks of ["<|im_start|>", "<|im_end|>\n<|im_start|>", "</s>"]) {
    const { wire, sent } = playing([text(marks)], [text("Yes.")]);
    assert.equal((await asked(wire)).text.endsWith("Yes."), true);
    assert.equal(sent.length, 2, marks);
  }
  const { wire, sent } = playing([text("It ends with `<|im_end|>`.")]);
  assert.equal(finished(await asked(wire)).message.text, "It ends with `<|im_end|>`.");
  assert.equal(sent.length, 1);
});

test("a filtered reply is refused, not empty", async () => {
  const { wire, sent } = playing([{ type: "stop", stop: "filtered" }]);
  assert.deepEqual([failed(await asked(wire)).failure.kind, sent.length], ["refused", 1]);
});

test("a reply in a required format is not searched for calls", async () => {
  const { wire } = playing([text(CALL)]);
  const answer = await asked(wire, {}, { format: { type: "object" } });
  assert.deepEqual([calls(answer), answer.text], [[], CALL]);
});

test("a call that is both made natively and written as text counts once", async () => {
  const { wire } = playing([
    { type: "call", index: 0, name: "list_dir", args: '{"path":"src"}' },
    text(CALL),
  ]);
  assert.deepEqual(calls(await asked(wire)), LIST);
});

test("the stop reason follows from the reply's content, even if the server says otherwise", async () => {
  const call = { type: "call", index: 0, name: "list_dir", args: '{"path":"src"}' } as const;
  const stops = [
    await asked(playing([call, { type: "stop", stop: "end" }]).wire),
    await asked(playing([text("Hm."), { type: "stop", stop: "calls" }]).wire),
    await asked(playing([call, { type: "stop", stop: "length" }]).wire),
  ].map((answer) => finished(answer).stop);
  assert.deepEqual(stops, ["calls", "end", "length"]);
});

test("a prompt of which the server read less than half is reported as possibly cut", async () => {
  const messages = [{ role: "user", text: "word ".repeat(4000) }] as const;
  const { wire } = playing([text("Yes."), { type: "usage", prompt: 2048, completion: 2 }]);
  const { notes } = finished(await asked(wire, {}, { messages }));
  assert.equal(notes.length, 1);
  assert.match(notes[0] ?? "", /2048 tokens .* may have been cut/);
});

test("usage is the sum of all attempts, priced accordingly", async () => {
  const { wire } = playing(
    [
      { type: "thinking", text: "Hm." },
      { type: "usage", prompt: 1000, completion: 100, cached: 400 },
    ],
    [new WireFailure("rate_limited", "busy", { passing: true })],
    [
      text("Yes."),
      { type: "usage", prompt: 1000, completion: 1, cached: 0 },
      { type: "usage", completion: 10 },
    ],
  );
  const prices = [{ model: "contract", input: 10, output: 100, cached: 1 }];
  assert.deepEqual(finished(await asked(wire, { prices })).usage, {
    requests: 3,
    prompt_tokens: 2000,
    completion_tokens: 110,
    cached_tokens: 400,
    cost: (600 * 10 + 400 * 1 + 100 * 100 + 1000 * 10 + 10 * 100) / 1e6,
  });
});

test("halves of a character that arrive separately are shown as one, and a lone half as a replacement mark", async () => {
  const { wire } = playing([
    text("a\ud83d"),
    text("\ude42b\ud83d"),
    text(""),
    text("c\ude42"),
    text("\ud83d"),
  ]);
  const answer = await asked(wire);
  assert.equal(answer.text, "a🙂b\ufffdc\ufffd\ufffd");
  assert.ok(answer.events.every((event) => event.type !== "text" || event.text.isWellFormed()));
});

test("a defect of an adapter is a failure like any other", async () => {
  const wires: readonly ModelWire[] = [
    playing([new TypeError("x is not a function")]).wire,
    {
      send: () => {
        throw new TypeError("x is not a function");
      },
    },
  ];
  for (const wire of wires) {
    const { kind, reason } = failed(await asked(wire)).failure;
    assert.deepEqual([kind, reason], ["garbled", "x is not a function"]);
  }
});

test("an adapter that ignores its signal is abandoned at once", async () => {
  const wire: ModelWire = {
    async *send() {
      await new Promise(() => {});
      yield text("late");
    },
  };
  const abort = new AbortController();
  const events = providerOver(wire).stream(REQUEST, abort.signal)[Symbol.asyncIterator]();
  const first = events.next();
  abort.abort();
  const { value } = (await first) as { value: ProviderEvent };
  assert.equal(value.type === "failed" && value.failure.kind, "cancelled");
  assert.equal((await events.next()).done, true);
});

test("a long failure message keeps its beginning and end, and no part of a key", async () => {
  const key = "sk-0123456789";
  const said = `begin ${"x".repeat(1490)} ${key} ${"y".repeat(5000)} ${key} end`;
  const { wire } = playing([new WireFailure("server", said)]);
  const { reason } = failed(await asked(wire, { keys: [key] })).failure;
  assert.match(reason, /^begin x.* … y.* \[key\] end$/);
  assert.doesNotMatch(reason, /sk-/);
  assert.ok(reason.length < 2100);
});

test("a passing failure after shown text is marked, since a new request may help; a lasting one is not", async () => {
  for (const passing of [true, false]) {
    const { wire, sent } = playing([text("Half"), new WireFailure("server", "overloaded", { passing })]);
    const answer = await asked(wire);
    assert.deepEqual([failed(answer).passing, sent.length], [passing ? true : undefined, 1]);
  }
});

test("white space around a reply's text is reported, because a reply that was cut is continued there", async () => {
  const cases: readonly (readonly [Played, object | undefined])[] = [
    [[text("One "), text("two\n"), { type: "stop", stop: "length" }], { before: "", after: "\n" }],
    [[text(" three")], { before: " ", after: "" }],
    [[{ type: "thinking", text: "Hm." }, text("\n\nthree")], undefined],
    [[text(`I look. ${CALL}\n`)], { before: "", after: "" }],
    [[text("One")], undefined],
  ];
  for (const [played, edges] of cases) {
    const seen = finished(await asked(playing(played).wire)).edges;
    assert.deepEqual(seen ?? { before: "", after: "" }, edges ?? { before: "", after: "" });
  }
});
