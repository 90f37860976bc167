import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import {
  type Broken,
  eventsOf,
  finishedOf,
  harness,
  linesOf,
  type Model,
  type Said,
  startModel,
} from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const half = (text: string): Broken => ({
  lines: [...linesOf({ text, calls: [["bash", { command: "touch never" }]] })].slice(0, 2),
  drops: true,
});
/** It breaks off within a call, of which nothing can be shown. */
const HALF_CALL: Broken = { ...half("one"), lines: half("one").lines.slice(1) };
const bad = (nth: number): Said => ({ calls: [["read_file", { file: `${nth}` }]] });
const DONE = { text: "All is well." };

test("a server that is down ends the run with 5, a remedy and no changes", { skip }, async () => {
  await using place = await household();
  const model = await startModel([DONE]);
  await model[Symbol.asyncDispose]();
  const ran = await harness(place, ["run", "--json", ...model.flags, "touch a file"]);
  const { status, reason, answer, changes } = finishedOf(ran);
  assert.deepEqual([ran.code, status, answer], [5, "model", null], ran.stderr);
  assert.match(reason, /no Ollama answers/);
  const told = eventsOf(ran).find((event) => event.type === "model.failed");
  assert.match(told?.remedy ?? "", /ollama serve/);
  assert.deepEqual(changes, { added: [], modified: [], deleted: [], ignored: 0 });
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

test("a missing model ends with 5 and the command that fetches it", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(() => ({
    status: 404,
    lines: [{ error: "model 'other:1b' not found" }],
  }));
  const ran = await harness(place, ["run", ...model.flags.slice(0, -1), "other:1b", "touch a file"]);
  assert.deepEqual([ran.code, ran.stdout], [5, ""], ran.stderr);
  assert.match(ran.stderr, /ollama pull other:1b/);
});

const useless: readonly (readonly [string, Broken | Said | "cut", RegExp])[] = [
  ["replies with nothing", { text: "" }, /nothing|empty/i],
  ["drops every connection", "cut", /connection|closed|hang up|reset/i],
  ["sends invalid JSON", { lines: [{ odd: true }] }, /./],
  ["answers 200 with an error", { lines: [{ error: "the GPU fell off" }] }, /the GPU fell off/],
  ["answers 500", { status: 500, lines: [{ error: "llama runner has died" }] }, /llama runner has died/],
];

for (const [what, reply, says] of useless)
  test(`a server that ${what} ends the run with 5, never as done`, { skip }, async () => {
    await using place = await household();
    await using model = await startModel(() => reply);
    const ran = await harness(place, ["run", "--json", ...model.flags, "touch a file"]);
    const { status, reason, answer } = finishedOf(ran);
    assert.deepEqual([ran.code, status, answer], [5, "model", null], ran.stderr);
    assert.match(reason, says);
    assert.deepEqual(await boxesOver(place.at("work")), []);
  });

test(
  "an interrupted reply is requested again, and nothing of it is run or shown as the answer",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel((_chat, nth) =>
      nth === 0
        ? HALF_CALL
        : nth === 1
          ? { calls: [["bash", { command: "touch first" }]] }
          : nth === 2
            ? half("It is not ")
            : DONE,
    );
    const ran = await harness(place, ["run", ...model.flags, "touch a file"]);
    assert.deepEqual([ran.code, ran.stdout], [0, "All is well.\n"], ran.stderr);
    assert.deepEqual([existsSync(place.at("work/first")), existsSync(place.at("work/never"))], [true, false]);
    const [first, again, second, once] = model.asked();
    assert.deepEqual([again, once], [first, second]);
    assertValid(model.asked());
  },
);

/** At the same address. */
async function restarted(model: Model): Promise<Model> {
  await model[Symbol.asyncDispose]();
  return startModel([DONE], 32_768, model.port);
}

test("a server that restarts during an answer is waited for", { skip }, async () => {
  await using place = await household();
  const held: { again?: Model } = {};
  await using model = await startModel((_chat, nth) => {
    if (nth === 0) return { calls: [["bash", { command: "touch first" }]] };
    setTimeout(() => {
      void restarted(model).then((again) => (held.again = again));
    }, 100);
    return half("so far");
  });
  const ran = await harness(place, ["run", ...model.flags, "touch a file"]);
  await using again = held.again;
  assert.deepEqual([ran.code, ran.stdout], [0, "All is well.\n"], ran.stderr);
  assert.deepEqual(again?.asked()[0], model.asked()[1]);
});

test(
  "a server that disappears during an answer ends the run with 5, and the session continues from there",
  { skip },
  async () => {
    await using place = await household();
    const model = await startModel((_chat, nth) => {
      if (nth === 0) return { calls: [["bash", { command: "touch first" }]] };
      void model[Symbol.asyncDispose]();
      return half("so far");
    });
    const ran = await harness(place, ["run", "--json", ...model.flags, "touch two files"]);
    assert.deepEqual([ran.code, finishedOf(ran).status], [5, "model"], ran.stderr);
    assert.deepEqual(finishedOf(ran).changes?.added, ["first"]);
    await using again = await startModel(
      [{ calls: [["bash", { command: "touch second" }]] }, DONE],
      32_768,
      model.port,
    );
    const more = await harness(place, ["run", "--continue", ...again.flags, "go on"]);
    assert.deepEqual([more.code, more.stdout], [0, "All is well.\n"], more.stderr);
    assertValid([...model.asked(), ...again.asked()]);
    assert.deepEqual(
      again
        .asked()[0]
        ?.messages.slice(1)
        .map(({ role }) => role),
      ["user", "assistant", "tool", "user"],
    );
    assert.ok(existsSync(place.at("work/second")));
  },
);

test("five replies in a row with invalid calls end with 5, a corrected one does not", { skip }, async () => {
  await using place = await household();
  await using broken = await startModel((_chat, nth) => bad(nth));
  const ran = await harness(place, ["run", "--json", ...broken.flags, "read a file"]);
  assert.deepEqual([ran.code, finishedOf(ran).turns], [5, 5], ran.stderr);
  assertValid(broken.asked());
  await using mended = await startModel([bad(0), { calls: [["list_dir", { path: "." }]] }, DONE]);
  const fine = await harness(place, ["run", ...mended.flags, "read a file"]);
  assert.equal(fine.code, 0, fine.stderr);
  assert.match(mended.asked()[1]?.messages.at(-1)?.content ?? "", /arguments are wrong:\n- path: /);
});
