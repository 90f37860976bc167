import assert from "node:assert/strict";
import test from "node:test";
import {
  asksForTests,
  filesToMend,
  type TamperedCheck,
  tamperingIn,
  tamperingReason,
  MAX_CHARACTERS,
  weakened,
} from "../../../src/agent/ending/tampered-check.ts";
import { isOfTests } from "../../../src/core/file-names.ts";

type Tree = Readonly<Record<string, string>>;

const PY = `import unittest
from stats import median, mean


class Median(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_even(self):
        self.assertEqual(median([1, 2]), 1.5)
        self.assertEqual(median([1, 3]), 2)
`;
const JS = `import assert from "node:assert";
import test from "node:test";
import { slugify } from "./slug.mjs";

test("spaces", () => {
  assert.equal(slugify("a b"), "a-b");
});
test("case", () => {
  assert.equal(slugify("A"), "a");
});
`;
const PACKAGE = JSON.stringify({ name: "x", scripts: { test: "node --test", build: "tsc" } });
const MAKE = "all: words\n\ncc -o words words.c\n\ntest: words\n\t./words-test\n".replaceAll("\\n", "\n");

const CHECK = "int main(void) {\n  expect(words(a), 1);\n  expect(words(b), 2);\n}\n";

const START: Tree = {
  "check.c": CHECK,
  "stats.py": "def median(xs): ...",
  "test_stats.py": PY,
  "slug.test.mjs": JS,
  "package.json": PACKAGE,
  Makefile: MAKE,
};

/** What is reported about a check that failed and succeeds after these changes. */
async function bent(
  to: Readonly<Record<string, string | null>>,
  request = "npm test fails. Fix slugify.",
  wasRed = true,
): Promise<TamperedCheck | undefined> {
  const now: Record<string, string> = { ...START };
  const changes = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  for (const [name, text] of Object.entries(to)) {
    if (text === null) {
      changes.deleted.push(name);
      delete now[name];
    } else {
      (name in START ? changes.modified : changes.added).push(name);
      now[name] = text;
    }
  }
  const texts = {
    before: (name: string) => Promise.resolve(START[name]),
    now: (name: string) => Promise.resolve(now[name]),
  };
  return tamperingIn(changes, texts, { request, wasRed, command: "npm test" });
}

const CODE = { "stats.py": "def median(xs): return 1" };

test("a success is attributed to tests that were deleted, emptied, reduced, skipped or silenced when nothing else changed", async () => {
  const table: readonly (readonly [Readonly<Record<string, string | null>>, string])[] = [
    [{ "test_stats.py": null }, "test_stats.py was deleted"],
    [{ "test_stats.py": "\n" }, "test_stats.py was emptied"],
    [{ "test_stats.py": PY.replaceAll(/^/gm, "# ") }, "test_stats.py was emptied"],
    [{ "test_stats.py": PY.replace(/ {4}def test_even[^]*/, "") }, "test_stats.py lost 1 of its 2 tests"],
    [
      { "test_stats.py": PY.replace("    def test_even", "    @unittest.skip('x')\n    def test_even") },
      "test_stats.py skips tests that it did not skip before",
    ],
    [
      { "test_stats.py": PY.replace("def test_even", "def xtest_even") },
      "test_stats.py lost 1 of its 2 tests",
    ],
    [
      { "test_stats.py": PY.replace("self.assertEqual(median([1, 2]), 1.5)", "pass") },
      "test_stats.py makes fewer comparisons: 2 instead of 3",
    ],
    [
      { "test_stats.py": PY.replaceAll(/self\.assertEqual\(.*/g, "self.assertTrue(True)") },
      "test_stats.py makes fewer comparisons: 0 instead of 3",
    ],
    [
      { "test_stats.py": `import sys; sys.exit(0)\n${PY}` },
      "test_stats.py was made to succeed whatever happens",
    ],
    [
      { "slug.test.mjs": JS.replace('test("case"', 'test.skip("case"') },
      "slug.test.mjs skips tests that it did not skip before",
    ],
    [{ "slug.test.mjs": JS.replace(/test\("case"[^]*/, "") }, "slug.test.mjs lost 1 of its 2 tests"],
    [
      { "slug.test.mjs": JS.replace(/test\("case"[^]*/, (all) => `/*\n${all}*/`) },
      "slug.test.mjs lost 1 of its 2 tests",
    ],
    [
      { "package.json": PACKAGE.replace("node --test", "true") },
      "npm run test was made to succeed whatever happens",
    ],
    [
      { "package.json": PACKAGE.replace("node --test", "node --test || true") },
      "npm run test was made to succeed whatever happens",
    ],
    [
      { "package.json": PACKAGE.replace("node --test", "node -e 0") },
      "npm run test was made to succeed whatever happens",
    ],
    [{ Makefile: MAKE.replace("./words-test", "true") }, "make test was made to succeed whatever happens"],
    [{ Makefile: MAKE.replace("\t./", "\t-./") }, "make test was made to succeed whatever happens"],
    [{ "unittest.py": "print(1)\n" }, "unittest.py takes the place of the test runner"],
    [{ Makefile: "test:\n\ttrue\n" }, "make test was made to succeed whatever happens"],
    [{ "check.c": "int main(void) { return 0; }\n" }, "check.c makes fewer comparisons: 0 instead of 2"],
    [
      { "conftest.py": "collect_ignore = ['test_stats.py']\n" },
      "conftest.py was made to succeed whatever happens",
    ],
  ];
  for (const [to, deed] of table) assert.deepEqual(await bent(to), { deeds: [deed], only: true }, deed);
  // Beside a change of the code, or where the check succeeded before, it may not be the only cause.
  assert.deepEqual(await bent({ ...CODE, "test_stats.py": null }), {
    deeds: ["test_stats.py was deleted"],
    only: false,
  });
  assert.deepEqual(await bent({ "test_stats.py": null }, "tidy up", false), {
    deeds: ["test_stats.py was deleted"],
    only: false,
  });
});

test("a success after changes to tests alone is reported, whatever was changed in them", async () => {
  const other = PY.replace("1.5", "2");
  assert.deepEqual(await bent({ "test_stats.py": other }), {
    deeds: ["test_stats.py was changed, and nothing else"],
    only: false,
  });
  assert.deepEqual(await bent({ "package.json": PACKAGE.replace("node --test", "node ok.mjs") }), {
    deeds: ["package.json was changed, and nothing else"],
    only: false,
  });
  assert.equal(await bent({ "test_stats.py": other }, "improve it", false), undefined);
});

test("a change of the code, with tests that follow it, is not reported", async () => {
  const more = `${PY}\n    def test_none(self):\n        self.assertEqual(median([]), None)\n`;
  for (const to of [
    CODE,
    { ...CODE, "test_stats.py": more },
    { ...CODE, "test_stats.py": PY.replaceAll("median", "middle") },
    { ...CODE, "test_stats.py": PY.replace("        self.assertEqual(median([1, 3]), 2)\n", "") },
    { ...CODE, "test_stats.py": null, "tests/test_stats.py": PY },
    { ...CODE, "slug.test.mjs": null, "text.test.mjs": JS },
    { ...CODE, "package.json": PACKAGE.replace("node --test", "node --test --test-reporter=dot") },
    { "package.json": PACKAGE.replace("tsc", "true"), "tsconfig.json": "{}" },
    { "test_more.py": more },
    { "README.md": "x" },
    {},
  ])
    assert.equal(await bent(to), undefined, JSON.stringify(Object.keys(to)));
});

test("a change of tests that the request asks for is not reported", async () => {
  const gone = { "test_stats.py": null };
  for (const request of [
    "remove the flaky test",
    "npm test fails because of a leftover test of the old parser",
    "the tests for the old parser are no longer needed",
    "delete test_stats.py",
    "the test has a typo; fix it",
    "update the tests for the new API",
    "The expectation in test_stats.py is wrong. Fix it.",
    "skip the slow tests",
    "make the test script do nothing",
    "change the test script in package.json",
    "Write hello into test_stats.py",
  ])
    assert.equal(await bent(gone, request), undefined, request);
  assert.equal(await bent({ ...CODE, ...gone }, "Remove the median feature"), undefined);
  for (const request of [
    "The test fails; fix it",
    "fix the failing test",
    "fix the broken tests",
    "make the tests pass",
    "make test fails, mend words.c",
    "test_stats.py fails, fix it",
    "Fix the bug that makes test_stats.py fail.",
    "rename calc to with_tax; the tests must pass",
    "npm test fails. Fix slugify",
    "npm test fails: slugify is wrong",
    "The tests fail, median is incorrect",
    "median is wrong for an even number of values",
  ])
    assert.notEqual(await bent(gone, request), undefined, request);
  assert.ok(asksForTests("regenerate the snapshots", []));
});

test("tests of other languages are counted", () => {
  const table = [
    [
      "sum_test.go",
      "func TestA(t *testing.T) {\n\tt.Errorf(x)\n}\nfunc TestB(t *testing.T) {}\n",
      "func TestA(t *testing.T) {\n\tt.Skip()\n}\nfunc TestB(t *testing.T) {}\n",
    ],
    [
      "tests/it.rs",
      "#[test]\nfn a() { assert_eq!(f(1), 2); }\n",
      "#[test]\n#[ignore]\nfn a() { assert_eq!(f(1), 2); }\n",
    ],
    [
      "src/test/java/ATest.java",
      "@Test void a() { assertEquals(1, f()); }\n@Test void b() {}",
      "@Disabled @Test void a() { assertEquals(1, f()); }\n@Test void b() {}",
    ],
    [
      "spec/a_spec.rb",
      "it 'adds' do\n  expect(f(1)).to eq 2\nend\n",
      "xit 'adds' do\n  expect(f(1)).to eq 2\nend\n",
    ],
    [
      "tests/ATest.php",
      "public function testA() { $this->assertSame(1, f()); }",
      "public function testA() { $this->markTestSkipped(); $this->assertSame(1, f()); }",
    ],
    ["test/a.bats", "@test 'a' {\n  run f\n  [ $status = 0 ]\n}\n", "@test 'a' {\n  skip\n  run f\n}\n"],
    ["test/run.sh", "#!/bin/sh\nset -e\n./greet | grep -q HELLO\n", "#!/bin/sh\nset -e\ntrue\n"],
    ["check_test.sh", "./greet | grep HELLO\n", "exit 0\n./greet | grep HELLO\n"],
    [
      "test_words.c",
      "int main(void) { assert(words(x) == 2); assert(words(y) == 3); }",
      "int main(void) { return 0; }",
    ],
  ] as const;
  for (const [path, before, now] of table) {
    assert.notEqual(weakened(path, before, now), undefined, path);
    assert.equal(weakened(path, before, `${before}\n`), undefined, path);
  }
});

test("the report is one line, and hostile file names in it are made visible", () => {
  const deeds = ["a\u001b[2J was deleted", "b was emptied", "c was deleted", "d was deleted"];
  assert.equal(
    tamperingReason("npm test", { deeds, only: true }),
    "`npm test` succeeds, but is not the check that it was: a␛[2J was deleted; b was emptied; c was deleted; and 1 more",
  );
});

test("nothing is reported as lost from a test whose earlier state is unknown", async () => {
  const changes = { added: [], modified: ["test_stats.py"], deleted: [] };
  const texts = {
    before: () => Promise.resolve(undefined),
    now: () => Promise.resolve(`import pytest\n@pytest.mark.skip\n${PY}`),
  };
  const checked = { request: "Fix median.", wasRed: true, command: "npm test" };
  const found = await tamperingIn({ ...changes, modified: ["stats.py", "test_stats.py"] }, texts, checked);
  assert.equal(found, undefined);
  const known = { ...texts, before: () => Promise.resolve(PY) };
  const deeds = (await tamperingIn(changes, known, checked))?.deeds;
  assert.deepEqual(deeds, ["test_stats.py skips tests that it did not skip before"]);
});

test("test and recipe files are read in one pass, however long and hostile they are", async () => {
  const LENGTH = 2 ** 18;
  for (const piece of [
    "\n",
    "/*",
    "it.each ",
    "assert",
    "check ",
    "echo ",
    "echo Running:\n",
    "; echo ",
    "\t",
    " ",
  ])
    for (const path of ["a.test.js", "test_a.py", "tests/run.sh"]) {
      const text = piece.repeat(LENGTH / piece.length);
      for (const now of [text, `assert${text}x`, `; echo${text}|`])
        assert.ok(["undefined", "object"].includes(typeof weakened(path, JS, now)));
    }
  const hostile = {
    Makefile: `${"test".repeat(LENGTH / 4)}\n`,
    "package.json": JSON.stringify({ scripts: { test: `${"echo a ".repeat(LENGTH / 7)}&& x` } }),
  };
  for (const [name, text] of Object.entries(hostile)) assert.equal(await bent({ [name]: text }), undefined);
  assert.ok(isOfTests(`${"test/".repeat(LENGTH / 5)}x`));
});

test("shell commands that do nothing are recognised line by line", () => {
  const honest = "set -e\npytest -q\n";
  for (const idle of ["true\n", "echo all: is well: true\necho :\nexit 0", "#!/bin/sh\n# pytest\nsleep 1\n:"])
    assert.match(weakened("test.sh", honest, idle)?.how ?? "", /whatever happens/, idle);
  for (const busy of ["echo Running:\npytest", "echo tests; pytest", "true && pytest", "sleep 1 & pytest"])
    assert.equal(weakened("test.sh", honest, busy), undefined, busy);
});

const names = (kind: string, many: number): readonly string[] =>
  Array.from({ length: many }, (_, at) => `tests/test_${kind}${at}.py`);

test("the number and size of files read is bounded, and none is read twice", async () => {
  const size = 2 ** 20;
  const changes = { added: names("new", 60), modified: names("old", 60), deleted: names("gone", 30) };
  const read: string[] = [];
  const take = (when: string) => (path: string) => {
    read.push(`${when} ${path}`);
    return Promise.resolve("def test_a(): assert f() == 1\n".padEnd(size, "#"));
  };
  const texts = { before: take("before"), now: take("now") };
  const found = await tamperingIn(changes, texts, { request: "fix it", wasRed: true, command: "pytest" });
  assert.ok(read.length * size <= MAX_CHARACTERS + size, `${read.length} files`);
  assert.equal(new Set(read).size, read.length);
  // Files that were not read are not reported; a deleted file needs no reading.
  assert.ok(
    found?.deeds.every((deed) => deed.endsWith("was deleted")),
    found?.deeds.join("\n"),
  );
  assert.equal(found?.only, false);
});

test("a repair excludes tests and build files, unless the request asks for them or there is nothing else", () => {
  const files = ["Makefile", "calc.c", "package.json", "sum.py", "test_sum.py", "tests/data.txt"];
  assert.deepEqual(filesToMend(files, "calc 5 crashes"), ["calc.c", "sum.py"]);
  assert.deepEqual(filesToMend(files, "make test fails; fix it"), ["calc.c", "sum.py"]);
  assert.deepEqual(filesToMend(files, "Add a test for sums of nothing"), files);
  assert.deepEqual(filesToMend(files, "the rule calc in Makefile has no flags"), files);
  assert.deepEqual(filesToMend(["test_sum.py"], "the test fails"), ["test_sum.py"]);
});
