import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn, toolsIn } from "./run-requests.ts";

const DONE: Said = { text: "done" };
const bash = (command: string): NonNullable<Said["calls"]>[number] => ["bash", { command }];

test(
  "the results of many reads in one reply are returned in the order of their calls",
  { skip },
  async () => {
    const names = Array.from({ length: 24 }, (_, at) => `f${at}.txt`);
    await using place = await household(
      Object.fromEntries(names.map((name) => [name, `content of ${name}\n`])),
    );
    await using model = await startModel([{ calls: names.map((path) => ["read_file", { path }]) }, DONE]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "read the files"]);
    assert.equal(ran.code, 0, ran.stderr);
    assertValid(model.asked());
    assert.deepEqual(
      resultsIn(model.asked()[1]).map((text) => /content of (\S+)/.exec(text)?.[1]),
      names,
    );
  },
);

test("changing calls run in order, and a later one sees what an earlier one did", { skip }, async () => {
  await using place = await household({ "a.txt": "one\n" });
  const calls: Said["calls"] = [
    ["read_file", { path: "a.txt" }],
    ["edit_file", { path: "a.txt", old: "one", new: "two" }],
    bash("cd / && sleep 0.3; cat $OLDPWD/a.txt"),
    bash("pwd"),
    ["edit_file", { path: "a.txt", old: "two", new: "three" }],
    ["read_file", { path: "./a.txt" }],
  ];
  await using model = await startModel([{ calls }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change a.txt"]);
  const results = resultsIn(model.asked()[1]);
  assert.match(results[2] ?? "", /^two/);
  assert.match(results[3] ?? "", /^\/\n?/);
  assert.match(results[5] ?? "", /three/);
  assert.deepEqual([ran.code, await place.read("work/a.txt")], [0, "three\n"], ran.stderr);
});

test(
  "an unknown argument is named and nothing runs, except for arguments that are only comments",
  { skip },
  async () => {
    await using place = await household({ "sub/a.txt": "a\n" });
    const calls: Said["calls"] = [
      ["bash", { command: "touch here", cwd: "sub" }],
      ["write_file", { path: "b.txt", content: "b", append: true }],
      ["bash", { command: "cd sub && touch there", description: "Makes a file", explanation: "as asked" }],
    ];
    await using model = await startModel([{ calls }, DONE]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "touch a file"]);
    const ends = eventsOf(ran).flatMap((event) => (event.type === "call.ended" ? [event.kind] : []));
    assert.deepEqual([ran.code, ends.toSorted()], [0, ["invalid", "invalid", "ok"]], ran.stderr);
    const [cwd = "", append = ""] = resultsIn(model.asked()[1]);
    assert.match(cwd, /there is no "cwd", only command, timeout, .*cd DIR &&/);
    assert.match(append, /there is no "append", only path, content/);
    assert.deepEqual(
      ["here", "sub/here", "b.txt", "sub/there"].map((name) => existsSync(place.at(`work/${name}`))),
      [false, false, false, true],
    );
  },
);

test("an invalid call is reported with what is wrong, and the other calls still run", { skip }, async () => {
  await using place = await household({ "a.txt": "a\n" });
  const calls: Said["calls"] = [
    ["read_file", {}],
    ["no_such_tool", { x: 1 }],
    bash("touch made"),
    ["edit_file", { path: "a.txt", old: "a", new: "b", edits: [{ old: "a", new: "c" }] }],
    ["read_file", { path: "a.txt", limit: "many" }],
  ];
  await using model = await startModel([{ calls }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "do it"]);
  assert.deepEqual([ran.code, existsSync(place.at("work/made"))], [0, true], ran.stderr);
  assertValid(model.asked());
  const told = JSON.stringify(model.asked()[1]?.messages);
  assert.match(told, /path: /);
  assert.match(told, /no_such_tool/);
  assert.match(told, /give either old and new, or edits/);
  assert.equal(await place.read("work/a.txt"), "a\n");
});

test("a greeting that turns into a task can use the tools from its first call", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([
    { calls: [bash("touch made")] },
    { calls: [bash("touch more")] },
    DONE,
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "hello"]);
  assert.deepEqual([ran.code, existsSync(place.at("work/made"))], [0, true], ran.stderr);
  assert.equal(eventsOf(ran).filter((event) => event.type === "intent").length, 1);
  assert.deepEqual(
    model.asked().map((chat) => toolsIn(chat).includes("bash")),
    [true, true, true],
  );
  assertValid(model.asked());
});

test("a question stays a question when its answer must fit a schema", { skip }, async () => {
  await using place = await household({ "schema.json": '{"type":"object"}' });
  await using model = await startModel([{ text: "{}" }]);
  const flags = ["--output-schema", "schema.json", "--json", ...model.flags];
  const ran = await harness(place, ["run", ...flags, "what is a mutex?"]);
  assert.deepEqual([ran.code, finishedOf(ran).answer], [0, "{}"], ran.stderr);
  assert.deepEqual(
    eventsOf(ran).flatMap((event) => (event.type === "intent" ? [event.intent] : [])),
    ["direct"],
  );
});

test("a task larger than any window ends with 1 and is not sent truncated", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([DONE]);
  const input = `fix this: ${"many words ".repeat(60_000)}`;
  const ran = await harness(place, ["run", "--json", ...model.flags, "-"], { input });
  const { status, reason } = finishedOf(ran);
  assert.deepEqual([ran.code, status, model.asked().length], [1, "failed", 0], ran.stderr);
  assert.match(reason, /does not fit the model's window/);
});

test("a waiting command is not blocked by its output, which is complete", { skip }, async () => {
  await using place = await household();
  const command = "for i in 1 2 3; do echo line $i; echo err $i >&2; sleep 0.1; done; exit 7";
  await using model = await startModel([{ calls: [bash(command)] }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "run it"]);
  const ended = eventsOf(ran).find((event) => event.type === "call.ended");
  for (const words of ["line 1", "line 3", "err 1", "err 3", "[exit 7"])
    assert.ok(ended?.text.includes(words), ended?.text);
});
