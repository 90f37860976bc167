import assert from "node:assert/strict";
import test from "node:test";
import { Guard, type GuardVerdict, Limits, Malformed, type ToolAndArgs } from "../../src/agent/limits.ts";
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

test("without limits nothing is reached and no note is given", () => {
  const limits = new Limits({}, still);
  times(1000, () => (limits.turn(), limits.call(), limits.used(usage(1e9, 1e9, 1e9), NOTHING)));
  assert.equal(limits.reached("turn"), undefined);
  assert.equal(limits.reached("call"), undefined);
  assert.equal(limits.note(), undefined);
  assert.equal(limits.remainingMs(), undefined);
});

test("every turn may be used, and the calls of the last one run", () => {
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

test("a note is given when five turns are left and before the last one", () => {
  const limits = new Limits({ turns: 40 }, still);
  const notes = Array.from({ length: 40 }, () => (limits.turn(), limits.note()));
  const said = notes.flatMap((note, at) => (note === undefined ? [] : [[at + 1, note]]));
  assert.deepEqual(said, [
    [35, "Only 5 of 40 turns left: wrap up."],
    [39, "This is your last turn: give your final answer now, without calls."],
  ]);
});

test("a run with few turns gets no note about its end at the beginning", () => {
  const limits = new Limits({ turns: 5 }, still);
  const notes = Array.from({ length: 5 }, () => (limits.turn(), limits.note() !== undefined));
  assert.deepEqual(notes, [false, false, false, true, false]);
});

test("after the last call the model may still answer, and is told that no calls are left", () => {
  const limits = new Limits({ calls: 3 }, still);
  times(2, () => limits.call());
  assert.equal(limits.note(), undefined);
  limits.call();
  assert.equal(limits.note(), "No tool calls are left: give your final answer now.");
  assert.equal(limits.note(), undefined);
  assert.equal(limits.reached("turn"), undefined);
  assert.equal(limits.reached("call")?.which, "calls");
});

test("tokens, cost and time get one note at 80 %, and prevent calls and turns when spent", () => {
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

test("several limits that are near share one note", () => {
  const limits = new Limits({ turns: 2, calls: 5 }, still);
  limits.turn();
  times(4, () => limits.call());
  assert.equal(
    limits.note(),
    "This is your last turn: give your final answer now, without calls. Only 1 tool call of 5 tool calls left: wrap up.",
  );
});

test("token counts that the server leaves out are replaced by the estimate, and others are not", () => {
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

test("a cost limit also holds for a server that reports no counts, using estimated tokens and the price", () => {
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

test("a subagent spends the shared budget on its own turns, and gets its own notes", () => {
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

test("the time left is never negative", () => {
  let now = 0;
  const limits = new Limits({ ms: 100 }, () => now);
  now = 40;
  assert.equal(limits.remainingMs(), 60);
  assert.equal(limits.part(3).remainingMs(), 60);
  now = 400;
  assert.equal(limits.remainingMs(), 0);
});

test("a deadline aborts with its signal or when the time is up", async () => {
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

test("candidates share time, tokens and cost, and have their own turns and calls", () => {
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

const call = (name: string, args: Readonly<Record<string, unknown>> = {}): ToolAndArgs => ({ name, args });
const A = call("read_file", { path: "a" });
const B = call("bash", { command: "make" });
const C = call("glob");
const poll = call("bash", { job: "j1" });

const word = (verdict: GuardVerdict): string => (typeof verdict === "string" ? verdict : "broken");

/** One call a reply; what runs gives the text. */
function play(
  guard: Guard,
  calls: readonly ToolAndArgs[],
  result: (at: number) => string = () => "same",
): string {
  return calls
    .map((each, at) => {
      const verdict = guard.check(each, at);
      if (verdict === "run") guard.ended(each, result(at));
      return word(verdict);
    })
    .join(" ");
}

test("the third identical call in a row is not run, and the run stops when the model repeats it", () => {
  assert.equal(play(new Guard(), [A, A, A, A]), "run run broken stop");
});

test("a different call in between ends the repetition", () => {
  assert.equal(play(new Guard(), [A, A, B, A, A]), "run run run run run");
});

test("the order of keys does not make a call different, a different argument does", () => {
  const [one, two] = [
    { a: 1, b: { c: [1], d: 2 } },
    { b: { d: 2, c: [1] }, a: 1 },
  ];
  assert.equal(
    play(
      new Guard(),
      [one, two, one].map((args) => call("t", args)),
    ),
    "run run broken",
  );
  assert.equal(
    play(
      new Guard(),
      [1, 2, 3].map((line) => call("t", { line })),
    ),
    "run run run",
  );
  assert.equal(
    play(
      new Guard(),
      [
        [1, 2],
        [2, 1],
        [1, 2],
      ].map((list) => call("t", { list })),
    ),
    "run run run",
  );
});

test("changing results do not excuse a repeated call, except for polling a job that makes progress", () => {
  assert.equal(play(new Guard(), [A, A, A], String), "run run broken");
  assert.equal(play(new Guard(), [poll, poll, poll, poll, poll], String), "run run run run run");
  assert.equal(play(new Guard(), [poll, poll, poll]), "run run broken");
});

test("cycles of two, three and four calls are interrupted in their third round", () => {
  const D = call("grep", { pattern: "x" });
  for (const cycle of [
    [A, B],
    [A, B, C],
    [A, B, C, D],
  ]) {
    const calls = [...cycle, ...cycle, ...cycle];
    const wanted = [...calls.slice(1).map(() => "run"), "broken"].join(" ");
    assert.equal(play(new Guard(), calls), wanted);
    assert.equal(play(new Guard(), [...calls, cycle[0] ?? A]), `${wanted} stop`);
  }
});

test("a cycle with changing results is not a repetition", () => {
  assert.equal(play(new Guard(), [A, B, A, B, A, B, A, B], String), Array(8).fill("run").join(" "));
});

test("pausing and polling a job is waiting, up to ten times", () => {
  const waits = Array.from({ length: 10 }, () => [call("bash", { command: "sleep 30" }), poll]).flat();
  assert.equal(play(new Guard(), waits), [...Array<string>(19).fill("run"), "broken"].join(" "));
});

test("identical calls of one reply are counted in order, and the run does not stop before the model was told", () => {
  const guard = new Guard();
  assert.deepEqual(
    [A, A, A, A].map((each) => word(guard.check(each, 1))),
    ["run", "run", "broken", "broken"],
  );
  for (const each of [A, A]) guard.ended(each, "same");
  assert.equal(word(guard.check(A, 2)), "stop");
});

test("results of parallel calls may arrive in any order", () => {
  const guard = new Guard();
  for (const reply of [1, 2]) {
    for (const each of [A, B]) assert.equal(guard.check(each, reply), "run");
    for (const each of [B, A]) guard.ended(each, "same");
  }
  assert.deepEqual(
    [A, B].map((each) => word(guard.check(each, 3))),
    ["run", "run"],
    "the first one still runs with the second",
  );
});

test("a model that moves on may continue, one that keeps coming back is stopped", () => {
  const others = [1, 2, 3, 4].map((at) => call("read_file", { path: `other${at}` }));
  const [one = C, two = C, three = C] = others;
  const calls = [A, A, A, one, A, A, A, two, A, A, A, three, A, A, A];
  assert.equal(
    play(new Guard(), calls),
    "run run broken run run run broken run run run broken run run run stop",
  );
});

test("the message to the model names the call and what to do instead", () => {
  const guard = new Guard();
  play(guard, [B, B]);
  const verdict = guard.check(B, 9);
  assert.ok(typeof verdict === "object");
  assert.match(verdict.broken, /^Not run: .*bash.*third time.*something else.*final answer/s);
});

test("five replies in a row without a valid call are too many, and a valid call resets the count", () => {
  const malformed = new Malformed();
  const bad = { good: 0, bad: 2 };
  const tried = [bad, bad, bad, bad, { good: 1, bad: 1 }, bad, bad, bad, bad, bad];
  const reasons = tried.map((calls) => malformed.replied(calls));
  assert.deepEqual(
    reasons.map((reason) => reason !== undefined),
    [...Array<boolean>(9).fill(false), true],
  );
  assert.match(reasons.at(-1) ?? "", /5 replies in a row/);
});

test("polling a background task is like polling a job: progress is no repetition, and without it the model is told how to wait", () => {
  const look = call("task", { task: "t1" });
  assert.equal(
    play(new Guard(), [look, look, look, look], (at) => `turn ${at}`),
    "run run run run",
  );
  const guard = new Guard();
  assert.equal(play(guard, [look, look]), "run run");
  const verdict = guard.check(look, 3);
  assert.match(typeof verdict === "string" ? verdict : verdict.broken, /the task shows the same.*timeout/);
  assert.equal(
    play(
      new Guard(),
      Array.from({ length: 8 }, (_, at) => (at % 2 === 0 ? look : A)),
    ),
    Array.from({ length: 8 }, () => "run").join(" "),
  );
});

test("a limit of one is named in the singular", () => {
  const limits = new Limits({ tokens: 1 }, still);
  limits.used(usage(1, 0), NOTHING);
  assert.match(limits.reached("turn")?.text ?? "", /^The limit of 1 token is used up/);
});
