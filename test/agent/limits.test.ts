import assert from "node:assert/strict";
import test from "node:test";
import { Limits } from "../../src/agent/limits.ts";
import type { Usage } from "../../src/core/model-provider.ts";

const usage = (prompt: number | null, completion: number | null, cost: number | null = null): Usage => ({
  requests: 1,
  prompt_tokens: prompt,
  completion_tokens: completion,
  cached_tokens: null,
  cost,
});
const NOTHING = { prompt: 0, completion: 0 };
const still = (): number => 0;
const times = (count: number, act: () => void): void => {
  for (let at = 0; at < count; at += 1) act();
};

test("without limits nothing is reached and nothing said", () => {
  const limits = new Limits({}, still);
  times(1000, () => (limits.turn(), limits.call(), limits.used(usage(1e9, 1e9, 1e9), NOTHING)));
  assert.equal(limits.reached("turn"), undefined);
  assert.equal(limits.reached("call"), undefined);
  assert.equal(limits.note(), undefined);
  assert.equal(limits.remainingMs(), undefined);
});

test("all of the turns may be used, and the calls of the last one run", () => {
  const limits = new Limits({ turns: 40 }, still);
  times(39, () => limits.turn());
  assert.equal(limits.reached("turn"), undefined);
  limits.turn();
  assert.deepEqual(limits.reached("turn"), {
    which: "turns",
    text: "The limit of 40 turns is used up (raise it with --max-turns).",
  });
  assert.equal(limits.reached("call"), undefined);
});

test("the turns are told of when five are left and before the last", () => {
  const limits = new Limits({ turns: 40 }, still);
  const notes = Array.from({ length: 40 }, () => (limits.turn(), limits.note()));
  const said = notes.flatMap((note, at) => (note === undefined ? [] : [[at + 1, note]]));
  assert.deepEqual(said, [
    [35, "Only 5 of 40 turns left: wrap up."],
    [39, "This is your last turn: give your final answer now, without calls."],
  ]);
});

test("a run of few turns is not told from its beginning that they end", () => {
  const limits = new Limits({ turns: 5 }, still);
  const notes = Array.from({ length: 5 }, () => (limits.turn(), limits.note() !== undefined));
  assert.deepEqual(notes, [false, false, false, true, false]);
});

test("with all calls used the model may still answer, and is told that none is left", () => {
  const limits = new Limits({ calls: 3 }, still);
  times(2, () => limits.call());
  assert.equal(limits.note(), undefined);
  limits.call();
  assert.equal(limits.note(), "No tool calls are left: give your final answer now.");
  assert.equal(limits.note(), undefined);
  assert.equal(limits.reached("turn"), undefined);
  assert.equal(limits.reached("call")?.which, "calls");
});

test("tokens, cost and time are told of once at 80 %, and forbid calls and turns when spent", () => {
  let now = 5000;
  const spend = {
    tokens: (limits: Limits) => limits.used(usage(90, 10), { prompt: 7, completion: 7 }),
    cost: (limits: Limits) => limits.used(usage(1, 1, 0.25), { prompt: 7, completion: 7 }),
    ms: () => void (now += 100_000),
  };
  const full = { tokens: 1000, cost: 2.5, ms: 1_000_000 };
  for (const which of ["tokens", "cost", "ms"] as const) {
    const limits = new Limits({ [which]: full[which] }, () => now);
    const notes = Array.from({ length: 9 }, () => (spend[which](limits), limits.note()));
    assert.deepEqual(
      notes.map((note) => note !== undefined),
      [false, false, false, false, false, false, false, true, false],
      which,
    );
    assert.match(notes[7] ?? "", /^Only .* of .* left/);
    assert.equal(limits.reached("turn"), undefined, which);
    times(2, () => spend[which](limits));
    assert.equal(limits.reached("turn")?.which, which);
    assert.equal(limits.reached("call")?.which, which);
  }
});

test("several limits that are near are told of in one note", () => {
  const limits = new Limits({ turns: 2, calls: 5 }, still);
  limits.turn();
  times(4, () => limits.call());
  assert.equal(
    limits.note(),
    "This is your last turn: give your final answer now, without calls. Only 1 tool call of 5 tool calls left: wrap up.",
  );
});

test("what the server does not say of its tokens counts as it is estimated, and nothing else", () => {
  const spentBy = (given: Usage): number => {
    const limits = new Limits({ tokens: 1_000_000 }, still);
    limits.used(given, { prompt: 4000, completion: 1000 });
    let more = 0;
    for (; limits.reached("turn") === undefined; more += 1000) limits.used(usage(1000, 0), NOTHING);
    return 1_000_000 - more;
  };
  assert.equal(spentBy(usage(null, null)), 5000);
  assert.equal(spentBy(usage(9000, null)), 10_000);
  assert.equal(spentBy(usage(null, 1000)), 5000);
  assert.equal(spentBy(usage(1000, 1000)), 2000);
});

test("a limit of cost holds a server that does not count, by the price of what is estimated", () => {
  const price = { model: "m", input: 1, output: 10 };
  const spending = (known: typeof price | undefined, given: Usage): string | undefined => {
    const whole = new Limits({ cost: 0.01 }, still, { price: known });
    const part = whole.part(5);
    part.used(given, { prompt: 9000, completion: 100 });
    return whole.reached("turn")?.which;
  };
  assert.equal(spending(price, usage(null, null)), "cost");
  assert.equal(spending(price, usage(100, null)), undefined);
  assert.equal(spending(price, usage(null, null, 0.001)), undefined, "what is known counts");
  assert.equal(spending(undefined, usage(null, null)), undefined);
});

test("a subagent spends the same budget on turns of its own, and is told by itself", () => {
  const whole = new Limits({ turns: 40, calls: 5 }, still);
  const part = whole.part(2);
  times(2, () => part.turn());
  times(4, () => part.call());
  assert.deepEqual(part.reached("turn"), { which: "turns", text: "The limit of 2 turns is used up." });
  assert.equal(whole.turns, 0);
  assert.equal(whole.calls, 4);
  assert.match(part.note() ?? "", /1 tool call/);
  assert.match(whole.note() ?? "", /1 tool call/);
});

test("what is left of the time is never negative, and its end aborts", () => {
  let now = 0;
  const limits = new Limits({ ms: 100 }, () => now);
  now = 40;
  assert.equal(limits.remainingMs(), 60);
  assert.equal(limits.part(3).remainingMs(), 60);
  now = 400;
  assert.equal(limits.remainingMs(), 0);
});

test("a deadline aborts with its signal, or when the time is up", async () => {
  const user = new AbortController();
  const free = new Limits({}, still).deadline(user.signal);
  const far = new Limits({ ms: 1e12 }, still).deadline(user.signal);
  const near = new Limits({ ms: 0 }, still).deadline(user.signal);
  const hold = setInterval(() => undefined, 1000);
  await new Promise((resolve) => near.addEventListener("abort", resolve, { once: true }));
  clearInterval(hold);
  assert.equal(free.aborted || far.aborted, false);
  user.abort();
  assert.ok(free.aborted && far.aborted);
});

test("candidates share time, tokens and cost; turns and calls are each one's own", () => {
  let now = 0;
  const whole = new Limits({ turns: 3, calls: 2, ms: 1000, tokens: 100, cost: 2 }, () => now);
  const [one, other] = [whole.attempt(), whole.attempt()];
  times(3, () => (one.turn(), one.call()));
  assert.deepEqual([one.reached("turn")?.which, one.reached("call")?.which], ["turns", "calls"]);
  assert.deepEqual(
    [other.turns, other.calls, other.reached("turn"), other.reached("call")],
    [0, 0, undefined, undefined],
  );
  assert.match(one.reached("turn")?.text ?? "", /raise it with --max-turns/);
  const subagent = other.part(5);
  subagent.call();
  assert.equal(other.calls, 1);
  one.used(usage(60, 0, 1), NOTHING);
  subagent.used(usage(40, 0, 0), NOTHING);
  for (const each of [whole, other, subagent]) assert.equal(each.reached("turn")?.which, "tokens");
  now = 1000;
  assert.equal(whole.attempt().reached("turn")?.which, "ms");
});
