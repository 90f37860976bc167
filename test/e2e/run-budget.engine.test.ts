import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const touch = (name: string, tokens?: readonly [number, number]): Said => ({
  calls: [["bash", { command: `touch ${name}` }]],
  ...(tokens === undefined ? {} : { tokens }),
});
const read = (path: string): Said => ({ calls: [["read_file", { path }]] });
const numbered = (_chat: unknown, nth: number): Said => touch(`f${nth}`, [100, 10]);

const spent = [
  { flags: ["--max-turns", "3"], says: /3 turns is used up/, made: ["f0", "f1", "f2"], not: "f3" },
  { flags: ["--max-tokens", "200"], says: /200 tokens is used up/, made: ["f0"], not: "f2" },
  { flags: ["--max-tool-calls", "2"], says: /2 tool calls is used up/, made: ["f0", "f1"], not: "f2" },
];

for (const { flags, says, made, not } of spent)
  test(
    `${flags.join(" ")} ends the run with 3, keeps its work, and leaves a resumable session`,
    {
      skip,
    },
    async () => {
      await using place = await household();
      await using model = await startModel(numbered);
      const ran = await harness(place, ["run", "--json", ...flags, ...model.flags, "make files"]);
      const { status, reason, answer } = finishedOf(ran);
      assert.deepEqual([ran.code, status, answer], [3, "budget", null], ran.stderr);
      assert.match(reason, says);
      for (const name of made) assert.ok(existsSync(place.at("work", name)), name);
      assert.equal(existsSync(place.at("work", not)), false);
      assert.deepEqual(await boxesOver(place.at("work")), []);
      await using next = await startModel([{ text: "all there" }]);
      const more = await harness(place, ["run", "--continue", ...next.flags, "what is there?"]);
      assert.deepEqual([more.code, more.stdout], [0, "all there\n"], more.stderr);
      assertValid([...model.asked(), ...next.asked()]);
    },
  );

test("--max-time ends a running command with all its processes", { skip }, async () => {
  await using place = await household();
  const command = "touch began; (sleep 1000; touch late) & sleep 1000";
  await using model = await startModel([{ calls: [["bash", { command }]] }]);
  const ran = await harness(place, ["run", "--json", "--max-time", "10s", ...model.flags, "wait"]);
  assert.deepEqual([ran.code, finishedOf(ran).status], [3, "budget"], ran.stderr);
  assert.match(finishedOf(ran).reason, /10(\.0)? s is used up/);
  assert.equal(existsSync(place.at("work/began")), true);
  assert.deepEqual(await boxesOver(place.at("work")), []);
  assert.equal(existsSync(place.at("work/late")), false);
});

test("the model is told before its turns run out, in a result and nowhere else", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(numbered);
  await harness(place, ["run", "--max-turns", "4", ...model.flags, "make files"]);
  const last = model.asked().at(-1);
  assert.match(last?.messages.at(-1)?.content ?? "", /This is your last turn/);
  assert.deepEqual(
    [...new Set(last?.messages.map(({ role }) => role))],
    ["system", "user", "assistant", "tool"],
  );
});

test("a repeated call is blocked the third time, and the fourth ends the run with 3", { skip }, async () => {
  await using place = await household({ "a.txt": "right\n" });
  const call = { calls: [["bash", { command: "echo x >> count; cat a.txt" }]] } as const;
  await using model = await startModel([call]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "make a.txt right"]);
  const { status, turns, tool_calls } = finishedOf(ran);
  assert.deepEqual([ran.code, status, turns, tool_calls], [3, "budget", 4, 2], ran.stderr);
  assert.equal(await place.read("work/count"), "x\nx\n");
  assert.match(model.asked().at(-1)?.messages.at(-1)?.content ?? "", /Not run: this is the same bash call/);
  assertValid(model.asked());
});

test(
  "a cycle of two calls with the same results ends with 3, one that makes progress does not",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "a\n", "b.txt": "b\n" });
    await using stuck = await startModel((_chat, nth) => read(nth % 2 === 0 ? "a.txt" : "b.txt"));
    const stopped = await harness(place, ["run", "--json", ...stuck.flags, "compare the files"]);
    assert.deepEqual([stopped.code, finishedOf(stopped).turns < 10], [3, true], stopped.stderr);
    await using busy = await startModel((_chat, nth) =>
      nth === 10
        ? { text: "done" }
        : nth % 2 === 0
          ? { calls: [["bash", { command: "date +%N >> a.txt" }]] }
          : { calls: [["bash", { command: "cat a.txt" }]] },
    );
    const done = await harness(place, ["run", ...busy.flags, "write the time a few times"]);
    assert.deepEqual([done.code, done.stdout], [0, "done\n"], done.stderr);
  },
);
