import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";

test("a question stops the run, and approve continues with the rest of the reply", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR, "echo three > three"), FINE]);
  const ran = await park(place, model);
  assert.deepEqual(endOf(ran), PARKED, ran.stderr);
  assert.match(finishedOf(ran).reason, /curl/);
  assert.deepEqual(
    ["one", "ran", "three"].map((name) => existsSync(place.at(`work/${name}`))),
    [true, false, false],
  );
  assert.equal(model.asked().length, 1);
  const session = sessionOf(ran);
  const shown = await harness(place, ["sessions", "show", session]);
  assert.ok(shown.stdout.includes(FAR) && shown.stdout.includes(`harness approve ${session}`));
  const more = await approve(place, session, ["--once"]);
  assert.deepEqual([more.code, more.stdout], [0, `${FINE.text}\n`], more.stderr);
  assert.deepEqual([await place.read("work/ran"), existsSync(place.at("work/three"))], ["ran\n", true]);
  assertValid(model.asked());
  const [one = "", far = "", three = ""] = resultsIn(model.asked()[1]);
  assert.match(far, /curl/);
  assert.doesNotMatch(one + three, /curl|not run/);
  assert.match(three, /The box has waited/);
});

test("the output shows the question and the next command to type", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), FINE]);
  const ran = await harness(place, ["run", "--on-ask", "park", ...model.flags, "do it"]);
  assert.deepEqual([ran.code, ran.stdout], [7, ""]);
  assert.match(ran.stderr, /bash wants to run/);
  assert.match(ran.stderr, /next +harness approve \w+/);
  assert.match(ran.stderr, /\(exit 7\)/);
});

test("a contained call runs as it does without parking", { skip }, async () => {
  await using place = await household({ "task.sh": "touch made\n" });
  await using model = await startModel([bash("bash ./task.sh"), FINE]);
  const ran = await park(place, model);
  assert.deepEqual([...endOf(ran), existsSync(place.at("work/made"))], [...DONE, true], ran.stderr);
});

test("--deny tells the model that the user said no, and the run ends as refused", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const more = await approve(place, session, ["--deny", "--json"]);
  assert.deepEqual(endOf(more), [4, 4, "refused"], more.stderr);
  assert.deepEqual(
    finishedOf(more).denials.map(({ target }) => target),
    [FAR],
  );
  assert.match(resultsIn(model.asked()[1])[1] ?? "", /The user said no/);
  assert.equal(existsSync(place.at("work/ran")), false);
  assertValid(model.asked());
});

test(
  "--because tells the model the reason of the no, and cannot be combined otherwise",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("echo one > one", FAR), FINE]);
    const session = sessionOf(await park(place, model));
    const words = ["--because", "use the mirror in vendor"];
    for (const wrong of [words, ["--once", ...words], ["--deny", "--because", " "]])
      assert.equal((await approve(place, session, wrong)).code, 2);
    const more = await approve(place, session, ["--deny", ...words, "--json"]);
    assert.deepEqual(endOf(more), [4, 4, "refused"], more.stderr);
    assert.match(resultsIn(model.asked()[1])[1] ?? "", /use the mirror in vendor/);
  },
);

test(
  "--edit runs another command instead, tells the model, and parks if that one must be confirmed too",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("echo one > one", FAR, "echo three > three"), FINE]);
    const session = sessionOf(await park(place, model));
    for (const wrong of [
      ["--edit", " "],
      ["--once", "--edit", "ls"],
    ])
      assert.equal((await approve(place, session, wrong)).code, 2);
    const other = "curl -sS -m 5 http://example.org/y; echo other >> other";
    const again = await approve(place, session, ["--edit", other, "--json"]);
    assert.deepEqual(endOf(again), PARKED, again.stderr);
    const parked = eventsOf(again).find(({ type }) => type === "call.parked");
    assert.ok(parked?.type === "call.parked" && parked.text === other);
    const third = await approve(place, session, ["--edit", "echo third >> third", "--json"]);
    assert.deepEqual(endOf(third), DONE, third.stderr);
    assert.deepEqual(
      ["one", "ran", "other", "third", "three"].map((name) => existsSync(place.at(`work/${name}`))),
      [true, false, false, true, true],
    );
    const [, far = ""] = resultsIn(model.asked()[1]);
    assert.match(far, /\[the user replaced the arguments: \{"command":"echo third >> third"\}\]/);
    assertValid(model.asked());
    const verified = await harness(place, ["report", session, "--verify"]);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  },
);

test("a yes to a waiting edited command runs that one, and a no runs neither", { skip }, async () => {
  for (const [flag, ran] of [
    ["--once", true],
    ["--deny", false],
  ] as const) {
    await using place = await household();
    await using model = await startModel([bash(FAR), FINE]);
    const session = sessionOf(await park(place, model));
    const other = "curl -sS -m 5 http://example.org/y; echo other >> other";
    assert.deepEqual(endOf(await approve(place, session, ["--edit", other, "--json"])), PARKED);
    await approve(place, session, [flag]);
    assert.deepEqual(
      ["ran", "other"].map((name) => existsSync(place.at(`work/${name}`))),
      [false, ran],
    );
  }
});

test("--json has the events of the rest, with totals of the whole run", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([
    { ...bash("echo one > one"), tokens: [100, 10] },
    { ...bash(FAR), tokens: [200, 20] },
    { ...FINE, tokens: [300, 30] },
  ]);
  const ran = await park(place, model);
  const asked = eventsOf(ran).find(({ type }) => type === "call.parked");
  assert.ok(
    asked?.type === "call.parked" && asked.text === FAR && !asked.contained && asked.rules.length > 0,
  );
  const events = eventsOf(await approve(place, sessionOf(ran), ["--once", "--json"]));
  const [started, approval] = events;
  assert.ok(started?.type === "run.started" && started.resumed && started.task === "do it");
  assert.ok(approval?.type === "approval" && approval.said === "once" && approval.from === "flag");
  assert.deepEqual(
    events.flatMap((event) => (event.type === "turn.started" ? [event.turn] : [])),
    [3],
  );
  const end = events.at(-1);
  assert.ok(end?.type === "run.finished");
  assert.deepEqual([end.turns, end.tool_calls, end.usage.prompt_tokens, end.answer], [3, 2, 600, FINE.text]);
});

test("the audit records who answered, how and when, and verifies", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  await approve(place, session, ["--once"]);
  const lines = (await place.read(`.local/state/harness/audit/${session}.jsonl`)).trim().split("\n");
  const kinds = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const approval = kinds.findIndex(({ kind }) => kind === "approval");
  const began = kinds.findLastIndex(({ kind }) => kind === "call.started");
  assert.ok(kinds.some(({ kind }) => kind === "call.parked"));
  const { said, by, from, ts } = kinds[approval] ?? {};
  assert.deepEqual([said, from, typeof by, typeof ts], ["once", "flag", "string", "string"]);
  assert.ok(approval > 0 && approval < began);
  const verified = await harness(place, ["report", session, "--verify"]);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
});

test("the run's limits and schema continue to apply", { skip }, async () => {
  await using place = await household({ "schema.json": '{"type":"object","required":["n"]}' });
  await using model = await startModel([bash(FAR), FINE, { text: '{"n":1}' }]);
  const flags = ["--output-schema", "schema.json", "--max-turns", "3"];
  const ran = await park(place, model, flags);
  const more = await approve(place, sessionOf(ran), ["--once"], { cwd: place.path });
  assert.deepEqual([more.code, more.stdout], [0, '{"n":1}\n'], more.stderr);
  await using short = await startModel([bash(FAR), FINE]);
  const one = await park(place, short, ["--max-turns", "1"]);
  const spent = await approve(place, sessionOf(one), ["--once", "--json"]);
  assert.deepEqual([...endOf(spent), short.asked().length], [3, 3, "budget", 1], spent.stderr);
});
