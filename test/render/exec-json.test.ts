import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import type { Changes, ExecResult, KeptOutput } from "../../src/core/ports.ts";
import { execJson } from "../../src/render/renderers.ts";

const NONE: KeptOutput = { head: Buffer.alloc(0), tail: Buffer.alloc(0), total: 0, lost: 0 };
const RESULT: ExecResult = {
  exit_code: 3,
  cause: "program",
  reason: "exit code 3",
  stdout: NONE,
  stderr: NONE,
  duration_ms: 1.25,
  timed_out: false,
  killed: false,
  leftovers: 1,
  blocked: ["/w/.git"],
  quarantined: [],
  peak: { memory_bytes: 4096, pids: 2 },
};
const CHANGES: Changes = {
  all: [
    { what: "added", kind: "file", mode: 0, path: "a" },
    { what: "modified", kind: "odd", mode: 0, path: "m" },
    { what: "deleted", kind: "file", mode: 0, path: "d" },
  ],
  incomplete: false,
  dropTracked: () => Promise.resolve(),
};

const shown = (stdout: KeptOutput): string => execJson({ ...RESULT, stdout }, CHANGES).stdout;
const cut = (bytes: Buffer, head: number, tail: number): KeptOutput => ({
  head: bytes.subarray(0, head),
  tail: bytes.subarray(bytes.length - tail),
  total: bytes.length,
  lost: bytes.length - head - tail,
});

test("the keys are exactly those of the contract, in its order", () => {
  assert.equal(
    JSON.stringify(execJson(RESULT, CHANGES)),
    '{"exit_code":3,"cause":"program","stdout":"","stderr":"","truncated":false,"duration_ms":1.25,' +
      '"timed_out":false,"killed":false,"blocked_connections":[],' +
      '"changes":{"added":["a"],"modified":["m"],"deleted":["d"]},"peak":{"memory_bytes":4096,"pids":2}}',
  );
});

test("a command that did not start is reported with the reason", () => {
  const unstarted = { ...RESULT, exit_code: 127, reason: "nope: there is no such program" };
  assert.equal(execJson(unstarted, CHANGES).reason, "nope: there is no such program");
  // A shell says so itself.
  const said = { ...NONE, head: Buffer.from("sh: nope: not found\n"), total: 20 };
  assert.equal(execJson({ ...unstarted, stderr: said }, CHANGES).reason, undefined);
});

test("a list that is too long is cut by its bytes, and an incomplete list says so", () => {
  const all = Array.from({ length: 1000 }, (_, at) => ({
    what: "added" as const,
    kind: "file" as const,
    mode: 0,
    path: `${at}`.padStart(4, "0") + "\u0001".repeat(1000),
  }));
  const { changes } = execJson(RESULT, { ...CHANGES, all, incomplete: true });
  assert.ok(Buffer.byteLength(JSON.stringify(changes)) <= 2 ** 20 + 200);
  const { added, left_out, incomplete } = changes;
  assert.ok(added.length > 100);
  assert.deepEqual([left_out, incomplete], [{ added: 1000 - added.length, modified: 0, deleted: 0 }, true]);
});

test("complete output is shown in full, wherever head ends and tail begins", () => {
  const text = "\uFEFFa€😀ä\n";
  const bytes = Buffer.from(text);
  for (let head = 0; head <= bytes.length; head += 1)
    assert.equal(shown(cut(bytes, head, bytes.length - head)), text);
});

test("no part of a split character is shown, and the gap states how much is missing", () => {
  const bytes = Buffer.from("a😀€ä12345ä€😀z");
  const full = bytes.toString();
  for (let head = 0; head < bytes.length; head += 1)
    for (let tail = 0; head + tail < bytes.length; tail += 1) {
      const text = shown(cut(bytes, head, tail));
      const [before, after] = text.split(/\n\[… \d+ of \d+ bytes left out …\]\n/);
      assert.ok(before !== undefined && after !== undefined && !text.includes("\uFFFD"), text);
      assert.ok(full.startsWith(before) && full.endsWith(after));
      assert.ok(text.includes(`… ${bytes.length - head - tail} of ${bytes.length} bytes`));
      assert.ok(head - Buffer.byteLength(before) < 4 && tail - Buffer.byteLength(after) < 4);
    }
});

test("a byte order mark at the start belongs to the program", () => {
  assert.ok(shown(cut(Buffer.from("\uFEFFabc-----xyz"), 6, 3)).startsWith("\uFEFFabc"));
});

test("bytes that are not text are shown as such, not taken for a split character", () => {
  const text = shown({ head: Buffer.from("a"), tail: Buffer.alloc(10, 0x80), total: 100, lost: 89 });
  assert.match(text, /\n\uFFFD{7,10}$/);
});

test("any bytes produce text, and lost output in either stream makes the answer truncated", () => {
  const any = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(any, any, fc.nat(9), (head, tail, lost) => {
      const kept = { head, tail, lost, total: head.length + tail.length + lost };
      for (const given of [{ stdout: kept }, { stderr: kept }]) {
        const { truncated, stdout, stderr } = execJson({ ...RESULT, ...given }, CHANGES);
        assert.equal(truncated, lost > 0);
        assert.equal(typeof JSON.parse(JSON.stringify(stdout + stderr)), "string");
      }
    }),
  );
});
