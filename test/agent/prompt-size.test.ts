import assert from "node:assert/strict";
import test from "node:test";
import type { Message, PromptParts, ToolOffer } from "../../src/core/model-provider.ts";
import { PromptSize, viewOf } from "../../src/agent/history.ts";

const ask = (text: string): Message => ({ role: "user", text });
const NONE: readonly ToolOffer[] = [];
const offers = [{ name: "bash", description: "d".repeat(100), schema: { type: "object" } }];

test("before a server has counted, four bytes are a token and each message costs four more", () => {
  const size = new PromptSize("m", () => NONE);
  assert.equal(size.tokens([]), 0);
  assert.equal(size.tokens([ask("a".repeat(400))]), 104);
  assert.equal(size.tokens([ask("ü".repeat(200)), ask("")]), 108);
});

test("tools and the arguments of calls count", () => {
  const size = new PromptSize("m", () => offers);
  assert.equal(size.tokens([]), Math.ceil(JSON.stringify(offers).length / 4));
  const calls = [{ id: "1", name: "bash", args: { command: "x".repeat(400) } }];
  assert.ok(size.tokens([{ role: "assistant", text: "", calls }]) > size.tokens([]) + 100);
});

test("a server's count teaches, and no count teaches nothing", () => {
  const size = new PromptSize("m", () => offers);
  const messages = [ask("a".repeat(8000))];
  const guess = size.tokens(messages);
  size.learn(messages, null);
  assert.equal(size.tokens(messages), guess);
  size.learn(messages, 1500);
  assert.ok(Math.abs(size.tokens(messages) - 1500) <= 2, `${size.tokens(messages)}`);
});

const parted = (parts: PromptParts): number => Object.values(parts).reduce((sum, part) => sum + part, 0);

test("a request's parts are told by what they are for, and come to its whole", () => {
  const size = new PromptSize("m", () => offers);
  const instructions = `<project_instructions path="AGENTS.md">\n${"i".repeat(400)}\n</project_instructions>`;
  const summary = viewOf(
    { pinned: undefined, messages: [ask("the goal"), ask("more"), ask("now")] },
    { at: 2, keepFrom: 2, pruneBefore: 0, artifact: "a".repeat(400) },
  ).slice(0, 1);
  const messages: readonly Message[] = [
    { role: "system", text: `${"s".repeat(400)}\n\n${instructions}` },
    ...summary,
    ask("r".repeat(400)),
    { role: "assistant", text: "", calls: [{ id: "1", name: "bash", args: { command: "x".repeat(400) } }] },
    { role: "tool", call: "1", text: "t".repeat(4000) },
  ];
  const parts = size.parts(messages);
  assert.equal(parted(parts), size.tokens(messages));
  for (const [name, part] of Object.entries(parts)) assert.ok(part >= 30, `${name}: ${part}`);
  assert.ok(parts.results > 1000 && parts.results < 1010, `${parts.results}`);
  assert.ok(parts.instructions > 110 && parts.instructions < 120, `${parts.instructions}`);
});

test("a count of the server is what the parts come to, to the token", () => {
  const size = new PromptSize("m", () => offers);
  for (const counted of [0, 1, 7, 999, 123_457])
    assert.equal(parted(size.parts([ask("a"), ask("b".repeat(99))], counted)), counted);
  assert.equal(parted(new PromptSize("m", () => NONE).parts([])), 0);
});
