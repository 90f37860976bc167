import assert from "node:assert/strict";
import test from "node:test";
import { type Hold, holdsUnrunCalls, type ModelRequest } from "../../src/core/model-provider.ts";
import { type ModelWire, type WireEvent, WireFailure, type WireRequest } from "../../src/models/model-api.ts";
import { providerOver, text } from "./ask.ts";
import { answerFrom, calls, failed, finished, REQUEST } from "../contract/provider-ask.ts";

/** A server that applies schemas to replies, a provider over it, and the requests that it got. */
function holding(
  reply: (request: WireRequest, nth: number) => readonly WireEvent[],
  known: NonNullable<Parameters<typeof providerOver>[1]>["known"] = () => ({}),
  holds: NonNullable<ModelWire["holds"]> = "after_thinking",
) {
  const sent: WireRequest[] = [];
  const wire: ModelWire = {
    holds,
    async *send(request) {
      sent.push(request);
      yield* await Promise.resolve(reply(request, sent.length - 1));
    },
  };
  const provider = providerOver(wire, { known });
  const asked = async (request: ModelRequest) => {
    const events = [];
    for await (const event of provider.stream(request, new AbortController().signal)) events.push(event);
    return answerFrom(events);
  };
  const ask = (hold: Hold = {}) => asked({ ...REQUEST, hold });
  const forms = (): readonly string[] =>
    sent.map(
      ({ replySchema, nativeTools }) =>
        `${nativeTools ? "native" : "text"}${replySchema === undefined ? "" : " held"}`,
    );
  return { ask, asked, sent, forms };
}

const CALL = [text('{"tool": "list_dir", "arguments": {"path": "src"}}')];
const LISTED = [{ name: "list_dir", args: { path: "src" } }];
const MISS = [text('{"name": "find_all", "arguments": {}}')];
const refused = (): never => {
  throw new WireFailure("server", "no grammar beside tools", { refusesHold: true });
};

test("a model whose calls work best with a schema gets one in every request that may have one", async () => {
  const { ask, asked, forms } = holding(
    () => CALL,
    () => ({ calls: "held" }),
  );
  await ask();
  await ask({ paths: ["a"] });
  assert.equal((await asked(REQUEST)).text, "");
  assert.deepEqual(forms(), ["native held", "native held", "native"]);
});

const thinkOf = async (holds: NonNullable<ModelWire["holds"]>): Promise<unknown> => {
  const { ask, sent } = holding(
    () => CALL,
    () => ({ thinking: true }),
    holds,
  );
  await ask({ now: true });
  await ask();
  return sent.map(({ think }) => think);
};

test("a thinking model is asked not to think where its server applies a schema from the first token", async () => {
  assert.deepEqual(await thinkOf("at_once"), [false, undefined]);
  assert.deepEqual(await thinkOf("after_thinking"), [undefined, undefined]);
});

test("where a schema is refused beside native tools, the tools go into the prompt", async () => {
  const { ask, forms } = holding(
    ({ nativeTools, replySchema }) => (replySchema !== undefined && nativeTools ? refused() : CALL),
    () => ({ calls: "held" }),
  );
  assert.deepEqual(calls(await ask()), LISTED);
  await ask();
  assert.deepEqual(forms(), ["native held", "text held", "text held"]);
});

test("a single reply whose schema is refused is requested without it, and the tools stay native", async () => {
  const { ask, forms } = holding(({ replySchema }) => (replySchema === undefined ? CALL : refused()));
  assert.deepEqual(calls(await ask({ now: true })), LISTED);
  assert.deepEqual(forms(), ["native held", "native"]);
});

test("an executed call or an answer resets the count of misses", async () => {
  const replies = [MISS, CALL, MISS, [text("Well.")], MISS, MISS, CALL];
  const { ask, forms } = holding((_request, nth) => replies[nth] ?? CALL);
  const notes = [];
  for (const _ of replies) notes.push(finished(await ask()).notes.length);
  assert.deepEqual(notes, [0, 0, 0, 0, 0, 1, 0]);
  assert.deepEqual(
    forms().map((form) => form.includes("held")),
    [false, false, false, false, false, false, true],
  );
});

test("a good reply to a one-off schema does not reset the count of native misses", async () => {
  const replies = [MISS, CALL, MISS, CALL];
  const { ask, forms } = holding((_request, nth) => replies[nth] ?? CALL);
  await ask();
  await ask({ now: true });
  await ask();
  await ask();
  assert.deepEqual(forms(), ["native", "native held", "native", "native held"]);
});

test("an empty reply to a native request with a schema is retried with the tools in the prompt, and then fails", async () => {
  const { ask, forms } = holding(() => []);
  assert.equal(failed(await ask({ now: true })).failure.kind, "empty");
  assert.deepEqual(forms(), ["native held", "text held"]);
});

const told = async (reply: string): Promise<boolean> =>
  holdsUnrunCalls(finished(await holding(() => [text(reply)]).ask()));

test("a reply that contains calls that were not run is no answer", async () => {
  assert.equal(await told('{"name": "find_all", "arguments": {}}'), true);
  assert.equal(await told('<tool_call>{"name": "find_all", "arguments": {}}</tool_call>'), true);
  assert.equal(await told('<tool_call>{"name": "list_dir", "arguments": {"path'), false);
  assert.equal(await told('<tool_call>{"name": "list_dir", "arguments": {"path": "a"}}</tool_call>'), false);
  assert.equal(await told("All is well."), false);
});

test("a small model's looping reply to a schema is ended, and the model is told", async () => {
  const row = "-----------\\n";
  const pieces = [
    text('{"tool": "list_dir", "arguments": {"path": "'),
    ...Array<WireEvent>(2000).fill(text(row)),
  ];
  const { asked, sent } = holding(() => [...pieces, { type: "stop", stop: "length" }]);
  const small = { ...REQUEST, maxTokens: 4096, hold: { now: true as const } };
  const ended = finished(await asked(small));
  assert.deepEqual([ended.message.calls, ended.malformed.length, ended.stop], [[], 1, "length"]);
  assert.match(ended.malformed[0]?.reason ?? "", /said the same over and over/);
  assert.match(ended.notes.join(), /repeated itself/);
  assert.equal(sent.length, 1);
  const large = finished(await asked({ ...REQUEST, hold: { now: true } }));
  assert.doesNotMatch(
    large.malformed[0]?.reason ?? "",
    /over and over/,
    "a large model may intend the repetition",
  );
});

test("a small model's looping reply without a schema is ended too, in text and in a native call", async () => {
  const round = "and once more\n".repeat(12);
  const begun: WireEvent = { type: "call", index: 0, name: "list_dir", args: '{"path": "' };
  const more: WireEvent = { type: "call", index: 0, args: JSON.stringify(round).slice(1, -1) };
  const small = { ...REQUEST, maxTokens: 4096 };
  for (const pieces of [
    Array<WireEvent>(100).fill(text(round)),
    [begun, ...Array.from({ length: 100 }, () => more)],
  ]) {
    const { asked } = holding(() => [...pieces, { type: "stop", stop: "length" }]);
    const ended = finished(await asked(small));
    assert.match(ended.notes.join(), /repeated itself/);
    assert.equal(ended.stop, "length");
    assert.ok(ended.message.text.length < 3000);
    for (const { reason } of ended.malformed) assert.match(reason, /over and over/);
    assert.equal(ended.malformed.length, pieces[0] === begun ? 1 : 0);
    assert.equal(finished(await asked(REQUEST)).notes.join(), "", "a large model may intend the repetition");
  }
});
