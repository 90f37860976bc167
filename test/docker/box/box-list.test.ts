import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import test from "node:test";
import { Output } from "../../../src/render/tty/output.ts";
import type { ListedBox } from "../../../src/core/ports.ts";
import { pickBoxes } from "../../../src/docker/box/box-list.ts";
import { ageOf, boxTable } from "../../../src/render/environment-lines.ts";
import { refusalOf } from "../../fixtures/refusal.ts";

const box = (id: string, more: Partial<ListedBox> = {}): ListedBox => ({
  id,
  workspace: "/repo",
  mode: "read-only",
  isolation: "bind",
  owner: { pid: 7, alive: true },
  created: "2026-11-21T10:00:00.000Z",
  state: "running",
  parked: null,
  ...more,
});

const BOXES = [box("abc123"), box("abd456"), box("f00")];

const ids = (wanted: readonly string[]): readonly string[] => pickBoxes(BOXES, wanted).map(({ id }) => id);

test("a box is selected by any unique beginning of its id, and only once", () => {
  assert.deepEqual(ids(["abc"]), ["abc123"]);
  assert.deepEqual(ids(["f", "f00", "abd456"]), ["f00", "abd456"]);
});

test("an id that matches none or several, or is empty, is an error", async () => {
  assert.deepEqual(await refusalOf(() => pickBoxes(BOXES, ["f", "x"])), [
    2,
    'no box of yours has the id "x"',
  ]);
  assert.deepEqual(await refusalOf(() => pickBoxes(BOXES, ["ab"])), [
    2,
    "ab is the beginning of several ids: abc123, abd456",
  ]);
  assert.deepEqual(await refusalOf(() => pickBoxes(BOXES, [""])), [2, 'no box of yours has the id ""']);
});

const plain = new Output(new PassThrough() as unknown as NodeJS.WriteStream);

test("the table lists what is known, without control characters", () => {
  const odd = {
    mode: null,
    isolation: null,
    owner: null,
    workspace: "/a\u001B[2J\u202E\nb",
    state: "exited",
  };
  const dead = box("1234567890abcdef", { owner: { pid: 9, alive: false } });
  const seen = {
    now: Date.parse("2026-11-21T12:00:00Z"),
    memory: new Map([["1234567890abcdef", 3 * 2 ** 20]]),
  };
  assert.equal(
    boxTable([dead, box("f00", odd)], seen, plain),
    [
      "ID            MODE       ISOLATION  STATE    AGE  MEMORY   OWNER     WORKSPACE",
      "1234567890ab  read-only  bind       running  2 h  3.0 MiB  9 (gone)  /repo",
      "f00           -          -          exited   2 h  -        -         /a\\u{1b}[2J\\u{202e}\\u{a}b",
      "",
    ].join("\n"),
  );
});

test("ages are in the largest unit that fits", () => {
  const [minute, hour] = [60_000, 3_600_000];
  const ages = [-5, 59_999, minute, 59 * minute, hour, 47 * hour, 48 * hour].map(ageOf);
  assert.deepEqual(ages, ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 days"]);
});
