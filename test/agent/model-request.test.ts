import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { ask, askAside, ModelPatience } from "../../src/agent/model-request.ts";
import type { Provider, ProviderEvent, Usage } from "../../src/core/model-provider.ts";
import { Limits } from "../../src/agent/limits.ts";
import { anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent, type FakeAgent } from "../fakes/agent.ts";

const NEVER = new AbortController().signal;

const counted = (prompt_tokens: number | null, requests = 1): Usage => ({
  requests,
  prompt_tokens,
  completion_tokens: null,
  cached_tokens: null,
  cost: null,
});

const finished = (usage: Usage, text = "Yes."): ProviderEvent => ({
  type: "finished",
  message: { role: "assistant", text, calls: [] },
  malformed: [],
  stop: "end",
  usage,
  notes: [],
});

/** An agent whose clock goes on by so many milliseconds before each of these events. */
function agentOf(steps: readonly (readonly [number, ProviderEvent])[]): FakeAgent {
  const clock = { now: 1000 };
  async function* stream(): AsyncGenerator<ProviderEvent> {
    for (const [ms, event] of steps) {
      clock.now += ms;
      await Promise.resolve();
      yield event;
    }
  }
  const provider: Provider = { stream, capabilities: () => Promise.reject(new Error("not asked")) };
  return fakeAgent({ lines: [], tools: [], over: { provider, now: () => clock.now } });
}

const told = async (steps: readonly (readonly [number, ProviderEvent])[]) => {
  const agent = agentOf(steps);
  await ask(agent, { building: 990, format: undefined }, NEVER);
  const event = agent.events.find(({ type }) => type === "model.finished");
  assert.ok(event?.type === "model.finished");
  return event;
};

test("the time to the first piece is measured from the request, whatever kind of piece it is", async () => {
  const pieces: readonly ProviderEvent[] = [
    { type: "text", text: "Yes" },
    { type: "thinking", text: "Hm" },
    { type: "call", index: 0, name: "bash", text: "" },
  ];
  for (const piece of pieces) {
    const { first_token_ms, ms, build_ms } = await told([
      [70, piece],
      [20, { type: "text", text: "." }],
      [10, finished(counted(10))],
    ]);
    assert.deepEqual([first_token_ms, ms, build_ms], [70, 100, 10], piece.type);
  }
});

test("pieces of an abandoned attempt do not count as the first piece, and waiting is not model time", async () => {
  const { first_token_ms, ms } = await told([
    [30, { type: "text", text: "Ye" }],
    [10, { type: "waiting", reason: "busy", ms: 500, attempt: 2 }],
    [560, { type: "text", text: "Yes." }],
    [1, finished(counted(10))],
  ]);
  assert.deepEqual([first_token_ms, ms], [60, 601]);
});

test("a reply that arrives as a whole has no time to the first piece", async () => {
  assert.equal("first_token_ms" in (await told([[50, finished(counted(10))]])), false);
});

test("parts are scaled to the server's count of a single request, and estimated otherwise", async () => {
  const sum = (event: Awaited<ReturnType<typeof told>>): number =>
    Object.values(event.prompt ?? {}).reduce((all, part) => all + part, 0);
  assert.equal(sum(await told([[1, finished(counted(4321))]])), 4321);
  const guessed = await told([[1, finished(counted(null))]]);
  assert.equal(guessed.usage.prompt_tokens, null);
  assert.ok(sum(guessed) > 0 && sum(guessed) < 100);
  assert.equal(sum(await told([[1, finished(counted(9000, 2))]])), sum(guessed));
});

test("a side request is reported with its purpose and outcome", async () => {
  const aside = {
    messages: [{ role: "user", text: "sum it up" }],
    format: {},
    purpose: "compaction",
  } as const;
  for (const [last, outcome] of [
    [finished(counted(50)), "finished"],
    [
      { type: "failed", failure: { kind: "server", reason: "no", remedy: "" }, usage: counted(null) },
      "failed",
    ],
  ] as const) {
    const agent = agentOf([
      [40, { type: "text", text: "So" }],
      [60, last],
    ]);
    await askAside(agent, aside, NEVER);
    const [event, ...others] = agent.events;
    assert.ok(event?.type === "model.aside" && others.length === 0);
    assert.deepEqual(
      [event.purpose, event.outcome, event.ms, event.first_token_ms],
      ["compaction", outcome, 100, 40],
    );
    assert.equal(event.usage.prompt_tokens, outcome === "finished" ? 50 : null);
  }
});

const tool = anyTool({
  name: "look",
  description: "d".repeat(4000),
  input: z.object({}),
  facts: () => NO_FACTS,
  concurrent: false,
  where: "session",
  run: () => Promise.resolve({ kind: "ok", text: "" }),
});

test("a standalone question has no tools, none are counted for it, and its reply is reported", async () => {
  const aside = { messages: [{ role: "user", text: "What comes?" }], maxTokens: 200 } as const;
  for (const [purpose, text] of [
    ["expectation", "done"],
    ["compaction", undefined],
  ] as const) {
    const agent = fakeAgent({
      lines: [],
      tools: [tool],
      over: { limits: new Limits({ tokens: 500 }, () => 0) },
    });
    await askAside(agent, { ...aside, purpose }, NEVER);
    const [event] = agent.events;
    assert.ok(event?.type === "model.aside");
    assert.deepEqual([event.prompt?.tools, event.prompt?.requests, event.text], [0, 100, text]);
  }
  const unsaid = agentOf([[1, finished(counted(null))]]);
  const limits = new Limits({ tokens: 500 }, () => 0);
  await askAside({ ...unsaid, tools: [tool], limits }, { ...aside, purpose: "expectation" }, NEVER);
  assert.equal(limits.reached("turn"), undefined);
});

test("a reply without a token count from the server still spends the token limit", async () => {
  for (const [length, spent] of [
    [400, undefined],
    [4000, "tokens"],
  ] as const) {
    const limits = new Limits({ tokens: 1000 }, () => 0);
    const agent = agentOf([[1, finished(counted(20), "x".repeat(length))]]);
    await ask({ ...agent, limits }, { building: 0, format: undefined }, NEVER);
    assert.equal(limits.reached("turn")?.which, spent);
  }
});

test("a server that breaks off in the middle of shown output is retried three times", () => {
  const patience = new ModelPatience(false);
  const waits = Array.from({ length: 4 }, () => patience.after({ kind: "garbled" }, { shown: true }));
  assert.deepEqual(waits, [500, 2000, 5000, undefined]);
});

test("an attempt that broke off before anything was shown is not retried", () => {
  assert.equal(new ModelPatience(true).after({ kind: "garbled" }, { shown: false }), undefined);
});

test("an unreachable server is retried only if it was reachable before", () => {
  assert.equal(new ModelPatience(false).after({ kind: "unreachable" }, { shown: false }), undefined);
  assert.equal(new ModelPatience(true).after({ kind: "unreachable" }, { shown: false }), 500);
  const brokenOff = new ModelPatience(false);
  brokenOff.after({ kind: "garbled" }, { shown: true });
  assert.equal(brokenOff.after({ kind: "unreachable" }, { shown: false }), 2000);
});

test("permanent failures are not retried", () => {
  for (const kind of ["unauthorised", "no_model", "out_of_memory", "refused", "timeout"] as const)
    assert.equal(new ModelPatience(true).after({ kind }, { shown: true }), undefined, kind);
});

test("a server that fails in passing in the middle of shown output is retried as well", () => {
  for (const kind of ["server", "rate_limited"] as const) {
    const patience = new ModelPatience(false);
    assert.equal(patience.after({ kind }, { shown: true }), undefined, kind);
    assert.equal(new ModelPatience(false).after({ kind }, { shown: true, passing: true }), 500, kind);
    assert.equal(new ModelPatience(false).after({ kind }, { shown: false, passing: true }), undefined, kind);
  }
});

test("a passing failure after the first piece is followed by another request", async () => {
  const failure = { kind: "server", reason: "overloaded", remedy: "" } as const;
  const events: readonly (readonly ProviderEvent[])[] = [
    [
      { type: "text", text: "Ye" },
      { type: "failed", failure, usage: counted(10), passing: true },
    ],
    [{ type: "text", text: "Yes." }, finished(counted(10))],
  ];
  let requests = 0;
  async function* stream(): AsyncGenerator<ProviderEvent> {
    await Promise.resolve();
    yield* events[requests++] ?? [];
  }
  const provider: Provider = { stream, capabilities: () => Promise.reject(new Error("not asked")) };
  const agent = fakeAgent({ lines: [], tools: [], over: { provider } });
  const reply = await ask(agent, { building: 0, format: undefined }, NEVER);
  assert.equal(reply.kind, "replied");
  assert.equal(requests, 2);
});
