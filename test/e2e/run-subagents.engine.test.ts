import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { type AskedChat, bash, eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn, toolsIn } from "./run-requests.ts";

const task = (prompt: string, more = {}): NonNullable<Said["calls"]>[number] => ["task", { prompt, ...more }];
const asksOf =
  (prompt: string) =>
  (chat: AskedChat): boolean =>
    chat.messages[1]?.content.includes(prompt) === true;
const isChild = asksOf("CHILD");

test(
  "a subagent has its parent's prompt and no task tool, and only its summary is returned",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "SECRETWORD of the file\n" });
    await using model = await startModel((chat, nth) => {
      if (!isChild(chat)) return nth === 0 ? { calls: [task("CHILD: read a.txt")] } : { text: "all done" };
      return chat.messages.length === 2
        ? { text: "I shall look.", calls: [["read_file", { path: "a.txt" }]] }
        : { text: "It has one line." };
    });
    const ran = await harness(place, ["run", "--json", ...model.flags, "find out what a.txt has"]);
    assert.deepEqual([ran.code, finishedOf(ran).answer], [0, "all done"], ran.stderr);
    assertValid(model.asked());
    const [parent, ...others] = model.asked();
    const child = others.find(isChild);
    assert.deepEqual([toolsIn(parent).includes("task"), toolsIn(child).includes("task")], [true, false]);
    assert.deepEqual(
      toolsIn(child),
      toolsIn(parent).filter((name) => name !== "task" && name !== "plan"),
    );
    const last = JSON.stringify(others.at(-1)?.messages);
    assert.ok(
      last.includes("It has one line.") && !last.includes("SECRETWORD") && !last.includes("I shall look"),
    );
    const tagged = eventsOf(ran).filter((event) => event.type === "call.proposed");
    assert.deepEqual(
      tagged.map(({ tool, agent }) => [tool, agent !== undefined]),
      [
        ["task", false],
        ["read_file", true],
      ],
    );
    assert.equal(finishedOf(ran).usage.requests, 4);
  },
);

test("a subagent starts in the folder of its parent's shell", { skip }, async () => {
  await using place = await household({ "deep/here.txt": "x\n" });
  await using model = await startModel((chat, nth) => {
    if (isChild(chat))
      return chat.messages.length === 2 ? bash("pwd; ls") : { text: resultsIn(chat).at(-1) ?? "nothing" };
    return [bash("cd deep"), { calls: [task("CHILD: look around")] }][nth] ?? { text: "all done" };
  });
  const ran = await harness(place, ["run", "--json", ...model.flags, "look around in deep"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /\/deep\nhere\.txt/);
});

test(
  "a subagent that calls task under any name is told that it does not exist, and starts nothing",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel((chat, nth) => {
      if (!isChild(chat)) return nth === 0 ? { calls: [task("CHILD: multiply")] } : { text: "all done" };
      const step = Math.floor((chat.messages.length - 2) / 2);
      const name = ["task", "Task", "functions.task"][step];
      return name === undefined ? { text: "one only" } : { calls: [[name, { prompt: "GRANDCHILD" }]] };
    });
    const ran = await harness(place, ["run", "--json", ...model.flags, "multiply"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(model.asked().filter(asksOf("GRANDCHILD")).length, 0);
    assert.equal(resultsIn(model.asked().at(-1)).at(-1)?.startsWith("one only"), true);
  },
);

test("two tasks of one reply both return, each to its call", { skip }, async () => {
  await using place = await household({ "a.txt": "a\n", "b.txt": "b\n" });
  await using model = await startModel((chat, nth) => {
    if (!isChild(chat))
      return nth === 0 ? { calls: [task("CHILD one"), task("CHILD two")] } : { text: "all done" };
    const which = chat.messages[1]?.content.includes("one") === true ? "a" : "b";
    if (chat.messages.length === 2) return { calls: [["read_file", { path: `${which}.txt` }]] };
    return { text: `report on ${which}` };
  });
  const ran = await harness(place, ["run", "--json", ...model.flags, "look at both files"]);
  assert.equal(ran.code, 0, ran.stderr);
  assertValid(model.asked());
  const [one = "", two = ""] = resultsIn(model.asked().at(-1));
  assert.deepEqual([one.split("\n")[0], two.split("\n")[0]], ["report on a", "report on b"]);
  const agents = new Set(eventsOf(ran).flatMap(({ agent }) => agent ?? []));
  assert.equal(agents.size, 2);
});

test("a subagent's refusals are listed, and its work shares the run's limits", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => {
    if (!isChild(chat)) return nth === 0 ? { calls: [task("CHILD: fetch")] } : { text: "all done" };
    return chat.messages.length === 2
      ? { calls: [["bash", { command: "curl https://example.com" }]] }
      : { text: "fetched it" };
  });
  const ran = await harness(place, ["run", "--json", ...model.flags, "fetch the page"]);
  const { denials, tool_calls } = finishedOf(ran);
  assert.deepEqual([ran.code, denials.map(({ target }) => target)], [4, ["curl https://example.com"]]);
  assert.equal(tool_calls, 2);
});

test("a subagent ends at its own turn limit, and its parent continues", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => {
    if (!isChild(chat))
      return nth === 0 ? { calls: [task("CHILD: go on", { max_turns: 2 })] } : { text: "all done" };
    return { calls: [["bash", { command: `touch f${chat.messages.length}` }]] };
  });
  const ran = await harness(place, ["run", "--json", ...model.flags, "make files"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual([existsSync(place.at("work/f4")), existsSync(place.at("work/f6"))], [true, false]);
  assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /did not finish/);
});
