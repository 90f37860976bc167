import assert from "node:assert/strict";
import test from "node:test";
import type { Plan } from "../../src/core/run-record.ts";
import { planTool } from "../../src/tools/plan.ts";
import { called } from "../fixtures/call.ts";

async function planned(steps: unknown): Promise<{ readonly plan: Plan | undefined; readonly text: string }> {
  const taken: Plan[] = [];
  const { text } = await called(
    planTool((plan) => void taken.push(plan)),
    { steps },
  );
  return { plan: taken.at(-1), text };
}

const lines = async (steps: unknown): Promise<readonly string[]> =>
  ((await planned(steps)).plan ?? []).map(({ status, text }) => `${status}: ${text}`);

const WHOLE = ["done: read it", "doing: mend it", "pending: test it", "dropped: rewrite it"];

test("a plan is accepted with its marks, also in the forms of other tools", async () => {
  const written: readonly unknown[] = [
    ["[x] read it", "[>] mend it", "[ ] test it", "[-] rewrite it"],
    ["- [X] read it", "2. [~] mend it", "test it", "* [-] rewrite it"],
    ["[done] read it", "[in progress] mend it", "[pending] test it", "[cancelled] rewrite it"],
    "[x] read it\n[>] mend it\n\n[ ] test it\n[-] rewrite it\n",
    '["[x] read it", "[>] mend it", "[ ] test it", "[-] rewrite it"]',
    [
      { content: "read it", status: "completed" },
      { text: "mend it", status: "in_progress" },
      { step: "test it", status: "pending" },
      { title: "rewrite it", state: "dropped" },
    ],
  ];
  for (const steps of written) assert.deepEqual(await lines(steps), WHOLE, JSON.stringify(steps));
});

test("text in brackets that is no mark belongs to the step", async () => {
  assert.deepEqual(await lines(["[core] mend it", "- and test it"]), [
    "pending: [core] mend it",
    "pending: - and test it",
  ]);
});

test("a plan has at most 20 steps of 200 characters on one line each, and reports what was cut", async () => {
  const most = Array.from({ length: 20 }, (_, at) => `[ ] ${at} ${"é".repeat(300)}`);
  const { plan = [], text } = await planned(most);
  assert.deepEqual([plan.length, Math.max(...plan.map((step) => step.text.length))], [20, 200]);
  assert.equal(text, "The plan is noted: 20 to come; 20 cut at 200 characters.");
  const tool = planTool(() => assert.fail("it was taken"));
  const more = tool.prepare({ steps: [...most, "[ ] one more"] });
  assert.deepEqual(more.kind === "invalid" && more.issues, [
    "steps: at most 20 steps: put small ones together",
  ]);
  assert.deepEqual(await lines(["[x] one\n\u001b[31m two"]), ["done: one ␛[31m two"]);
});

test("a list without steps is an empty plan", async () => {
  assert.deepEqual(await planned([]), { plan: [], text: "The plan is noted: no steps." });
  assert.deepEqual(await lines(["[x]", " "]), []);
});
