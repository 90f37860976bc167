// also slow: questions that wait across other commands
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";
import { slowTest } from "../fixtures/slow-test.ts";

test("--once applies to a single call: the same question parks again", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const again = await approve(place, session, ["--once", "--json"]);
  assert.deepEqual([...endOf(again), sessionOf(again)], [...PARKED, session], again.stderr);
  const more = await approve(place, session, ["--once", "--json"]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  assert.deepEqual([await place.read("work/ran"), finishedOf(more).turns], ["ran\nran\n", 3]);
  assertValid(model.asked());
});

slowTest("two questions in one reply park one after the other", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR, `${FAR}; echo b > b`, "echo c > c"), FINE]);
  const session = sessionOf(await park(place, model));
  const again = await approve(place, session, ["--once", "--json"]);
  assert.deepEqual([...endOf(again), existsSync(place.at("work/c"))], [...PARKED, false], again.stderr);
  const more = await approve(place, session, ["--deny"]);
  assert.equal(more.code, 0, more.stderr);
  assert.deepEqual([existsSync(place.at("work/b")), existsSync(place.at("work/c"))], [false, true]);
  assertValid(model.asked());
  assert.equal(model.asked().length, 2);
});

test("--session answers identical questions for the rest of that session only", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), bash(FAR), FINE, bash(FAR), FINE, bash(FAR)]);
  const session = sessionOf(await park(place, model));
  const more = await approve(place, session, ["--session", "--json"]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  const next = await park(place, model, ["--resume", session]);
  assert.deepEqual(endOf(next), DONE, next.stderr);
  assert.equal(await place.read("work/ran"), "ran\nran\nran\n");
  const decided = eventsOf(next).find(({ type }) => type === "call.decided");
  assert.ok(decided?.type === "call.decided" && decided.by === "person");
  assert.deepEqual(endOf(await park(place, model)), PARKED);
});

test("--always writes a rule of the user, and no session asks again", { skip }, async () => {
  await using place = await household();
  const far = "curl -sS -m 5 http://example.com/x";
  await using model = await startModel([bash(far), FINE, bash(far), FINE]);
  const start = { env: { XDG_CONFIG_HOME: place.at("own") } };
  const session = sessionOf(await park(place, model));
  const more = await approve(place, session, ["--always", "--json"], start);
  assert.deepEqual([more.code, model.asked().length], [0, 2], more.stderr);
  assert.match(await place.read("own/harness/policy.toml"), /curl/);
  assert.match(more.stderr, /allowed from now on by .*policy\.toml/);
  const flags = ["--json", "--on-ask", "park", ...model.flags];
  const other = await harness(place, ["run", ...flags, "do it"], start);
  assert.deepEqual(endOf(other), DONE, other.stderr);
});

test(
  "--always explains why no rule is possible, and then counts as a yes for the session",
  { skip },
  async () => {
    await using place = await household();
    const odd = 'curl -sS -m 5 "http://example.com/$(date +%s)"; echo ran >> ran';
    await using model = await startModel([bash(odd), bash(odd), FINE]);
    const session = sessionOf(await park(place, model));
    const more = await approve(place, session, ["--always", "--quiet"]);
    assert.equal(more.code, 0, more.stderr);
    assert.match(more.stderr, /no rule was written: .*this session/);
    assert.equal(await place.read("work/ran"), "ran\nran\n");
    assert.equal(existsSync(place.at(".config/harness/policy.toml")), false);
  },
);

test(
  "continuing with another prompt gives up the waiting call, and approve has nothing left",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("echo one > one", FAR, "echo c > c"), FINE]);
    const session = sessionOf(await park(place, model));
    const more = await harness(place, ["run", "--continue", ...model.flags, "leave that"]);
    assert.equal(more.code, 0, more.stderr);
    assertValid(model.asked());
    const [, far, last] = resultsIn(model.asked()[1]);
    assert.deepEqual([far, last], Array(2).fill("not run: parked and never approved"));
    const late = await approve(place, session, ["--once"]);
    assert.deepEqual([late.code, late.stdout, existsSync(place.at("work/ran"))], [2, "", false]);
    assert.match(late.stderr, /waits for approval/);
  },
);

slowTest("a fork gives up the question only for itself", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const fork = await park(place, model, ["--resume", session, "--fork", "--intent", "direct"]);
  assert.deepEqual(endOf(fork), DONE, fork.stderr);
  assert.notEqual(sessionOf(fork), session);
  assert.equal((await approve(place, sessionOf(fork), ["--once"])).code, 2);
  assert.equal((await approve(place, session, ["--once"])).code, 0);
  assertValid(model.asked());
});

slowTest("undo takes back changes from before and after the question", { skip }, async () => {
  await using place = await household({ "a.txt": "old\n" });
  await using model = await startModel([bash("echo one > one", FAR, "echo new > a.txt"), FINE]);
  const session = sessionOf(await park(place, model));
  await approve(place, session, ["--once"]);
  assert.equal(await place.read("work/a.txt"), "new\n");
  const undone = await harness(place, ["undo", session]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual(
    [await place.read("work/a.txt"), existsSync(place.at("work/one")), existsSync(place.at("work/ran"))],
    ["old\n", false, false],
  );
  const replayed = await harness(place, ["replay", session]);
  assert.ok(replayed.code === 0 || replayed.code === 1, replayed.stderr);
  assert.equal(replayed.stderr.includes("internal error"), false, replayed.stderr);
});

slowTest("changes undone while a call waits are reported to the model with that call", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const undone = await harness(place, ["undo", session]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.equal((await approve(place, session, ["--once"])).code, 0);
  const [, far = ""] = resultsIn(model.asked()[1]);
  assert.match(
    far,
    /The box has waited[^]*Undone \(step \d+\): the person has taken back what you changed in "one"/,
  );
});
