import assert from "node:assert/strict";
import test from "node:test";
import type { ExecResult } from "../../src/core/ports.ts";
import { adviseOnce, endingOf, signOf } from "../../src/tools/shell-command.ts";

const nothing = { head: new Uint8Array(), tail: new Uint8Array(), total: 0, lost: 0 };
const DONE: ExecResult = {
  exit_code: 0,
  cause: null,
  reason: "",
  stdout: nothing,
  stderr: nothing,
  duration_ms: 1200,
  timed_out: false,
  killed: false,
  leftovers: 0,
  blocked: [],
  quarantined: [],
  peak: { memory_bytes: 1, pids: 1 },
};
const FAILED: ExecResult = { ...DONE, exit_code: 3, cause: "program", reason: "exit code 3" };
const WAY = {
  host: "a.test",
  port: 443,
  method: null,
  rule: "not-granted",
  reason: "the host a.test is not granted",
  times: 1,
};

const CASES: readonly (readonly [string, Partial<ExecResult>, string, readonly string[]])[] = [
  ["failed program", FAILED, "", ["[exit 3, 1.2 s]"]],
  [
    "failed program",
    { ...FAILED, exit_code: 139, reason: "ended by signal SIGSEGV" },
    "",
    ["[exit 139, 1.2 s: ended by signal SIGSEGV]"],
  ],
  [
    "failed network",
    FAILED,
    "curl: (6) Could not resolve host: example.com",
    ["[exit 3, 1.2 s, network: the box has no network, or was not granted that host]"],
  ],
  [
    "failed filesystem",
    {
      ...FAILED,
      cause: "filesystem",
      reason: "blocked: /w/.git/x cannot be written here",
      blocked: ["/w/.git/x"],
    },
    "getaddrinfo EAI_AGAIN",
    ["[exit 3, 1.2 s, filesystem: blocked: /w/.git/x cannot be written here]"],
  ],
  [
    "failed memory",
    { exit_code: 0, cause: "memory", reason: "the limit" },
    "",
    ["[exit 0, 1.2 s, memory: the limit]"],
  ],
  [
    "timed_out timeout",
    { exit_code: 124, cause: "timeout" },
    "",
    ["[timed out after 1.2 s: ended with all that it started]"],
  ],
  ["cancelled user", { exit_code: 137, cause: "user" }, "", ["[cancelled after 1.2 s]"]],
  ["ok null", { blocked: ["/w/.git/x"] }, "EROFS", ["[protected, not written: /w/.git/x]"]],
  ["ok null", { leftovers: 2 }, "", ["[2 processes that it left running ended with it]"]],
  [
    "ok null",
    { quarantined: ["a", "b", "c", "d", "e", "f"].map((from) => ({ from, to: null, takeBack: "" })) },
    "",
    ["[moved out of the workspace, because the host would obey it: a, b, c, d, e and 1 more]"],
  ],
  [
    "failed network",
    {
      ...FAILED,
      blocked_connections: [WAY, { ...WAY, host: "b.test", reason: "the host b.test is not granted" }],
    },
    "curl: (56) CONNECT tunnel failed, response 403",
    [
      "[no connection: the host b.test is not granted]",
      "[exit 3, 1.2 s, network: the box was refused a connection: the host a.test is not granted]",
    ],
  ],
  [
    "failed program",
    { ...FAILED, blocked_connections: [WAY] },
    "1 test failed",
    ["[no connection: the host a.test is not granted]", "[exit 3, 1.2 s]"],
  ],
  ["ok null", { blocked_connections: [WAY, WAY] }, "", ["[no connection: the host a.test is not granted]"]],
  ["ok null", {}, "curl: (6) Could not resolve host: a", []],
];

for (const [how, over, output, lines] of CASES)
  test(`${how}: ${lines.join(" ") || "nothing to say"}`, () => {
    const ending = endingOf({ ...DONE, ...over }, output);
    assert.deepEqual([`${ending.kind} ${ending.cause}`, ending.lines], [how, lines]);
  });

test("advice is given once for each cause", () => {
  const advise = adviseOnce();
  assert.equal(advise(["network"]).length, 1);
  assert.deepEqual(advise(["network"]), []);
  assert.match(advise(["network", "disk"]).join("\n"), /^\[advice: delete [^\n]*\]$/);
});

const SIGNS: Readonly<Record<string, string>> = {
  "npm error code EAI_AGAIN": "network",
  "fatal: unable to access 'https://x/': Could not resolve host: x": "network",
  "socket.gaierror: [Errno -3] Temporary failure in name resolution": "network",
  "bash: connect: Network is unreachable": "network",
  'Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org: Temporary failure': "network",
  "bash: fork: retry: Resource temporarily unavailable": "pids",
  "RuntimeError: can't start new thread": "pids",
  MemoryError: "memory",
  "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": "memory",
  "dd: error writing 'x': No space left on device": "disk",
  "touch: cannot touch '/usr/x': Read-only file system": "filesystem",
  "AssertionError: expected 3, got 4": "none",
  "cat: x: No such file or directory": "none",
  "read: Resource temporarily unavailable": "none",
  "the network was resolved, no space": "none",
};

for (const [output, cause] of Object.entries(SIGNS))
  test(`"${output}" points to ${cause}`, () => {
    assert.equal(signOf(`first\n${output}\nlast`)?.cause ?? "none", cause);
  });
