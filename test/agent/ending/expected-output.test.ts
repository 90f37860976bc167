import assert from "node:assert/strict";
import test from "node:test";
import { commonReply, isAsExpected, printedIn } from "../../../src/agent/ending/expected-output.ts";
import { adviseOnce, joinOutputs, endingOf } from "../../../src/tools/shell-command.ts";

test("replies are compared by their letters, case included, and long ones are not compared", () => {
  for (const [replies, one] of [
    [["HELLO ADA", "`HELLO, ADA`"], "HELLO ADA"],
    [["```sh\n1\n2\n```", "1 2"], "1\n2"],
    [["Hello", "HELLO"], undefined],
    [["x"], undefined],
    [["", ""], undefined],
    [["!", "?"], undefined],
    [["a".repeat(401), "a".repeat(401)], undefined],
    [["a\n".repeat(13), "a\n".repeat(13)], undefined],
  ] as const)
    assert.equal(commonReply(replies), one, JSON.stringify(replies));
  assert.ok(isAsExpected("false", '{"debug": false}'));
  assert.ok(!isAsExpected("HELLO ADA", "HELLO, Ada"));
  for (const nothing of ["(No output)", "Nothing is printed.", "`None`"])
    assert.equal(commonReply([nothing, nothing]), undefined, nothing);
});

test("the notes of a result are not part of the printed output, and a program's own brackets are", () => {
  const printed = "[1, 2, 3]\n['a']\n[ok]\n[INFO] [b]\n[b] c";
  const none = { head: new Uint8Array(), tail: new Uint8Array(), lost: 0, total: 0 };
  const { lines } = endingOf(
    {
      exit_code: 0,
      duration_ms: 5,
      timed_out: false,
      killed: false,
      cause: null,
      reason: "",
      peak: { memory_bytes: 1, pids: 1 },
      stdout: none,
      stderr: none,
      leftovers: 1,
      blocked: [".git/config"],
      quarantined: [{ from: ".envrc", to: "/x", takeBack: "" }],
      blocked_connections: Array.from({ length: 7 }, (_, at) => ({
        host: "",
        port: 443,
        method: null,
        rule: "",
        reason: `host ${at}`,
        times: 1,
      })),
    },
    "",
  );
  const advice = adviseOnce()(["leftovers"]);
  assert.equal(lines.length, 9);
  const notes = ["[HISTFILE is not kept for later calls: set it in the command that needs it]", ...advice];
  assert.equal(printedIn([joinOutputs(printed, "more"), ...notes, ...lines].join("\n")), `${printed}\nmore`);
});
