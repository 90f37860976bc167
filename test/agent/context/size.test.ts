import assert from "node:assert/strict";
import test from "node:test";
import type { Message } from "../../../src/core/messages.ts";
import { PromptSize } from "../../../src/agent/context/prompt-size.ts";

const ask = (text: string): Message => ({ role: "user", text });
const offers = [{ name: "bash", description: "d".repeat(100), schema: { type: "object" } }];

test("before a server has counted, four bytes are a token and each message costs four more", () => {
  const size = new PromptSize("m", []);
  assert.equal(size.tokens([]), 0);
  assert.equal(size.tokens([ask("a".repeat(400))]), 104);
  assert.equal(size.tokens([ask("ü".repeat(200)), ask("")]), 108);
});

test("tools and the arguments of calls count", () => {
  const size = new PromptSize("m", offers);
  assert.equal(size.tokens([]), Math.ceil(JSON.stringify(offers).length / 4));
  const calls = [{ id: "1", name: "bash", args: { command: "x".repeat(400) } }];
  assert.ok(size.tokens([{ role: "assistant", text: "", calls }]) > size.tokens([]) + 100);
});

test("a server's count teaches, and no count teaches nothing", () => {
  const size = new PromptSize("m", offers);
  const messages = [ask("a".repeat(8000))];
  const guess = size.tokens(messages);
  size.learn(messages, null);
  assert.equal(size.tokens(messages), guess);
  size.learn(messages, 1500);
  assert.ok(Math.abs(size.tokens(messages) - 1500) <= 2, `${size.tokens(messages)}`);
});
