import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc } from "../fixtures/property.ts";
import {
  candidateLine,
  truncate,
  plural,
  firstLines,
  firstOf,
  formatCount,
  formatDuration,
  formatSize,
  parseDuration,
  parseSize,
  candidate,
} from "../../src/core/wording.ts";

const DURATIONS: Readonly<Record<string, number>> = {
  "0": 0,
  "90": 90_000,
  "90s": 90_000,
  "30m": 1_800_000,
  "2h": 7_200_000,
  "250ms": 250,
  "1.5s": 1500,
  "0.5h": 1_800_000,
  "007": 7000,
  "90S": 90_000,
  " 90s\n": 90_000,
  "0.0001ms": 0,
  "9007199254740991ms": Number.MAX_SAFE_INTEGER,
};

const SIZES: Readonly<Record<string, number>> = {
  "0": 0,
  "512": 512,
  "512b": 512,
  "1k": 1024,
  "1kb": 1024,
  "1KiB": 1024,
  "256m": 268_435_456,
  "2g": 2_147_483_648,
  "2G": 2_147_483_648,
  "1.5g": 1_610_612_736,
  "1t": 1_099_511_627_776,
  " 2g ": 2_147_483_648,
  "9007199254740991": Number.MAX_SAFE_INTEGER,
};

/** No unit of either kind, so neither a duration nor a size. */
const NONSENSE = [
  "",
  " ",
  "s",
  "g",
  "-1",
  "-1s",
  "+1",
  "1e3",
  "1e3s",
  "1E3",
  "0x10",
  "1_000",
  "1,5",
  "1.",
  ".5",
  "1.2.3",
  "1 s",
  "2 g",
  "1d",
  "1w",
  "1p",
  "2gs",
  "1s2",
  "1m30s",
  "NaN",
  "Infinity",
  "lots",
  "null",
  "1\u00002",
  "\u0661\u0662",
  "\uFF19\uFF10",
  "\u0967s",
  "\u00BD",
  "1\u2075",
  "9007199254740993",
  "9".repeat(400),
];

for (const [text, ms] of Object.entries(DURATIONS))
  test(`the duration ${JSON.stringify(text)} is ${ms} ms`, () => {
    assert.equal(parseDuration(text), ms);
  });

for (const [text, bytes] of Object.entries(SIZES))
  test(`the size ${JSON.stringify(text)} is ${bytes} bytes`, () => {
    assert.equal(parseSize(text), bytes);
  });

for (const text of NONSENSE)
  test(`${JSON.stringify(text.slice(0, 20))} is neither a duration nor a size`, () => {
    assert.deepEqual([parseDuration(text), parseSize(text)], [undefined, undefined]);
  });

for (const text of ["5\u212A", "5\u212Ab", "5\u017F"])
  test(`a letter that only looks like a unit is not a size: ${JSON.stringify(text)}`, () => {
    assert.deepEqual([parseDuration(text), parseSize(text)], [undefined, undefined]);
  });

test("a unit of the other kind is refused", () => {
  const crossed = [parseDuration("2g"), parseDuration("1kb"), parseSize("90s"), parseSize("2h")];
  assert.deepEqual(crossed, [undefined, undefined, undefined, undefined]);
});

test("a value too large to be exact is refused, with and without a unit", () => {
  assert.deepEqual([parseDuration("9007199254741s"), parseDuration("1e999")], [undefined, undefined]);
  assert.deepEqual([parseSize("8192t"), parseSize("8191t")], [undefined, 9_006_099_743_113_216]);
});

test("any text yields undefined or a whole number that is not negative", () => {
  const texts = fc.oneof(fc.string(), anyText(), fc.double().map(String));
  const units = fc.constantFrom("", "s", "m", "h", "ms", "k", "g", "t", "gib", "x");
  fc.assert(
    fc.property(texts, units, (text, unit) => {
      for (const value of [parseDuration(text + unit), parseSize(text + unit)])
        assert.ok(value === undefined || (Number.isSafeInteger(value) && value >= 0), String(value));
    }),
  );
});

test("a count is formatted like toLocaleString does it", () => {
  for (const count of [0, 999, 1000, 12_345, 999_999, 1_000_000, -1000])
    assert.equal(formatCount(count), count.toLocaleString("en-US"));
  fc.assert(
    fc.property(fc.maxSafeInteger(), (count) => {
      assert.equal(formatCount(count), count.toLocaleString("en-US"));
    }),
  );
});

test("a whole number of any unit is read exactly", () => {
  const ms = { s: 1000, m: 60_000, h: 3_600_000, ms: 1, "": 1000 };
  const bytes = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
  fc.assert(
    fc.property(fc.nat(8000), (count) => {
      for (const [unit, factor] of Object.entries(ms))
        assert.equal(parseDuration(`${count}${unit}`), count * factor);
      for (const [unit, factor] of Object.entries(bytes))
        assert.equal(parseSize(`${count}${unit}`), count * factor);
    }),
  );
});

test("a formatted size parses back to within 1/19 of the value", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 8000 * 2 ** 40 }), (bytes) => {
      const shown = formatSize(bytes);
      const back = parseSize(shown.replace(" ", ""));
      assert.ok(back !== undefined && Math.abs(back - bytes) <= bytes / 19, `${bytes} shows as ${shown}`);
    }),
  );
});

const SHOWN_DURATIONS: Readonly<Record<string, string>> = {
  0: "0 ms",
  0.4: "0 ms",
  1: "1 ms",
  999: "999 ms",
  1000: "1.0 s",
  1549: "1.5 s",
  59_900: "59.9 s",
  60_000: "1 min 0 s",
  119_999: "1 min 59 s",
  7_200_000: "120 min 0 s",
};

for (const [ms, shown] of Object.entries(SHOWN_DURATIONS))
  test(`${ms} ms are shown as ${shown}`, () => {
    assert.equal(formatDuration(Number(ms)), shown);
  });

const SHOWN_SIZES: Readonly<Record<string, string>> = {
  0: "0 B",
  1023: "1023 B",
  1024: "1.0 KiB",
  1536: "1.5 KiB",
  10_240: "10 KiB",
  268_435_456: "256 MiB",
  2_147_483_648: "2.0 GiB",
  1_099_511_627_776: "1.0 TiB",
  1_125_899_906_842_624: "1024 TiB",
};

for (const [bytes, shown] of Object.entries(SHOWN_SIZES))
  test(`${bytes} bytes are shown as ${shown}`, () => {
    assert.equal(formatSize(Number(bytes)), shown);
  });

test("rounding never shows a whole larger unit in the smaller one", () => {
  assert.deepEqual(
    [formatDuration(999.7), formatDuration(59_999), formatSize(2 ** 20 - 1), formatSize(2 ** 30 - 1)],
    ["1.0 s", "1 min 0 s", "1.0 MiB", "1.0 GiB"],
  );
});

const NAMES = ["a", "b", "c"];

test("one is counted in the singular, everything else in the plural", () => {
  assert.deepEqual(
    [0, 1, 2].map((count) => plural(count, "file")),
    ["0 files", "1 file", "2 files"],
  );
  assert.equal(plural(2, "process", "processes"), "2 processes");
});

test("of many names the first are listed and the rest counted", () => {
  assert.equal(firstOf(NAMES, 3), "a, b, c");
  assert.equal(
    firstOf(NAMES, 2, (name) => `<${name}>`),
    "<a>, <b> and 1 more",
  );
  assert.equal(firstOf([], 2), "");
  assert.deepEqual(firstLines(NAMES, 1), ["a", "and 2 more"]);
  assert.deepEqual(firstLines(NAMES, 3), NAMES);
});

test("a text is cut with a mark, and only if it is longer", () => {
  assert.deepEqual(
    ["abc", "abcd", ""].map((text) => truncate(text, 3)),
    ["abc", "abc…", ""],
  );
  assert.deepEqual(
    [2, 3, 4].map((most) => truncate("ab😀c", most)),
    ["ab…", "ab…", "ab😀…"],
  );
});

test("a word of plain letters is offered with a one-line description", () => {
  assert.equal(candidateLine(candidate("1ng41dkw23pc", "fix the sum")), "1ng41dkw23pc\tfix the sum");
  assert.equal(candidateLine(candidate("registry/qwen3:8b-q4_K_M")), "registry/qwen3:8b-q4_K_M");
  assert.equal(candidateLine(candidate("--mode=read-only")), "--mode=read-only");
});

test("a word with special characters of the shell is not offered", () => {
  for (const value of [
    "$(id)",
    "`id`",
    "a b",
    "a;b",
    "a'b",
    'a"b',
    "a\\b",
    "~root",
    "a\nb",
    "a*",
    "{a,b}",
    "",
    "=a",
  ])
    assert.equal(candidateLine(candidate(value)), undefined, value);
  assert.equal(candidateLine(candidate("a".repeat(201))), undefined);
});

test("the description of a word is one short line without control characters", () => {
  fc.assert(
    fc.property(anyText({ maxLength: 300 }), (about) => {
      const line = candidateLine(candidate("id", about)) ?? "";
      assert.match(line, /^id(?:\t[^\p{Cc}\u202A-\u202E\u2066-\u2069]+)?$/u);
      assert.ok(line.length <= 63);
    }),
  );
  assert.equal(candidateLine(candidate("id", "a\nfiles\u001B]52;c;x\u0007\tb"))?.split(/[\n\t]/).length, 2);
});
