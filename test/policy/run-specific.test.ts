import assert from "node:assert/strict";
import test from "node:test";
import { asGlob, joinShapes, shapeOf } from "../../src/policy/propose-grants.ts";

const together = (...texts: readonly string[]): string | null => {
  const shapes = texts.map((text) => shapeOf(text));
  if (new Set(shapes.map(({ key }) => key)).size > 1) return null;
  return joinShapes(shapes, (piece) => `<${asGlob(piece).replaceAll(/(\[[^\]]*\])\1*/g, "$1")}>`).text;
};

test("hashes, dates and temporary names are recognised by their form", () => {
  const rows: readonly (readonly [one: string, other: string, pattern: string | null])[] = [
    ["out/a-1a2b3c4d.js", "out/a-9f8e7d6c.js", "out/a-<[0-9a-f]>.js"],
    ["log-2026-11-23.txt", "log-2027-01-02.txt", "log-<[0-9]-[0-9]-[0-9]>.txt"],
    ["log-20261123.txt", "log-20270102.txt", "log-<[0-9]>.txt"],
    ["r-20261123-101112.txt", "r-20270102-131415.txt", "r-<[0-9]-[0-9]>.txt"],
    ["at-1700000000", "at-1800000000", "at-<[0-9]>"],
    [
      "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
      "3f2504e0-4f89-11d3-9a0c-0305e82c33ff",
      "<[0-9a-f]-[0-9a-f]-[0-9a-f]-[0-9a-f]-[0-9a-f]>",
    ],
    ["/tmp/tmp.AbCdEfGh12", "/tmp/tmp.Zz00Yy11Xx", "/tmp/tmp.<[0-9A-Za-z]>"],
    ["--at=/tmp/x-1234/y", "--at=/tmp/x-5678/y", "--at=/tmp/x-<[0-9]>/y"],
    // One of two parts differs: the other stays.
    ["d-2026-11-23/1a2b3c4d", "d-2026-11-23/9f8e7d6c", "d-2026-11-23/<[0-9a-f]>"],
    // What a person chose.
    ["part-1", "part-2", null],
    ["sha256.txt", "sha512.txt", null],
    ["v2024", "v2025", null],
    ["/tmp/build-output", "/tmp/build-images", null],
    ["x-1234", "x-5678", null],
    ["report-final", "report-draft", null],
    ["deadbeef", "cafebabe", null],
    ["a-2026-13-45", "a-2026-14-46", null],
    ["a-1a2b3c4d", "a-1a2b3c4d5", null],
  ];
  for (const [one, other, pattern] of rows) assert.equal(together(one, other), pattern, one);
});

test("a long text is read in linear time", () => {
  const text = `/tmp/${"a1".repeat(200_000)}/${"0-".repeat(100_000)}`;
  assert.equal(shapeOf(text).key, shapeOf(text).key);
});
