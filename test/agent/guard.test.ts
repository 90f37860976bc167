import assert from "node:assert/strict";
import test from "node:test";
import { Guard, type GuardVerdict, Malformed, type ToolAndArgs } from "../../src/agent/limits.ts";

const call = (name: string, args: Readonly<Record<string, unknown>> = {}): ToolAndArgs => ({ name, args });
const [A, B, C] = [call("read_file", { path: "a" }), call("bash", { command: "make" }), call("glob")];
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

test("the same call is broken up the third time in a row, and stopped when the model goes on", () => {
  assert.equal(play(new Guard(), [A, A, A, A]), "run run broken stop");
});

test("a call in between ends the row", () => {
  assert.equal(play(new Guard(), [A, A, B, A, A]), "run run run run run");
});

test("the order of keys makes no other call, another argument does", () => {
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

test("results do not save the same call in a row, but a look at a job that moves on", () => {
  assert.equal(play(new Guard(), [A, A, A], String), "run run broken");
  assert.equal(play(new Guard(), [poll, poll, poll, poll, poll], String), "run run run run run");
  assert.equal(play(new Guard(), [poll, poll, poll]), "run run broken");
});

test("cycles of two, three and four calls are broken up in their third time over", () => {
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

test("a cycle whose results differ is work", () => {
  assert.equal(play(new Guard(), [A, B, A, B, A, B, A, B], String), Array(8).fill("run").join(" "));
});

test("pausing and looking at a job is waiting, up to ten times over", () => {
  const waits = Array.from({ length: 10 }, () => [call("bash", { command: "sleep 30" }), poll]).flat();
  assert.equal(play(new Guard(), waits), [...Array<string>(19).fill("run"), "broken"].join(" "));
});

test("identical calls of one reply count in order, and none stops before the model was told", () => {
  const guard = new Guard();
  assert.deepEqual(
    [A, A, A, A].map((each) => word(guard.check(each, 1))),
    ["run", "run", "broken", "broken"],
  );
  for (const each of [A, A]) guard.ended(each, "same");
  assert.equal(word(guard.check(A, 2)), "stop");
});

test("results of calls side by side may come in any order", () => {
  const guard = new Guard();
  for (const reply of [1, 2]) {
    for (const each of [A, B]) assert.equal(guard.check(each, reply), "run");
    for (const each of [B, A]) guard.ended(each, "same");
  }
  assert.deepEqual(
    [A, B].map((each) => word(guard.check(each, 3))),
    ["run", "run"],
    "the first of them still runs beside the second",
  );
});

test("a model that turns away is let go on, one that always comes back is stopped", () => {
  const others = [1, 2, 3, 4].map((at) => call("read_file", { path: `other${at}` }));
  const [one = C, two = C, three = C] = others;
  const calls = [A, A, A, one, A, A, A, two, A, A, A, three, A, A, A];
  assert.equal(
    play(new Guard(), calls),
    "run run broken run run run broken run run run broken run run run stop",
  );
});

test("what the model is told names the call and what to do instead", () => {
  const guard = new Guard();
  play(guard, [B, B]);
  const verdict = guard.check(B, 9);
  assert.ok(typeof verdict === "object");
  assert.match(verdict.broken, /^Not run: .*bash.*third time.*something else.*final answer/s);
});

test("five replies in a row without a valid call are too many, a valid one starts over", () => {
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

test("a look at a task in the background is one at a job: what moves on is no circle, what does not is told how to wait", () => {
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
