import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent } from "../../src/core/events.ts";
import { runSummary } from "../../src/render/tty/run-summary.ts";
import { fakeTerminal } from "../fakes/terminal.ts";
import { EVERY_EVENT } from "../fixtures/events.ts";

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;

const summary = (
  event: Partial<Finished>,
  {
    columns = 80,
    quiet = false,
    changes = "here",
    isUnchosen = false,
  }: {
    readonly columns?: number;
    readonly quiet?: boolean;
    readonly changes?: "here" | "waiting" | "gone";
    readonly isUnchosen?: boolean;
  } = {},
): string =>
  runSummary(
    { ...EVERY_EVENT["run.finished"], run: "r1", seq: 9, ...event },
    { ms: 63_000, quiet, changes, isUnchosen },
    fakeTerminal(columns).stream,
  );

const names = (count: number, what: string): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${what}${index}`);

const nextOf = (event: Partial<Finished>): string | undefined => /^next +(.*)$/m.exec(summary(event))?.[1];

test("a completed run shows its changes, refusals, cost and next steps", () => {
  assert.equal(
    summary({}),
    `
changed   1 modified
          ~ sum.js
look at   these before you run anything here:
          ? package.json: npm runs its scripts; changed: test
refused   bash  rm -rf /
            denied: it deletes what lies outside of the workspace (path.system)
cost      2 turns, 1 tool call, 1 min 3 s
          1,900 tokens in (900 cached), 40 out, cost 0.002
status    done
next      harness diff s1
          harness undo s1
          harness run --continue "…"
          harness sessions show s1
`,
  );
});

test("a run that ended badly says so in words and with its exit code", () => {
  const usage = {
    requests: 1,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    cost: null,
  };
  assert.equal(
    summary(
      {
        status: "refused",
        exit_code: 4,
        reason: "after the last refusal nothing was changed",
        denials: EVERY_EVENT["run.finished"].denials.map((denial) => ({ ...denial, decision: "ask" })),
        changes: { added: [], modified: [], deleted: [], ignored: 2 },
        handoff: [],
        usage,
      },
      { columns: 40 },
    ),
    `
changed   no file
          and 2 ignored files
refused   bash  rm -rf /
            asked, and refused: it
            deletes what lies outside of
            the workspace (path.system)
cost      2 turns, 1 tool call, 1 min 3
          s
          tokens unknown, cost unknown
status    something the task needs was
          refused (exit 4): after the
          last refusal nothing was
          changed
next      harness run --continue "…"
          harness sessions show s1
`,
  );
});

test("many changes are counted, and as many named as fit", () => {
  const lines = summary({
    denials: [],
    changes: { added: names(5, "new"), modified: names(6, "old"), deleted: names(9, "gone"), ignored: 1 },
  }).split("\n");
  assert.deepEqual(lines.slice(0, 3), ["", "changed   5 added, 6 modified, 9 deleted", "          + new0"]);
  assert.deepEqual(lines.slice(12, 16), [
    "          ~ old5",
    "          - gone0",
    "          8 more: harness diff",
    "          and 1 ignored file",
  ]);
});

test("each refusal is listed, even in a quiet run", () => {
  const [denial] = EVERY_EVENT["run.finished"].denials;
  assert.ok(denial);
  const denials = Array.from({ length: 30 }, (_, index) => ({ ...denial, target: `rm -rf /${index}` }));
  assert.equal(summary({ denials }).match(/rm -rf \/\d+/g)?.length, 30);
  assert.equal(
    summary({}, { quiet: true }),
    "\nrefused   bash  rm -rf /\n            denied: it deletes what lies outside of the workspace (path.system)\n",
  );
  for (const plain of [
    "",
    "The model gave its answer.",
    "The model gave its answer; verified by `npm test`.",
    "The model changed nothing. It looked at a.",
  ])
    assert.equal(summary({ denials: [], reason: plain }, { quiet: true }), "");
  for (const told of [
    "The model changed nothing, although its answer says that it did. It looked at a.",
    "The model gave its answer without looking at the repository.",
    "The model gave its answer; it says that tests pass, but their last run failed: `npm test`.",
  ])
    assert.ok(summary({ denials: [], reason: told }, { quiet: true }).startsWith("\nstatus    "), told);
  assert.equal(
    summary({ denials: [], status: "budget", exit_code: 3, reason: "40 turns" }, { quiet: true }),
    "\nstatus    stopped at a limit (exit 3): 40 turns\n",
  );
});

test("the next steps fit how the run ended", () => {
  const changes = null;
  assert.equal(nextOf({ status: "parked", exit_code: 7 }), "harness approve s1");
  assert.equal(nextOf({ status: "sandbox", exit_code: 6, changes }), "harness doctor");
  assert.equal(nextOf({ status: "failed", exit_code: 1, changes }), 'harness run --continue "…"');
  const silent = { status: "model", exit_code: 5, changes } as const;
  assert.equal(nextOf(silent), "harness doctor");
  assert.match(summary(silent, { isUnchosen: true }), /^next {6}harness init$/m);
});

test("the command suggested by a reason comes first, in a row that can be typed, with --quiet too", () => {
  const failed = {
    status: "failed",
    exit_code: 2,
    reason: `${"no key ".repeat(12)}; next: export KEY=VALUE`,
  } as const;
  assert.equal(nextOf(failed), "export KEY=VALUE");
  assert.match(summary(failed, { quiet: true, columns: 60 }), /^next {6}export KEY=VALUE\n$/m);
  assert.doesNotMatch(summary(failed), /; next: /);
  const boxless = summary({ status: "sandbox", exit_code: 6, reason: "no engine; next: harness doctor" });
  assert.equal(boxless.split("harness doctor").length, 2, boxless);
});

test("without a box the summary says whether anything can have changed", () => {
  assert.match(summary({ changes: null, tool_calls: 0 }), /^changed {3}nothing$/m);
  assert.match(summary({ changes: null, tool_calls: 3 }), /^changed {3}unknown/m);
});

test("control characters from outside are shown, never sent", () => {
  const evil = "\u001B]52;c;x\u0007\r\u202E\n✓";
  const text = summary({
    reason: evil,
    session: evil,
    denials: [{ call: evil, tool: evil, target: evil, decision: "deny", rule: evil, reason: evil }],
    changes: { added: [evil], modified: [], deleted: [], ignored: 0 },
  });
  assert.match(text, /␛\]52;c;x␇/);
  assert.doesNotMatch(text, /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
});

test("where the workspace is discarded, no command that needs it is suggested", () => {
  const text = summary({}, { changes: "gone" });
  assert.match(text, /^next +harness run "…"\n +harness sessions show s1$/m);
  assert.doesNotMatch(text, /harness diff|--continue/);
});

test("changes that wait in a layer are to be applied, not undone", () => {
  const text = summary({}, { changes: "waiting" });
  assert.match(text, /^next +harness diff s1\n +harness apply s1\n/m);
  assert.doesNotMatch(text, /harness undo/);
});
