import assert from "node:assert/strict";
import test from "node:test";
import { denialsOf, type Ending, outcomeOf, PlainAnswer } from "../../../src/agent/ending/outcome.ts";
import { isPlainEnding } from "../../../src/core/errors.ts";
import type { EndedCall } from "../../../src/core/session.ts";

const ok: EndedCall = {
  call: "c1",
  tool: "bash",
  target: "ls",
  kind: "ok",
  refused: false,
  decision: "allow",
  rule: "",
  reason: "",
  changes: false,
};
const refused: EndedCall = {
  ...ok,
  call: "c2",
  target: "curl example.com",
  kind: "denied",
  refused: true,
  decision: "deny",
  rule: "network.reach",
  reason: "it reaches the network",
};
const changed: EndedCall = { ...ok, call: "c3", tool: "write_file", target: "a.ts", changes: true };
const answered: Ending = { how: "answered" };

const codes = (ending: Ending, calls: readonly EndedCall[], strict = false): readonly [string, number] => {
  const { status, exit_code } = outcomeOf(ending, calls, { strict });
  return [status, exit_code];
};

test("an answer without refusals has the status done", () => {
  assert.deepEqual(codes(answered, []), ["done", 0]);
  assert.deepEqual(codes(answered, [ok, changed], true), ["done", 0]);
});

test("each ending has its status and its exit code", () => {
  const table: readonly (readonly [Ending, readonly [string, number]])[] = [
    [{ how: "limit", which: "turns", text: "spent" }, ["budget", 3]],
    [{ how: "repeated" }, ["budget", 3]],
    [{ how: "model_failed", kind: "unreachable", reason: "nobody there" }, ["model", 5]],
    [{ how: "model_failed", kind: "empty", reason: "nothing came" }, ["model", 5]],
    [{ how: "model_broken", reason: "no valid call" }, ["model", 5]],
    [{ how: "sandbox_lost", reason: "gone" }, ["sandbox", 6]],
    [{ how: "too_long", reason: "full" }, ["failed", 1]],
    [{ how: "misfit", reason: "no JSON" }, ["failed", 1]],
    [{ how: "nothing_done", reason: "nothing was done" }, ["failed", 1]],
    [{ how: "unverified", reason: "npm test fails" }, ["failed", 1]],
    [{ how: "parked", reason: "waits" }, ["parked", 7]],
    [{ how: "cancelled", signal: "SIGINT" }, ["interrupted", 130]],
    [{ how: "cancelled", signal: "SIGTERM" }, ["interrupted", 143]],
    [{ how: "cancelled", signal: "SIGHUP" }, ["interrupted", 129]],
    [{ how: "cancelled", signal: "reader-left" }, ["interrupted", 129]],
  ];
  for (const [ending, wanted] of table) {
    assert.deepEqual(codes(ending, [ok]), wanted, ending.how);
    assert.notEqual(outcomeOf(ending, [ok], { strict: false }).reason, "", ending.how);
  }
});

test("a refusal stands until a later call changes something or gets the same target", () => {
  const same: EndedCall = { ...ok, target: refused.target };
  const failedSame: EndedCall = { ...same, kind: "failed" };
  assert.deepEqual(codes(answered, [refused]), ["refused", 4]);
  assert.deepEqual(
    codes(answered, [refused, ok]),
    ["refused", 4],
    "reading something else does not work around it",
  );
  assert.deepEqual(codes(answered, [refused, failedSame]), ["refused", 4]);
  assert.deepEqual(
    codes(answered, [changed, refused]),
    ["refused", 4],
    "what was changed before does not count",
  );
  assert.deepEqual(codes(answered, [refused, changed]), ["done", 0]);
  assert.deepEqual(codes(answered, [refused, same]), ["done", 0]);
  assert.deepEqual(codes(answered, [refused, changed, refused]), ["refused", 4], "the last one counts");
});

test("two calls without a target do not share one", () => {
  assert.deepEqual(
    codes(answered, [
      { ...refused, target: "" },
      { ...ok, target: "" },
    ]),
    ["refused", 4],
  );
});

test("with strict, any refusal counts, even one that the run worked around", () => {
  assert.deepEqual(codes(answered, [refused, changed], true), ["refused", 4]);
  assert.deepEqual(codes({ how: "limit", which: "turns", text: "" }, [refused, changed], true), [
    "refused",
    4,
  ]);
});

test("an ending that cut the run short takes precedence over a refusal that might have been worked around", () => {
  assert.deepEqual(codes({ how: "limit", which: "cost", text: "" }, [refused]), ["budget", 3]);
  assert.deepEqual(codes({ how: "too_long", reason: "" }, [refused]), ["failed", 1]);
  for (const strict of [false, true]) {
    assert.deepEqual(codes({ how: "model_broken", reason: "" }, [refused], strict), ["model", 5]);
    assert.deepEqual(codes({ how: "sandbox_lost", reason: "" }, [refused], strict), ["sandbox", 6]);
    assert.deepEqual(codes({ how: "parked", reason: "" }, [refused], strict), ["parked", 7]);
    assert.deepEqual(codes({ how: "cancelled", signal: "SIGINT" }, [refused], strict), ["interrupted", 130]);
  }
});

test("a standing refusal takes precedence over an answer that does not fit the schema", () => {
  assert.deepEqual(codes({ how: "misfit", reason: "" }, [refused]), ["refused", 4]);
  assert.deepEqual(codes({ how: "misfit", reason: "" }, [refused, changed]), ["failed", 1]);
});

test("repeating a refused call ends as a refusal, repeating anything else as a spent budget", () => {
  const broken: EndedCall = { ...refused, refused: false, kind: "invalid" };
  assert.deepEqual(codes({ how: "repeated" }, [refused, refused, broken]), ["refused", 4]);
  assert.deepEqual(codes({ how: "repeated" }, [refused, ok, ok, ok, ok]), ["budget", 3]);
  assert.deepEqual(codes({ how: "repeated" }, [refused, changed]), ["budget", 3]);
});

test("a refusal names its target and its reason", () => {
  const { reason } = outcomeOf(answered, [refused], { strict: false });
  assert.equal(reason, "Refused: bash curl example.com (it reaches the network)");
});

test("all refusals and nothing else are listed in order, whether worked around or not", () => {
  const second: EndedCall = { ...refused, call: "c9", target: "wget example.com" };
  const denial = { tool: "bash", decision: "deny", rule: "network.reach", reason: "it reaches the network" };
  assert.deepEqual(denialsOf([ok, refused, changed, { ...ok, kind: "blocked" }, second]), [
    { call: "c2", target: "curl example.com", ...denial },
    { call: "c9", target: "wget example.com", ...denial },
  ]);
});

const reasonAfter = (exitCode: number): string =>
  outcomeOf(answered, [], { strict: true, ran: { command: "npm\ntest", exitCode, text: "" } }).reason;

test("for a request to run something, the reason reports the failure of the last command", () => {
  assert.equal(reasonAfter(2), "The model gave its answer; `npm␊test` exited with 2.");
  assert.equal(reasonAfter(0), "The model gave its answer.");
  assert.equal(isPlainEnding(reasonAfter(2)), false);
});

type Part = Parameters<PlainAnswer["take"]>[0];
const at = (text: string, before = "", after = ""): Part => ({ text, edges: { before, after } });

test("the parts of an answer that the server cut are joined exactly, without a model's usual white space", () => {
  const cases: readonly (readonly [readonly Part[], string])[] = [
    [[at("One", "", " "), at("two")], "One two"],
    [[at("One"), at("two", " ")], "One two"],
    [[at("- one", "", "\n"), at("- two", "", "\n"), at("- three", "", "\n")], "- one\n- two\n- three"],
    [[at("wo", " "), at("rd", " ")], "word"],
    [[at("One", "\n", "\n")], "One"],
    [[{ text: "One" }, { text: "two" }], "Onetwo"],
  ];
  for (const [parts, answer] of cases) {
    const gate = new PlainAnswer();
    const taken = parts.map((part, index) => gate.take(part, index < parts.length - 1));
    assert.deepEqual(taken.at(-1), { how: "answered", text: answer });
  }
});
