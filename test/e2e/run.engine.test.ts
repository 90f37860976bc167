import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, startModel } from "./run-command.ts";

test("a task is done in the box, and stdout has only the answer", { skip }, async () => {
  await using place = await household({ "a.txt": "one\n" });
  await using model = await startModel([
    { calls: [["bash", { command: "tr a-z A-Z < a.txt > b.txt" }]], tokens: [100, 10] },
    { text: "It is in b.txt.", tokens: [150, 5] },
  ]);
  const ran = await harness(place, ["run", ...model.flags, "write a.txt in capitals to b.txt"]);
  assert.deepEqual([ran.code, ran.stdout], [0, "It is in b.txt.\n"], ran.stderr);
  assert.equal(await place.read("work/b.txt"), "ONE\n");
});

test("--json ends with the result of the run", { skip }, async () => {
  await using place = await household({ "a.txt": "one\n", ".gitignore": "*.log\n" });
  await using model = await startModel([
    {
      calls: [["bash", { command: "echo x > x.log; echo two >> a.txt; echo new > c.txt" }]],
      tokens: [100, 10],
    },
    { text: "done", tokens: [150, 5] },
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change some files"]);
  const { run, seq, session, ...finished } = finishedOf(ran);
  assert.deepEqual(finished, {
    type: "run.finished",
    status: "done",
    exit_code: 0,
    reason: "The model gave its answer.",
    turns: 2,
    tool_calls: 1,
    usage: { requests: 2, prompt_tokens: 250, completion_tokens: 15, cached_tokens: null, cost: null },
    denials: [],
    changes: { added: ["c.txt"], modified: ["a.txt"], deleted: [], ignored: 1 },
    handoff: [],
    quarantined: [],
    quarantined_total: 0,
    commits: [],
    commits_total: 0,
    staged: [],
    verified: null,
    grounded: null,
    answer: "done",
  });
  assert.ok(run.startsWith(session));
  assert.deepEqual(
    eventsOf(ran).map((event) => event.seq),
    Array.from({ length: seq }, (_, index) => index + 1),
  );
});
