import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const DONE = [{ text: "done" }];

const wrong = [
  [["--max-turns", "none"], /max-turns|max_turns/],
  [["--max-time", "soon"], /--max-time: expected/],
  [["--max-tokens", "0"], /--max-tokens: expected/],
  [["--max-tool-calls", "-1"], /--max-tool-calls|max-tool-calls/],
  [["--no-such-flag"], /no-such-flag/],
  [["--mode", "yolo"], /mode/],
  [["--max-cost", "1"], /no price is known/],
  [["--resume", "nosuchsession"], /nosuchsession/],
  [["--continue"], /no session of/],
  [["--output-schema", "missing.json"], /cannot be read/],
  [["--cwd", "missing"], /there is no folder missing/],
  [["--cwd", "file"], /file is not a folder/],
] as const;

for (const [flags, said] of wrong)
  test(`run ${flags.join(" ")} ends with 2 before the model is asked`, { skip }, async () => {
    await using place = await household({ file: "" });
    await using model = await startModel(DONE);
    const ran = await harness(place, ["run", ...model.flags, ...flags, "touch a file"]);
    assert.deepEqual([ran.code, ran.stdout, model.asked().length], [2, "", 0], ran.stderr);
    assert.match(ran.stderr, said);
    const listed = await harness(place, ["sessions", "list", "--all", "--json"]);
    assert.equal(listed.stdout.trim(), "", "nothing was started, so nothing is stored");
  });

test("without a task it ends with 2, and a task may come from a pipe", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(DONE);
  const none = await harness(place, ["run", ...model.flags]);
  const empty = await harness(place, ["run", ...model.flags, "-"], { input: " \n" });
  assert.deepEqual([none.code, empty.code, model.asked().length], [2, 2, 0], none.stderr + empty.stderr);
  const piped = await harness(place, ["run", "--intent", "direct", ...model.flags, "-"], {
    input: "say that it is done",
  });
  assert.deepEqual([piped.code, piped.stdout], [0, "done\n"], piped.stderr);
  assert.ok(model.asked()[0]?.messages.some(({ content }) => content.includes("say that it is done")));
});

test("a cost limit is accepted if the price is known", { skip }, async () => {
  await using place = await household();
  const prices = [{ model: "coder:7b", input: 1_000_000, output: 1_000_000 }];
  await place.write(".config/harness/config.json", JSON.stringify({ prices }));
  await using model = await startModel([
    { calls: [["bash", { command: "touch first" }]], tokens: [2, 1] },
    { calls: [["bash", { command: "touch second" }]], tokens: [2, 1] },
  ]);
  const ran = await harness(place, ["run", "--json", "--max-cost", "5", ...model.flags, "make files"]);
  const { status, exit_code, usage } = finishedOf(ran);
  assert.deepEqual([ran.code, status, exit_code, usage.cost], [3, "budget", 3, 6], ran.stderr);
  assert.deepEqual([existsSync(place.at("work/first")), existsSync(place.at("work/second"))], [true, false]);
  assertValid(model.asked());
  assert.deepEqual(await boxesOver(place.at("work")), []);
});
