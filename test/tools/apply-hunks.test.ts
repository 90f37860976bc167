// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { applyHunks } from "../../src/tools/apply-patch.ts";
import { readPatch } from "../../src/tools/patch-reader.ts";
import { compactDiff } from "../../src/tools/text-edit.ts";
import { fc, part } from "../fixtures/property.ts";

/** The text after a patch of one file, or the reason for its refusal. */
function patched(text: string, patch: string): string {
  const read = readPatch(patch);
  if (read.kind === "mistake") return `mistake: ${read.why}`;
  try {
    return applyHunks("f", text, read.files[0]?.hunks ?? []);
  } catch (thrown) {
    return `mistake: ${(thrown as Error).message}`;
  }
}

const unified = (lines: readonly string[]): string => `--- a/f\n+++ b/f\n${lines.join("\n")}\n`;
const envelope = (...lines: string[]): string =>
  ["*** Begin Patch", "*** Update File: f", ...lines, "*** End Patch"].join("\n");

const line = fc.constantFrom(
  "a",
  "b",
  "",
  " ",
  "-",
  "--- a/x",
  "+++ b/x",
  "@@ -1 +1 @@",
  "ä\r",
  "*** End of File",
);
const text = fc.tuple(fc.array(line, { maxLength: 12 }), fc.boolean()).map(([lines, ended]) => {
  const joined = lines.join("\n");
  return ended && lines.length > 0 ? `${joined}\n` : joined;
});

test("the diff of any two texts turns one into the other", () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      fc.pre(before !== after);
      assert.equal(patched(before, unified(compactDiff(before, after).lines)), after);
    }),
    { numRuns: part(3000) },
  );
});

test("a diff fits a text whose lines have moved, and keeps all other bytes", () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 5 });
  const other = fc.array(fc.constantFrom("x", "y \t", "z\uDCFF"), { maxLength: 8 });
  fc.assert(
    fc.property(numbers, other, fc.constantFrom("\n", "\r\n"), (changed, above, eol) => {
      const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`);
      const young = lines.map((one, at) => (changed.includes(at + 1) ? `new ${at + 1}` : one));
      const diff = compactDiff(`${lines.join("\n")}\n`, `${young.join("\n")}\n`).lines;
      fc.pre(diff.length > 0);
      const before = [...above, ...lines].join(eol);
      const after = [...above, ...young].join(eol);
      assert.equal(patched(before, unified(diff)), after);
      const bare = diff.map((one) => (one.startsWith("@@") ? "@@" : one));
      assert.equal(patched(before, envelope(...bare)), after);
    }),
    { numRuns: part(500) },
  );
});

test("wrong line numbers never apply half of a diff", () => {
  const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { minLength: 1, maxLength: 9 });
  const numbers = fc.array(fc.nat({ max: 6 }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(lines, lines, numbers, (before, after, [a, b, c, d]) => {
      const [old, young] = [before, after].map((all) => `${all.join("\n")}\nend\n`) as [string, string];
      const diff = compactDiff(old, young).lines.map((one) => (one === " " ? "" : one));
      const wrong = diff.map((one) => (one.startsWith("@@") ? `@@ -${a},${b} +${c},${d} @@` : one));
      fc.pre(diff.filter((one) => one.startsWith("@@")).length === 1);
      const made = patched(old, unified(wrong));
      assert.ok(made.startsWith("mistake") || sorted(made) === sorted(young), made);
    }),
    { numRuns: part(3000) },
  );
});

const sorted = (text: string): string => text.split("\n").toSorted().join("\n");

test("trailing spaces are ignored when searching, and stay as they are", () => {
  const before = "a  \nb\t\nc\n";
  assert.equal(patched(before, envelope("@@", " a", "-b", "+B", " c")), "a  \nB\nc\n");
  assert.match(
    patched("  aa\nbb\n", envelope(" aa", "-bb", "+B")),
    /lines 1-2 differ only in spaces or tabs/,
  );
});

test("a place must be unique, unless a line number or a line above identifies it", () => {
  const before = "class A\n  run\n  end\nclass B\n  run\n  end\n";
  const change = ["-  run", "+  go"];
  assert.match(patched(before, envelope("@@", ...change)), /found 2 times, at lines 2, 5/);
  assert.equal(patched(before, envelope("@@ class B", ...change)), before.replace(/run(?!.*run)/s, "go"));
  const numbered = unified(["@@ -5 +5 @@", ...change]);
  assert.equal(patched(before, numbered), before.replace(/run(?!.*run)/s, "go"));
  const ended = envelope("@@", ...change, "   end", "*** End of File");
  assert.equal(patched(before, ended), before.replace(/run(?!.*run)/s, "go"));
});

test("hunks may come in any order, but must not overlap", () => {
  const before = "1\n2\n3\n4\n";
  assert.equal(patched(before, envelope("@@", "-4", "+four", "@@", "-1", "+one")), "one\n2\n3\nfour\n");
  assert.match(patched(before, envelope("@@", " 1", "-2", "@@", "-2", " 3")), /change the same lines/);
});

test("added lines without context go to the end, or below the named line", () => {
  assert.equal(patched("a\nb\n", envelope("@@", "+c")), "a\nb\nc\n");
  assert.equal(patched("a\nb", envelope("@@", "+c")), "a\nb\nc");
  assert.equal(patched("a\r\nb\r\n", envelope("@@ a", "+c")), "a\r\nc\r\nb\r\n");
  assert.match(patched("a\na\n", envelope("@@ a", "+c")), /found 2 times/);
  assert.equal(patched("", envelope("@@", "+c")), "c\n");
});

test("wrong counts, blank lines without a space and text around a diff do no harm", () => {
  const before = "a\n\nb\nc\n";
  const body = [" a", "", "-b", "+B", " c"];
  for (const head of ["@@ -1,9 +1,9 @@", "@@ -1,2 +1,1 @@", "@@ -7,4 +7,4 @@ words", "@@", "@@ ... @@"])
    assert.equal(patched(before, unified([head, ...body])), "a\n\nB\nc\n", head);
  assert.equal(
    patched(before, `Here it is:\n\`\`\`diff\n${unified(["@@ -1,4 +1,4 @@", ...body])}\`\`\`\n`),
    "a\n\nB\nc\n",
  );
  assert.equal(
    patched(before, unified(["@@ -1,4 +1,4 @@", ...body]).replaceAll("\n", "\r\n")),
    "a\n\nB\nc\n",
  );
});

test("an unreadable patch is refused with the line and the expected form", () => {
  for (const [patch, why] of [
    ["", /no file is named/],
    ["just words", /\*\*\* Update File: path/],
    ["@@ -1 +1 @@\n-a\n+b\n", /before any --- and \+\+\+/],
    ["*** End Patch", /no file is named/],
    [envelope("@@", "a"), /begins with a space, - or \+, but one is "a"/],
    ["*** Begin Patch\n*** Add File: x\nhello\n*** End Patch", /one is "hello"/],
    ["*** Begin Patch\n*** Update File: x\n*** End Patch", /nothing stands below/],
    ["*** Begin Patch\nx\n*** End Patch", /"x" stands before any/],
    ["diff --git a/x b/x\nGIT binary patch\n", /binary/],
    ["diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", /no links/],
  ] as const)
    assert.match(patched("", patch), why);
});

test("a diff in an e-mail ends where the mail's signature begins", () => {
  const mail = `From: x\n---\n f | 2 +-\n\n${unified(["@@ -1 +1 @@", "-a", "+b", "-- ", "2.39.5", ""])}`;
  assert.equal(patched("a\n", mail), "b\n");
});

test("a hunk that does not fit shows the nearest lines, or says that it seems to be applied", () => {
  const before = "one\ntwo\nthree\n";
  assert.match(
    patched(before, envelope("@@", " one", "-too", "+2")),
    /lines 1-2 are nearest\..*\n1\tone\n2\ttwo/s,
  );
  assert.match(patched(before, envelope("@@", " one", "-zwei", "+two")), /seems to be done/);
});
