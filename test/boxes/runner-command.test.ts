import assert from "node:assert/strict";
import { constants } from "node:os";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  creditWindow,
  exitUnstarted,
  isFolderGone,
  nameOfErrno,
  observeFields,
  readExit,
  readSeen,
  type RunnerExit,
  verdictOf,
} from "../../src/boxes/runner-command.ts";
import { decodeFields, encodeFields } from "../../src/boxes/runner-protocol.ts";
import type { Canary } from "../../src/core/behaviour.ts";
import { fc } from "../fixtures/property.ts";

const { errno: ERRNO, signals: SIGNALS } = constants;
const exit = (given: Partial<RunnerExit>): RunnerExit => ({
  ...exitUnstarted(0),
  errno: null,
  code: null,
  ...given,
});
const brief = (given: Partial<RunnerExit>, cancelled = false): readonly unknown[] => {
  const { exitCode, cause, reason } = verdictOf(exit(given), cancelled);
  return [exitCode, cause, reason];
};

test("every field of the runner's reply is read", () => {
  const names = ["c", "t", "k", "o", "e", "O", "R", "m", "p", "x", "l", "u", "z"];
  const read = readExit(
    encodeFields(names.map((name, index) => [name, name === "t" || name === "z" ? 1 : index + 10])),
  );
  assert.deepEqual(read, {
    code: 10,
    signal: null,
    errno: null,
    where: 0,
    timedOut: true,
    killed: 12,
    stdout: { total: 13, lost: 15 },
    stderr: { total: 14, lost: 16 },
    peakMemory: 17,
    peakPids: 18,
    memoryKills: 19,
    pidsRefused: 20,
    microseconds: 21,
    stuck: true,
  });
  const failed = readExit(
    encodeFields([
      ["E", ERRNO.ENOENT],
      ["W", 2],
    ]),
  );
  assert.deepEqual([failed.errno, failed.where, failed.code, failed.signal], [ERRNO.ENOENT, 2, null, null]);
});

test("each ending has one cause, and limits take precedence over what the program made of them", () => {
  assert.deepEqual(brief({ code: 0 }), [0, null, ""]);
  assert.deepEqual(brief({ code: 3 }), [3, "program", "exit code 3"]);
  assert.deepEqual(brief({ signal: SIGNALS.SIGSEGV }), [139, "program", "ended by signal SIGSEGV"]);
  assert.deepEqual(brief({ signal: 99 }), [227, "program", "ended by signal 99"]);
  assert.deepEqual(brief({ signal: 9 }, true), [137, "user", "cancelled"]);
  const cause = (given: Partial<RunnerExit>, cancelled = false): readonly unknown[] =>
    brief(given, cancelled).slice(0, 2);
  assert.deepEqual(cause({ code: 0, timedOut: true }), [124, "timeout"]);
  assert.deepEqual(cause({ signal: 15, timedOut: true, memoryKills: 1 }), [124, "timeout"]);
  assert.deepEqual(cause({ signal: 9, timedOut: true }, true), [137, "user"]);
  assert.deepEqual(cause({ code: 0, memoryKills: 1, pidsRefused: 1 }), [0, "memory"]);
  assert.deepEqual(cause({ code: 2, pidsRefused: 4 }), [2, "pids"]);
  assert.deepEqual(cause({ signal: SIGNALS.SIGXFSZ }), [128 + SIGNALS.SIGXFSZ, "disk"]);
  assert.deepEqual(cause({ code: 128 + SIGNALS.SIGXFSZ }), [128 + SIGNALS.SIGXFSZ, "disk"]);
});

test("the reasons why a program could not be started are distinguished", () => {
  const unstarted = (errno: number, where = 1): readonly unknown[] => brief({ errno, where }).slice(0, 2);
  assert.deepEqual(unstarted(ERRNO.ENOENT), [127, "program"]);
  assert.deepEqual(unstarted(ERRNO.ENOTDIR), [127, "program"]);
  assert.deepEqual(brief({ errno: ERRNO.ENOENT, where: 2 }), [
    126,
    "program",
    "its working folder does not exist",
  ]);
  assert.deepEqual(unstarted(ERRNO.EACCES), [126, "program"]);
  assert.deepEqual(unstarted(ERRNO.E2BIG), [126, "program"]);
  assert.deepEqual(unstarted(ERRNO.EAGAIN), [126, "pids"]);
  assert.deepEqual(unstarted(ERRNO.ENOMEM), [126, "memory"]);
  assert.match(String(brief({ errno: 4242 })[2]), /error 4242/);
  assert.deepEqual([nameOfErrno(ERRNO.EROFS), nameOfErrno(4242)], ["EROFS", "error 4242"]);
});

const kept = (...fields: Parameters<typeof encodeFields>[0]): unknown =>
  readExit(encodeFields([["c", 0], ...fields])).kept;

test("the requested file is returned with the end, or the reason why it is missing", () => {
  assert.equal(kept(), undefined);
  assert.deepEqual(kept(["K", Buffer.from("a\0b")]), { content: Buffer.from("a\0b") });
  assert.deepEqual(kept(["K", ""]), { content: Buffer.alloc(0) });
  assert.deepEqual(kept(["F", ERRNO.ENOENT]), { errno: ERRNO.ENOENT });
});

test("a folder that cannot be entered is distinguished from a missing program", () => {
  assert.ok(isFolderGone(exit({ errno: ERRNO.ENOENT, where: 2 })));
  assert.ok(!isFolderGone(exit({ errno: ERRNO.ENOENT, where: 3 })));
  assert.ok(!isFolderGone(exit({ code: 126, where: 2 })));
});

const CANARIES: readonly Canary[] = [
  { name: "a key", kind: "file", at: "/home/box/.ssh/id" },
  { name: "the engine", kind: "socket", at: "/run/docker.sock" },
  { name: "metadata", kind: "address", at: "169.254.169.254:80" },
  { name: "metadata by IPv6", kind: "address", at: "[fd00:ec2::254]:80" },
];

const bytes = (...parts: readonly (readonly [size: 1 | 4 | 8, value: number] | string | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => {
      if (typeof part === "string") return Buffer.from(part);
      if (Buffer.isBuffer(part)) return part;
      const buffer = Buffer.alloc(8);
      buffer.writeBigUInt64LE(BigInt(part[1]));
      return buffer.subarray(0, part[0]);
    }),
  );

const act = (kind: string, body: Buffer | string, times = 1): readonly [string, Buffer] => [
  "a",
  bytes(kind, [4, 9], [4, times], [8, 2500], body),
];

test("the runner is told the kind and place of each canary, and an address without its port", () => {
  const sent = decodeFields(encodeFields(observeFields({ canaries: CANARIES, trees: ["/work"] })));
  assert.deepEqual(
    sent.map(({ name, bytes: value }) => `${name} ${value.toString()}`),
    ["w /work", "c f/home/box/.ssh/id", "c s/run/docker.sock", "c a169.254.169.254", "c afd00:ec2::254"],
  );
});

test("records are read across pieces, including names that are not UTF-8", () => {
  const first = encodeFields([
    ["p", bytes([4, 7], [4, 0], [8, 0], "bash\0-c\0x; y")],
    ["p", bytes([4, 9], [4, 7], [8, 1500], "cat\0", Buffer.from([0xff]))],
    act("r", Buffer.from([0x2f, 0xff]), 3),
    act("d", "/a"),
    act("x", "/bin/cat"),
  ]);
  const second = encodeFields([
    act("c", bytes("i", [4, 443], "::1")),
    act("l", bytes("u", [4, 0xffff_ffff], "@name")),
    act("s", bytes("o", [4, 0xffff_ffff], "family 38")),
    act("n", "a.example"),
    act("k", "kill\0signal 9 to process 1"),
    ["t", bytes([4, 1], [4, 9], [8, 3000], "/var/run/docker.sock")],
    ["P", 2],
    ["A", 5],
    ["b", 2],
    ["h", 0],
  ]);
  const { unseen, ...seen } = readSeen([first, second], CANARIES);
  const at = { at: 2.5, pid: 9, times: 1 };
  assert.deepEqual(seen, {
    by: "calls",
    processes: [
      { pid: 7, parent: 0, at: 0, words: ["bash", "-c", "x; y"] },
      { pid: 9, parent: 7, at: 1.5, words: ["cat", "\udcff"] },
    ],
    acts: [
      { ...at, times: 3, kind: "read", path: "/\udcff" },
      { ...at, kind: "remove", path: "/a" },
      { ...at, kind: "run", path: "/bin/cat" },
      { ...at, kind: "connect", family: "ip", address: "::1", port: 443 },
      { ...at, kind: "listen", family: "unix", address: "@name", port: null },
      { ...at, kind: "send", family: "other", address: "family 38", port: null },
      { ...at, kind: "name", name: "a.example" },
      { ...at, kind: "call", name: "kill", detail: "signal 9 to process 1" },
    ],
    missed: { processes: 2, acts: 5 },
    touched: { canary: "the engine", pid: 9, at: 3, path: "/var/run/docker.sock" },
  });
  assert.ok(unseen.length > 0);
});

test("a hidden process is listed as unseen, and without records everything is", () => {
  const calls = readSeen([encodeFields([["b", 2]])], []).unseen;
  const hidden = readSeen(
    [
      encodeFields([
        ["b", 2],
        ["h", 1],
      ]),
    ],
    [],
  ).unseen;
  assert.equal(hidden.length, calls.length + 1);
  const none = readSeen([], []);
  assert.deepEqual([none.by, none.processes, none.touched], ["none", [], null]);
  assert.match(none.unseen.join(), /everything/);
});

const credit = (bytes: number): Buffer => encodeFields([["n", bytes]]);

test("no more than the window is ever in flight, and all of it arrives", async () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(pieces, async (sizes) => {
      const window = creditWindow(100);
      const count = { underWay: 0, sent: 0 };
      const sending = (async () => {
        for (const size of sizes) {
          assert.equal(await window.take(size), true);
          count.underWay += size;
          count.sent += size;
          assert.ok(count.underWay <= 100);
        }
      })();
      const all = sizes.reduce((sum, size) => sum + size, 0);
      while (count.sent < all || count.underWay > 0) {
        await Promise.resolve();
        const taken = Math.min(count.underWay, 7);
        count.underWay -= taken;
        window.give(credit(taken));
        await turn();
      }
      await sending;
    }),
    { numRuns: 30 },
  );
});

test("stopping the window makes everyone who waits give up, and everyone later", async () => {
  const window = creditWindow(10);
  assert.equal(await window.take(10), true);
  const waiting = window.take(1);
  window.stop();
  assert.deepEqual([await waiting, await window.take(1)], [false, false]);
  window.give(credit(5));
  assert.equal(await window.take(1), false);
});
