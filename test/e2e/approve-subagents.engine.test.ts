import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { type AskedChat, bash, eventsOf, finishedOf, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";

const wordsOf = ({ messages }: AskedChat): string => messages[1]?.content ?? "";

test("a subagent's question parks the run, and the subagent continues where it was", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => {
    if (!wordsOf(chat).includes("CHILD"))
      return nth === 0
        ? { calls: [["task", { prompt: "CHILD: look far" }], ...(bash("echo behind > behind").calls ?? [])] }
        : FINE;
    const steps = [bash("echo child >> child"), bash(FAR), { text: "I have looked." }];
    return steps[Math.floor((chat.messages.length - 2) / 2)] ?? FINE;
  });
  const ran = await park(place, model);
  assert.deepEqual([...endOf(ran), existsSync(place.at("work/behind"))], [...PARKED, false], ran.stderr);
  const asked = eventsOf(ran).find(({ type }) => type === "call.parked");
  assert.ok(asked?.agent !== undefined);
  const more = await approve(place, sessionOf(ran), ["--once", "--json"]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  assertValid(model.asked());
  assert.deepEqual(await Promise.all(["child", "ran", "behind"].map((name) => place.read(`work/${name}`))), [
    "child\n",
    "ran\n",
    "behind\n",
  ]);
  const child = model.asked().findLast((chat) => wordsOf(chat).includes("CHILD"));
  assert.match(resultsIn(child).at(-1) ?? "", /curl[^]*The box has waited/);
  assert.match(resultsIn(model.asked().at(-1))[0] ?? "", /^I have looked/);
  assert.equal(finishedOf(more).tool_calls, 4);
});

const job = (text: string) => ["bash", { command: `echo ${text}; sleep 100`, background: true }] as const;

test("a subagent finds its own jobs again, and not those of its parent", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => {
    if (!wordsOf(chat).includes("CHILD")) {
      if (nth === 0) return { calls: [job("parents"), ["task", { prompt: "CHILD: look far" }]] };
      return resultsIn(chat).length === 2 ? { calls: [["bash", { job: "j1", kill: true }]] } : FINE;
    }
    const steps = [
      { calls: [job("childs")] },
      bash(FAR),
      { calls: [["bash", { job: "j1", kill: true }], job("more")] } as const,
      { text: "I have looked." },
    ];
    return steps[chat.messages.filter(({ role }) => role === "assistant").length] ?? FINE;
  });
  const ran = await park(place, model);
  assert.deepEqual(endOf(ran), PARKED, ran.stderr);
  const more = await approve(place, sessionOf(ran), ["--once", "--json"]);
  assert.deepEqual([...endOf(more), more.stderr], [...DONE, ""]);
  const child = model.asked().findLast((chat) => wordsOf(chat).includes("CHILD"));
  const [begun = "", , ended = "", second = ""] = resultsIn(child);
  assert.match(begun, /^childs\n\[j1 is running/);
  assert.match(ended, /^\[j1 was ended\]/);
  assert.match(second, /^more\n\[j2 is running/);
  const own = resultsIn(model.asked().at(-1));
  assert.match(own[0] ?? "", /^parents\n\[j1 is running/);
  assert.match(own.at(-1) ?? "", /^\[j1 was ended\]/);
});

test(
  "two subagents that ask in parallel are each asked about, and neither starts over",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel((chat, nth) => {
      const prompt = wordsOf(chat);
      const name = /CHILD (one|two)/.exec(prompt)?.[1];
      if (name === undefined)
        return nth === 0
          ? { calls: ["one", "two"].map((each) => ["task", { prompt: `CHILD ${each}` }] as const) }
          : FINE;
      const steps = [bash(`echo ${name} >> begun`), bash(`${FAR}; : ${name}`), { text: `report on ${name}` }];
      return steps[Math.floor((chat.messages.length - 2) / 2)] ?? FINE;
    });
    const session = sessionOf(await park(place, model));
    const again = await approve(place, session, ["--once", "--json"]);
    assert.deepEqual(endOf(again), PARKED, again.stderr);
    const more = await approve(place, session, ["--once", "--json"]);
    assert.deepEqual(endOf(more), DONE, more.stderr);
    assertValid(model.asked());
    assert.deepEqual((await place.read("work/begun")).trim().split("\n").toSorted(), ["one", "two"]);
    assert.equal(await place.read("work/ran"), "ran\nran\n");
    const [one = "", two = ""] = resultsIn(model.asked().at(-1));
    assert.deepEqual([one.split("\n")[0], two.split("\n")[0]], ["report on one", "report on two"]);
  },
);

test("a subagent whose run continues with another prompt leaves nothing open", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => {
    if (wordsOf(chat).includes("CHILD")) return bash(FAR);
    return nth === 0 ? { calls: [["task", { prompt: "CHILD: look far" }]] } : FINE;
  });
  await park(place, model);
  const more = await park(place, model, ["--continue", "--intent", "direct"]);
  assert.deepEqual(endOf(more), DONE, more.stderr);
  assertValid(model.asked());
  assert.deepEqual(resultsIn(model.asked().at(-1)), ["not run: parked and never approved"]);
});
