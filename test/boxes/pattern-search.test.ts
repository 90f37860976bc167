import assert from "node:assert/strict";
import test from "node:test";
import type { ExecResult } from "../../src/core/ports.ts";
import { searchCommand, searchResult } from "../../src/boxes/pattern-search.ts";

const REQUEST = { pattern: "-x", limit: 2 };
const PLACE = { workspace: "/w", folder: "/w/sub" };

const ended = (exit_code: number, stdout = "", stderr = "", lost = 0): ExecResult => ({
  exit_code,
  cause: exit_code === 0 ? null : "program",
  reason: exit_code === 0 ? "" : "command not found",
  stdout: { head: Buffer.from(stdout), tail: new Uint8Array(), total: stdout.length + lost, lost },
  stderr: { head: Buffer.from(stderr), tail: new Uint8Array(), total: stderr.length, lost: 0 },
  duration_ms: 1,
  timed_out: false,
  killed: false,
  leftovers: 0,
  blocked: [],
  quarantined: [],
  peak: { memory_bytes: 0, pids: 0 },
});

const line = (path: object, text: string, number: number): string =>
  `${JSON.stringify({ type: "match", data: { path, lines: { text }, line_number: number } })}\n`;

test("a pattern that looks like an option is searched for", () => {
  const { words } = searchCommand(REQUEST, "/w");
  assert.deepEqual(words.slice(-4), ["-e", "-x", "--", "."]);
});

test("names of any bytes and any line ends are returned", () => {
  const bytes = Buffer.from([0x2e, 0x2f, 0x61, 0xff]).toString("base64");
  const stdout = line({ text: "./a\nb" }, "one\r\n", 1) + line({ bytes }, "two", 2);
  assert.deepEqual(searchResult(REQUEST, PLACE, ended(0, stdout)), {
    kind: "ok",
    value: {
      lines: [
        { path: "sub/a\nb", line: 1, text: "one" },
        { path: "sub/a\udcff", line: 2, text: "two" },
      ],
      more: false,
    },
  });
});

test("a line truncated by the output limit is left out, and more is reported", () => {
  const stdout = `${line({ text: "./a" }, "one\n", 1)}{"type":"match","data":{"pa`;
  const result = searchResult(REQUEST, PLACE, ended(0, stdout, "", 100));
  assert.deepEqual(result.kind === "ok" && [result.value.lines.length, result.value.more], [1, true]);
});

const MISTAKES: readonly (readonly [ExecResult, code: string, says: RegExp])[] = [
  [ended(2, "", "regex parse error:\n    (\n    ^\nerror: unclosed group\n"), "EINVAL", /unclosed group$/],
  [ended(127), "ENOSYS", /command not found$/],
  [ended(124), "EINVAL", /command not found$/],
];

for (const [result, code, says] of MISTAKES)
  test(`exit code ${result.exit_code} is a refusal with ${code}`, () => {
    const refused = searchResult(REQUEST, PLACE, result);
    assert.ok(refused.kind === "failed");
    assert.deepEqual([refused.code, refused.path], [code, "/w/sub"]);
    assert.match(refused.reason, says);
  });
