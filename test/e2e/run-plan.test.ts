import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { scratch } from "../fixtures/scratch.ts";
import {
  type AskedChat,
  eventsOf,
  finishedOf,
  harness,
  isAside,
  type Said,
  startModel,
} from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

/** The plan of a model from its first call to a later run, on the program as it is built. No box is started. */

const FIRST = ["[>] find the sum", "[ ] mend it"];
const NEXT = ["[x] find the sum", "[>] mend <it>"];
const plan = (steps: readonly string[]): Said => ({ calls: [["plan", { steps }]] });
const note = (nth: number): Said => ({
  text: `Step ${nth}.`,
  calls: [["note", { title: `n${nth}`, body: "word ".repeat(1900) }]],
});

test("a plan is reported as it changes, is kept verbatim in a compacted conversation, and outlasts the run", async () => {
  await using place = await scratch();
  await mkdir(place.at("work"));
  const state = { turn: 0 };
  const script = [plan(FIRST), plan(NEXT), note(1), note(2), note(3), { text: "done so far" }];
  await using model = await startModel((chat) => {
    if (isAside(chat)) return { text: JSON.stringify({ goal: "mend the sum" }) };
    state.turn += 1;
    return script[state.turn - 1] ?? { text: "and done" };
  }, 8192);
  const words = ["run", "--intent", "direct", ...model.flags];
  const ran = await harness(place, [...words, "--json", "mend the sum"]);
  assert.equal(finishedOf(ran).status, "done", ran.stderr);
  const plans = eventsOf(ran).flatMap((event) => (event.type === "plan" ? [event.steps] : []));
  assert.deepEqual(plans, [
    [
      { text: "find the sum", status: "doing" },
      { text: "mend it", status: "pending" },
    ],
    [
      { text: "find the sum", status: "done" },
      { text: "mend <it>", status: "doing" },
    ],
  ]);
  const kept = `[Your plan at that time]\n${NEXT.join("\n")}`;
  const saysPlan = (chat: AskedChat | undefined): boolean =>
    chat?.messages[1]?.content.endsWith(kept) === true;
  assert.ok(saysPlan(model.asked().findLast((chat) => !isAside(chat))), JSON.stringify(model.asked().at(-1)));
  const { length } = model.asked();
  const later = await harness(place, [...words, "--continue", "and now?"]);
  assert.equal(later.code, 0, later.stderr);
  assert.ok(saysPlan(model.asked()[length]));
  assertValid(model.asked());
  const report = await harness(place, ["report"]);
  assert.match(report.stdout, /\nplan\n {2}done: find the sum\n {2}doing: mend <it>\n/);
});

test("running tasks are listed with the plan in a compacted conversation, until the run ends them", async () => {
  await using place = await scratch();
  await mkdir(place.at("work"));
  const state = { turn: 0 };
  const task: Said = { calls: [["task", { prompt: "CHILD: look", background: true }]] };
  const script = [plan(FIRST), task, note(1), note(2), note(3), { text: "done so far" }];
  await using model = await startModel((chat) => {
    if (isAside(chat)) return { text: JSON.stringify({ goal: "mend the sum" }) };
    if (chat.messages[1]?.content === "CHILD: look") return "hang";
    state.turn += 1;
    return script[state.turn - 1] ?? { text: "and done" };
  }, 8192);
  const ran = await harness(place, ["run", "--json", "--intent", "direct", ...model.flags, "mend the sum"]);
  assert.deepEqual([finishedOf(ran).status, finishedOf(ran).answer], ["done", "and done"], ran.stderr);
  const kept = `[Your plan at that time]\n${FIRST.join("\n")}\n\n[Your tasks in the background at that time]\nt1: CHILD: look`;
  const last = model.asked().at(-1);
  assert.ok(last?.messages[1]?.content.endsWith(kept), JSON.stringify(last?.messages[1]));
  assert.match(last?.messages.at(-1)?.content ?? "", /Still running in the background: t1/);
  assert.match(
    eventsOf(ran)
      .flatMap((event) => (event.type === "notice" ? [event.text] : []))
      .join("\n"),
    /Background tasks stopped before they were done: t1 \(CHILD: look\)/,
  );
});

test("a person sees the plan on the terminal, and a run that only planned has done nothing", async () => {
  await using place = await scratch();
  await mkdir(place.at("work"));
  await using model = await startModel([plan(FIRST), plan(NEXT), { text: "done" }]);
  const ran = await harness(place, [
    "run",
    "--intent",
    "repo",
    "--strict",
    ...model.flags,
    "what does it do?",
  ]);
  assert.match(ran.stderr, /plan: 1 doing, 1 to come\n {2}▸ find the sum\n {2}· mend it\n/);
  assert.match(ran.stderr, /plan: 1 done, 1 doing\n/);
  assert.equal(ran.code, 1, ran.stderr);
  // Nor has it when it goes on.
  const goesOn = ["run", "--json", "--continue", "--intent", "repo", "--strict", ...model.flags];
  const more = await harness(place, [...goesOn, "and what does it do?"]);
  assert.deepEqual([finishedOf(more).grounded, more.code], [false, 1], more.stderr);
});
