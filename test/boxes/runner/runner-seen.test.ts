import assert from "node:assert/strict";
import test from "node:test";
import type { Canary } from "../../../src/core/behaviour.ts";
import { decodeFields, encodeFields } from "../../../src/boxes/runner/runner-frames.ts";
import { observeFields, readSeen } from "../../../src/boxes/runner/runner-seen.ts";

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

test("the runner is told of each canary's kind and place, and an address without its port", () => {
  const sent = decodeFields(encodeFields(observeFields({ canaries: CANARIES, trees: ["/work"] })));
  assert.deepEqual(
    sent.map(({ name, bytes: value }) => `${name} ${value.toString()}`),
    ["w /work", "c f/home/box/.ssh/id", "c s/run/docker.sock", "c a169.254.169.254", "c afd00:ec2::254"],
  );
});

test("records are read over several pieces, names that are not UTF-8 too", () => {
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

test("a process that hid is among what was not seen, and nothing at all is told as nothing", () => {
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
