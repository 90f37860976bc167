import assert from "node:assert/strict";
import test from "node:test";
import { spawnSync } from "node:child_process";
import type { ExecResult } from "../../src/core/ports.ts";
import {
  adviseOnce,
  endingOf,
  envOver,
  exportedIn,
  judgedText,
  wallSign,
  stateIn,
} from "../../src/tools/shell-command.ts";
import { anyText, fc } from "../fixtures/property.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";

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
  test(`${how}: ${lines.join(" ") || "no note"}`, () => {
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
  test(`"${output}" indicates ${cause}`, () => {
    assert.equal(wallSign(`first\n${output}\nlast`)?.cause ?? "none", cause);
  });

test("a command is judged with the variables exported by earlier calls", () => {
  assert.equal(judgedText("make $T", {}), "make $T");
  assert.equal(
    judgedText("make $T", { T: "it's", A: "$(x)\n" }),
    `export T="it's"\nexport A='$(x)\n'\nmake $T`,
  );
});

test("bash reads any value back from the judged text", () => {
  const value = fc.string({ unit: fc.constantFrom("'", '"', "\\", "$", "`", "\n", "!", "a", "é", " ", "*") });
  const values = fc.sample(value, 400);
  const texts = values.map((text) => judgedText('printf "%s\\0" "$V"', { V: text }));
  const { stdout } = spawnSync("bash", ["-c", texts.join("\n")]);
  assert.deepEqual(stdout.toString().split("\0").slice(0, -1), values);
});

const written = (...fields: readonly string[]): Buffer =>
  Buffer.from(fields.map((field) => `${field}\0`).join(""));
const read = (...fields: readonly string[]): ReturnType<typeof stateIn> =>
  stateIn(written("token", ...fields), "token");

test("a shell's state is its folder and its exported variables", () => {
  assert.deepEqual(read("/repo/a", "NEW=a=b\nc", "EMPTY=", "END"), {
    folder: "/repo/a",
    exported: new Map([
      ["NEW", "a=b\nc"],
      ["EMPTY", ""],
    ]),
  });
});

test("a state left by another call is ignored", () => {
  assert.equal(stateIn(written("other", "/repo/a", "END"), "token"), undefined);
  assert.equal(stateIn(written("", "/repo/a", "END"), "token"), undefined);
});

test("invalid names, functions and variables that bash sets itself are dropped", () => {
  const dropped = ["BASH_FUNC_f%%=() { x; }", "a-b=1", "=x", "1A=x", "PWD=/", "OLDPWD=/", "SHLVL=9", "_=x"];
  const own = ["BASH_ENV=/tmp/x", "SHELLOPTS=xtrace", "__h_code=0", "NAME", "", "KEPT=3"];
  assert.deepEqual(exportedIn([...dropped, ...own]), new Map([["KEPT", "3"]]));
});

const REFUSED: readonly (readonly [readonly string[], string])[] = [
  [["/repo", "A=1"], "they were not completely written"],
  [["END"], "they were not completely written"],
  [[], "they were not completely written"],
  [["repo", "END"], "the folder is not a path"],
  [["/repo/../etc", "END"], "the folder is not a path"],
  [["/repo//x", "END"], "the folder is not a path"],
  [[`/${"x".repeat(4096)}`, "END"], "the folder is not a path"],
];

for (const [fields, why] of REFUSED)
  test(`nothing is kept when ${why}: ${fields.join(" ").slice(0, 30)}`, () => {
    assert.equal(read(...fields), why);
  });

test("nothing is kept from an incomplete list of names", () => {
  assert.equal(stateIn(Buffer.from("HOME\nPATH\n"), "token"), "they were not completely written");
  assert.equal(stateIn(Buffer.from(""), "token"), "they were not completely written");
});

test("nothing is kept from a state that is not UTF-8", () => {
  assert.equal(stateIn(Buffer.from("token\0/repo/\xFF\0END\0", "latin1"), "token"), "they are not UTF-8");
});

test("only variables that differ from the box's are kept, if they are unchanged or allowed", async () => {
  const context = fakeToolContext({ refused: () => Promise.resolve(new Set(["LANG", "CHANGED"])) });
  context.shell.move("/repo", { OLD: "1", CHANGED: "1", GONE: "1" });
  const own = new Map(Object.entries({ HOME: "/home/box", LANG: "C" }));
  const left = { HOME: "/home/box", LANG: "x", OLD: "1", CHANGED: "2", NEW: "1" };
  assert.deepEqual(await envOver(own, new Map(Object.entries(left)), context), {
    env: { OLD: "1", NEW: "1" },
    refused: ["LANG", "CHANGED"],
  });
});

test("any bytes give a valid state, a reason, or nothing", () => {
  const field = fc.oneof(anyText(), fc.constantFrom("/a", "A=1", "END", "token", "\0"));
  fc.assert(
    fc.property(fc.array(field, { maxLength: 6 }), (fields) => {
      const state = stateIn(Buffer.from(fields.join("\0")), "token");
      if (typeof state !== "object") return;
      assert.ok(state.folder.startsWith("/"));
      for (const name of state.exported.keys()) assert.match(name, /^[A-Za-z_]\w*$/);
    }),
  );
});
