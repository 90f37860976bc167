import assert from "node:assert/strict";
import { constants } from "node:os";
import test from "node:test";
import {
  exitUnstarted,
  isFolderGone,
  nameOfErrno,
  readExit,
  type RunnerExit,
  verdictOf,
} from "../../../src/boxes/runner/runner-exit.ts";
import { encodeFields } from "../../../src/boxes/runner/runner-frames.ts";

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

test("every field of the runner's word is read", () => {
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

test("one ending has one cause, and limits go before what the program made of them", () => {
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

test("what could not be started is told apart", () => {
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

test("a file that was asked for stands beside the end, or why it does not", () => {
  assert.equal(kept(), undefined);
  assert.deepEqual(kept(["K", Buffer.from("a\0b")]), { content: Buffer.from("a\0b") });
  assert.deepEqual(kept(["K", ""]), { content: Buffer.alloc(0) });
  assert.deepEqual(kept(["F", ERRNO.ENOENT]), { errno: ERRNO.ENOENT });
});

test("a folder that cannot be entered is told apart from a program that is not there", () => {
  assert.ok(isFolderGone(exit({ errno: ERRNO.ENOENT, where: 2 })));
  assert.ok(!isFolderGone(exit({ errno: ERRNO.ENOENT, where: 3 })));
  assert.ok(!isFolderGone(exit({ code: 126, where: 2 })));
});
