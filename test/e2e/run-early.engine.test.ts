// also slow: a signal at each moment of a start
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, type Model, type Ran, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";
import { firstOf } from "../fixtures/slow-test.ts";

const DONE: Said = { text: "done" };
const bash = (command: string, more = {}): Said => ({ calls: [["bash", { command, ...more }]] });

/** The first request is never answered; once it is there, so much later, the signal comes: while the box starts. */
async function signalled(place: Scratch, signal: NodeJS.Signals, ms: number): Promise<Ran> {
  const asked = place.at("asked");
  await using model = await startModel(() => {
    writeFileSync(asked, "");
    return "hang";
  });
  return await harness(place, ["run", "--json", ...model.flags, "make a file"], {
    whenMade: [asked, (child) => setTimeout(() => child.kill(signal), ms)],
  });
}

const goingOn = (place: Scratch, model: Model): Promise<Ran> =>
  harness(place, ["run", "--json", "--continue", ...model.flags, "make a file"]);

for (const ms of firstOf([60, 0, 150, 400]))
  test(
    `Ctrl-C ${ms} ms into the start of the box leaves no box, and a resumable session`,
    { skip },
    async () => {
      await using place = await household();
      const ran = await signalled(place, "SIGINT", ms);
      assert.deepEqual([ran.code, finishedOf(ran).status], [130, "interrupted"], ran.stderr);
      assert.deepEqual(await boxesOver(place.at("work")), []);
      await using model = await startModel([bash("touch made"), DONE]);
      assert.equal((await goingOn(place, model)).code, 0);
      assertValid(model.asked());
      assert.ok(existsSync(place.at("work/made")));
    },
  );

for (const ms of firstOf([100, 0, 300]))
  test(`a kill ${ms} ms into the start of the box does not prevent continuing`, { skip }, async () => {
    await using place = await household();
    const ran = await signalled(place, "SIGKILL", ms);
    assert.equal(ran.code, null);
    await using model = await startModel([bash("touch made"), DONE]);
    const more = await goingOn(place, model);
    assert.equal(more.code, 0, more.stderr);
    assertValid(model.asked());
    assert.ok(existsSync(place.at("work/made")));
    assert.deepEqual(await boxesOver(place.at("work")), []);
  });

test("a job still running when the model answers ends with the run", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([
    bash("touch began; sleep 60; touch late", { background: true }),
    DONE,
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "start a server"]);
  assert.deepEqual([ran.code, finishedOf(ran).changes?.added], [0, ["began"]], ran.stderr);
  assert.match(resultsIn(model.asked()[1])[0] ?? "", /\[j1 is running/);
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

test("an unwritable state directory ends the run before the model is asked", { skip }, async () => {
  await using place = await household();
  await mkdir(place.at("state"));
  await place.write("state/harness", "a file where the folder should be");
  await using model = await startModel([bash("touch made"), DONE]);
  const env = { XDG_STATE_HOME: place.at("state") };
  const ran = await harness(place, ["run", ...model.flags, "make a file"], { env });
  assert.notEqual(ran.code, 0);
  assert.deepEqual([ran.stdout, model.asked().length, existsSync(place.at("work/made"))], ["", 0, false]);
  assert.match(ran.stderr, /next: /);
});

test(
  "a file that only its owner may read is reported as a failure and does not end the run",
  { skip },
  async () => {
    await using place = await household({ "shut.txt": "x\n", "open.txt": "y\n" });
    await chmod(place.at("work/shut.txt"), 0o000);
    await using model = await startModel([
      {
        calls: [
          ["read_file", { path: "shut.txt" }],
          ["read_file", { path: "open.txt" }],
        ],
      },
      DONE,
    ]);
    const ran = await harness(place, ["run", ...model.flags, "read the files"]);
    assert.equal(ran.code, 0, ran.stderr);
    const [shut = "", open = ""] = resultsIn(model.asked()[1]);
    assert.match(shut, /permission denied/);
    assert.match(open, /1\ty/);
  },
);

test("a reply truncated at its length is continued and joined", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((_chat, nth) =>
    nth > 0
      ? { text: "lf, second half" }
      : {
          lines: [
            { message: { role: "assistant", content: "first ha" }, done: false },
            { message: { role: "assistant", content: "" }, done: true, done_reason: "length" },
          ],
        },
  );
  const ran = await harness(place, ["run", "--intent", "direct", ...model.flags, "fix the text"]);
  assert.deepEqual([ran.code, ran.stdout], [0, "first half, second half\n"], ran.stderr);
});
