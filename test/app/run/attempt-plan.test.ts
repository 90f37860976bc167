import assert from "node:assert/strict";
import test from "node:test";
import type { Finished } from "../../../src/agent/agent-run.ts";
import {
  type Applied,
  attemptsFor,
  type AttemptFlags,
  type Candidate,
  candidateConfig,
  isGreen,
  refuseVainRows,
  temperatureOf,
  type AttemptsResult,
  combinedEnd,
} from "../../../src/app/run/attempt-plan.ts";
import { DEFAULTS, type Settings } from "../../../src/config/settings-schema.ts";
import { HarnessError } from "../../../src/core/errors.ts";
import type { RunChanges } from "../../../src/core/events.ts";
import { runFinished } from "../../fixtures/events.ts";

const NONE: RunChanges = { added: [], modified: [], deleted: [], ignored: 0 };
const CHANGED: RunChanges = { ...NONE, modified: ["sum.js"] };
const passed = { command: "npm test", exit_code: 0, rounds: 0 };
const failing = { command: "npm test", exit_code: 1, rounds: 2 };

const finished = (more: Partial<Finished> = {}): Finished =>
  runFinished({
    reason: "The model gave its answer.",
    usage: { requests: 2, prompt_tokens: 100, completion_tokens: 10, cached_tokens: null, cost: 0.5 },
    turns: 2,
    tool_calls: 1,
    changes: CHANGED,
    session: "s1",
    verified: null,
    answer: "It is mended.",
    ...more,
  });

const candidate = (nth: number, more: Partial<Finished> = {}): Candidate => {
  const end = finished({ session: `s${nth}`, ...more });
  return { nth, finished: end, green: isGreen(end, false) };
};
const RED = {
  status: "failed",
  exit_code: 1,
  verified: failing,
  reason: "`npm test` still fails: 1 failed",
} as const;

const whole = (candidates: readonly Candidate[], more: Partial<AttemptsResult> = {}): Finished =>
  combinedEnd({ candidates, count: 3, ...more });
const withFirst = (candidates: readonly Candidate[], nth: number, applied: Applied): Finished => {
  const first = candidates.find((each) => each.nth === nth);
  assert.ok(first);
  return whole(candidates, { first: { ...first, applied } });
};

test("a candidate succeeds if it ends with 0 and passes its check, or, without a check, if it changed something", () => {
  const rows: readonly (readonly [string, Partial<Finished>, boolean, boolean])[] = [
    ["passed", { verified: passed }, true, true],
    ["passed, nothing changed", { verified: passed, changes: NONE }, true, true],
    ["failed its check", { verified: failing }, false, false],
    ["passed, and ended badly", { verified: passed, exit_code: 4 }, false, false],
    ["no check was run", {}, true, false],
    ["no check, nothing changed", { changes: NONE }, false, false],
    ["no check, only ignored files", { changes: { ...NONE, ignored: 3 } }, false, false],
    ["no check, nobody knows what changed", { changes: null }, false, false],
    ["no check, ended badly", { exit_code: 3 }, false, false],
  ];
  for (const [what, more, green, greenWhereNamed] of rows)
    assert.deepEqual(
      [isGreen(finished(more), false), isGreen(finished(more), true)],
      [green, greenWhereNamed],
      what,
    );
});

const row = (base: number | null): readonly (number | null)[] =>
  [1, 2, 3, 4, 5, 16].map((nth) => temperatureOf(nth, base));

test("the first candidate uses the usual temperature, and later ones higher ones up to what servers accept", () => {
  assert.deepEqual(row(null), [null, 0.5, 0.7, 0.9, 1, 1]);
  assert.deepEqual(row(0), [0, 0.3, 0.5, 0.7, 0.8, 0.8]);
  assert.deepEqual(row(0.7), [0.7, 1, 1, 1, 1, 1]);
  assert.deepEqual(row(1.4), [1.4, 1.4, 1.4, 1.4, 1.4, 1.4]);
});

test("each candidate works in its own layer, and the audit names the reason", () => {
  const origins = { isolation: "default", temperature: "default" };
  const second = candidateConfig(2, { settings: DEFAULTS, origins });
  assert.deepEqual([second.settings.isolation, second.settings.temperature], ["overlay", 0.5]);
  assert.deepEqual(second.origins, { isolation: "--attempts", temperature: "--attempts" });
  const copied = candidateConfig(1, { settings: { ...DEFAULTS, isolation: "copy" }, origins });
  assert.deepEqual([copied.settings.isolation, copied.origins], ["copy", origins]);
});

const FLAGS: AttemptFlags = { continue: false };
const asked = (
  flags: Partial<AttemptFlags>,
  settings: Partial<Settings> = {},
  origins: Readonly<Record<string, string>> = { attempts: "--attempts" },
  prompt = "mend the bug",
) =>
  attemptsFor({
    settings: { ...DEFAULTS, attempts: 3, ...settings },
    origins,
    flags: { ...FLAGS, ...flags },
    prompt,
  });

test("what cannot be combined with several candidates is refused for the flag, and reduced to one attempt for the setting", () => {
  const rows: readonly (readonly [
    Partial<AttemptFlags>,
    Partial<Settings>,
    Readonly<Record<string, string>>,
  ])[] = [
    [{ continue: true }, {}, {}],
    [{ resume: "s1" }, {}, {}],
    [{}, { mode: "read-only" }, {}],
    [{}, { on_ask: "park" }, {}],
    [{ intent: "repo" }, {}, {}],
    [{ intent: "direct" }, {}, {}],
    [{}, { isolation: "bind" }, { isolation: "--isolation" }],
  ];
  for (const [flags, settings, origins] of rows) {
    assert.throws(
      () => asked(flags, settings, { ...origins, attempts: "--attempts" }),
      (thrown) =>
        thrown instanceof HarnessError && thrown.exit === 2 && thrown.message.startsWith("--attempts: "),
    );
    const once = asked(flags, settings, { ...origins, attempts: "/home/me/config.json" });
    assert.deepEqual([once.count, once.note?.startsWith("one attempt, not 3")], [1, true]);
  }
});

test("the setting applies to change requests only, the flag always, and parallel jobs never exceed the candidates", () => {
  const set = { attempts: "/home/me/config.json" };
  assert.deepEqual(asked({ jobs: 16 }), { count: 3, jobs: 3 });
  assert.deepEqual(asked({}, {}, set), { count: 3, jobs: 1 });
  const question = "what does sum.js do?";
  for (const one of [question, "run the tests"])
    assert.deepEqual(asked({}, {}, set, one), { count: 1, jobs: 1 });
  assert.equal(asked({}, {}, undefined, question).count, 3);
  assert.equal(asked({ intent: "change" }, {}, set, question).count, 3);
  assert.throws(() => asked({ jobs: 2 }, { attempts: 1 }), /--jobs can only be used with --attempts/);
  assert.equal(asked({ continue: true }, { attempts: 1 }).count, 1);
});

test("the run reports the result of the chosen candidate and the cost of all", () => {
  const all = [candidate(1, RED), candidate(2, { verified: passed })];
  const end = withFirst(all, 2, { how: "applied", changes: CHANGED });
  assert.deepEqual(end, {
    ...finished({ session: "s2", verified: passed }),
    reason: "2 of 3 candidates: the second passed `npm test`; applied; the other: harness diff s1",
    turns: 4,
    tool_calls: 2,
    usage: { requests: 4, prompt_tokens: 200, completion_tokens: 20, cached_tokens: null, cost: 1 },
    grounded: null,
    attempts: [
      {
        session: "s1",
        status: "failed",
        exit_code: 1,
        reason: "`npm test` still fails: 1 failed",
        verified: failing,
        applied: false,
      },
      {
        session: "s2",
        status: "done",
        exit_code: 0,
        reason: "The model gave its answer.",
        verified: passed,
        applied: true,
      },
    ],
  });
});

test("only candidates that changed something are offered for a look", () => {
  const stopped = { status: "interrupted", exit_code: 130 } as const;
  const all = [
    candidate(1, { verified: passed }),
    candidate(2, { ...stopped, changes: NONE }),
    candidate(3, stopped),
  ];
  const { reason } = withFirst(all, 1, { how: "applied", changes: CHANGED });
  assert.equal(reason, "3 of 3 candidates: the first passed `npm test`; applied; the other: harness diff s3");
  const nothing = withFirst([candidate(1, { verified: passed, changes: NONE })], 1, {
    how: "applied",
    changes: NONE,
  });
  assert.equal(nothing.reason, "1 of 3 candidates: the first passed `npm test`; there was nothing to apply");
});

test("a result that cannot be applied is not a success, and reports no change", () => {
  const all = [candidate(1, { verified: passed })];
  const refused = ["a", "b", "c", "d"].map((path) => ({ path, reason: "the same lines were changed since" }));
  const conflict = withFirst(all, 1, { how: "conflict", refused });
  assert.deepEqual(
    [conflict.status, conflict.exit_code, conflict.changes, conflict.answer, conflict.attempts?.[0]?.applied],
    ["failed", 1, NONE, null, false],
  );
  assert.match(conflict.reason, /not applied, .*\(a: the same lines .*, 1 more\): harness diff s1$/);
  const blocked = withFirst(all, 1, { how: "blocked", paths: [".envrc"] });
  assert.deepEqual([blocked.status, blocked.exit_code], ["refused", 4]);
  assert.match(blocked.reason, /act on \.envrc by itself: harness apply s1 --accept PATH$/);
  const outcome = { status: "sandbox", exit_code: 6, reason: "the folder is in use" } as const;
  const failed = withFirst(all, 1, { how: "failed", outcome });
  assert.deepEqual(
    [failed.exit_code, failed.reason.endsWith("not applied: the folder is in use")],
    [6, true],
  );
});

test("without a successful candidate the run ends with 1 and all refusals, and with the first failure if no model or box was available", () => {
  const denial = {
    call: "c1",
    tool: "bash",
    target: "rm -rf /",
    decision: "deny",
    rule: "path.system",
    reason: "it deletes",
  } as const;
  const none = whole([candidate(1, RED), candidate(2, { ...RED, denials: [denial] }), candidate(3, RED)]);
  assert.deepEqual([none.status, none.exit_code, none.denials], ["failed", 1, [denial]]);
  assert.equal(none.reason, "None of 3 candidates passed `npm test`; the folder is unchanged.");
  const cut = whole([candidate(1, RED)], { limit: "The limit of 30 min is used up." });
  assert.equal(
    cut.reason,
    "None of the candidates started (1 of 3) passed `npm test` (The limit of 30 min is used up); the folder is unchanged.",
  );
  const away = {
    status: "model",
    exit_code: 5,
    reason: "nobody answers",
    tool_calls: 0,
    changes: NONE,
  } as const;
  assert.deepEqual(
    [whole([candidate(1, away)]).exit_code, whole([candidate(1, away), candidate(2, RED)]).exit_code],
    [5, 1],
  );
});

test("a person's signal takes precedence when no candidate succeeded", () => {
  const stopped = { status: "interrupted", exit_code: 130, changes: CHANGED } as const;
  const end = whole([candidate(1, stopped)], { signal: "SIGINT" });
  assert.deepEqual([end.status, end.exit_code, end.changes], ["interrupted", 130, NONE]);
});

const batch = (more: Partial<Settings>, rows: Parameters<typeof refuseVainRows>[1]) => {
  const settings: Settings = { ...DEFAULTS, attempts: 3, isolation: "overlay", ...more };
  const origins = { attempts: "--attempts", isolation: "--isolation", mode: "--mode" };
  return () => refuseVainRows({ settings, origins }, rows);
};

test("what a batch cannot do with several attempts is refused once, naming the row", () => {
  const dir = { row: 1, kind: "dir" } as const;
  const repo = { row: 2, kind: "repo" } as const;
  const inPlace = { exit: 2, message: /^--attempts: .*--isolation bind has none \(row 1\)$/ };
  assert.throws(batch({ isolation: "bind" }, [repo, dir]), inPlace);
  assert.throws(batch({ mode: "read-only" }, [dir, repo]), { exit: 2, message: /read-only.*\(row 1\)$/ });
  const reads = { ...dir, mode: "read-only" } as const;
  const writes = { ...dir, mode: "workspace-write" } as const;
  for (const fits of [
    batch({ isolation: "bind" }, [repo, reads]),
    batch({ isolation: "bind", attempts: 1 }, [dir]),
    batch({ mode: "read-only" }, [writes]),
    batch({ on_ask: "park" }, [dir, repo]),
    batch({}, [dir, repo, reads]),
  ])
    assert.doesNotThrow(fits);
});
