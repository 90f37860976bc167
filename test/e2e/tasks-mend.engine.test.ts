import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { bash, call, DONE, edit, inBox, project, read, together, work } from "./task.ts";

test("Python: a bug is found by its failing test and fixed", { skip }, async () => {
  await using place = await project("python-median");
  const { code, answer, finished } = await work(place, {
    task: "Fix the bug that makes test_stats.py fail.",
    steps: [
      bash("python3 -m unittest 2>&1"),
      [/FAIL: test_median_of_an_even_number/, read("stats.py")],
      [
        /def median/,
        edit(
          "stats.py",
          "    return ordered[middle]\n",
          "    if len(ordered) % 2:\n        return ordered[middle]\n    return mean(ordered[middle - 1 : middle + 1])\n",
        ),
      ],
      [/1 place changed/, bash("python3 -m unittest 2>&1")],
      [/\nOK$/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  const { added, modified, deleted } = finished.changes ?? {};
  assert.deepEqual([added, modified, deleted, finished.denials], [[], ["stats.py"], [], []]);
  assert.equal((await inBox(place, "python3 -m unittest"))[0], 0);
});

test("C: a bug is fixed, and make proves it", { skip }, async () => {
  await using place = await project("c-words");
  const { code, answer, finished } = await work(place, {
    task: "make test fails, mend words.c.",
    steps: [
      bash("make test"),
      [/FAIL "": 1, not 0/, together(read("words.c"), read("check.c"))],
      [
        /expect\("one {2}two", 2\)/,
        call("edit_file", {
          path: "words.c",
          edits: [
            { old: '#include "words.h"\n', new: '#include <ctype.h>\n\n#include "words.h"\n' },
            { old: "int count = 1;", new: "int count = 0, inside = 0;" },
            {
              old: "\tfor (; *text; text++)\n\t\tif (*text == ' ')\n\t\t\tcount++;\n",
              new: "\tfor (; *text; text++) {\n\t\tint space = isspace((unsigned char)*text);\n\t\tcount += !space && !inside;\n\t\tinside = !space;\n\t}\n",
            },
          ],
        }),
      ],
      [/words\.c: 3 places changed/, bash("make test")],
      [/all words counted/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  assert.deepEqual(finished.changes, { added: [], modified: ["words.c"], deleted: [], ignored: 1 });
  assert.deepEqual([(await inBox(place, "make clean test"))[0], finished.denials], [0, []]);
});

test("JavaScript: a function is added with its own test", { skip }, async () => {
  await using place = await project("js-text");
  const made = "/** At most so many letters, the last one an ellipsis where some are missing. */\n";
  const { code, answer, finished } = await work(place, {
    task: "Add a function shortened(text, length) to text.mjs, and a test of it.",
    steps: [
      together(read("text.mjs"), read("text.test.mjs")),
      [
        /there is a function that shortens/,
        edit(
          "text.mjs",
          '    .replaceAll(/^-|-$/g, "");\n}\n',
          `    .replaceAll(/^-|-$/g, "");\n}\n\n${made}export const shortened = (text, length) =>\n  text.length <= length ? text : text.slice(0, length - 1) + "…";\n`,
        ),
      ],
      [
        /1 place changed/,
        edit(
          "text.test.mjs",
          'test("there is',
          'test("what is too long ends in an ellipsis", () => {\n  assert.equal(text.shortened("shorter", 4), "sho…");\n  assert.equal(text.shortened("four", 4), "four");\n});\n\ntest("there is',
        ),
      ],
      [/1 place changed/, bash("npm test")],
      [/pass 3\n[^]*fail 0/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  assert.deepEqual(finished.changes?.modified.toSorted(), ["text.mjs", "text.test.mjs"]);
  const [ended, told] = await inBox(place, "npm test");
  assert.equal(ended, 0, told);
});

test("shell: a function is renamed in every file by one patch", { skip }, async () => {
  await using place = await project("shell-log");
  const patch = `*** Begin Patch
*** Update File: lib/log.sh
@@
-say() { printf '%s: %s\\n' "\${0##*/}" "$1" >&2; }
+log_line() { printf '%s: %s\\n' "\${0##*/}" "$1" >&2; }
*** Update File: bin/build.sh
@@
-say "building"
+log_line "building"
 echo built
-say "done"
+log_line "done"
*** Update File: bin/clean.sh
@@
-say "nothing to clean"
+log_line "nothing to clean"
*** Update File: README.md
@@
-\`say\` writes a line for whoever watches; do not say what nobody asked for.
+\`log_line\` writes a line for whoever watches; do not say what nobody asked for.
*** End Patch
`;
  const files = ["lib/log.sh", "bin/build.sh", "bin/clean.sh", "README.md"];
  const { code, answer, finished } = await work(place, {
    task: "Rename the shell function say to log_line everywhere.",
    steps: [
      call("grep", { pattern: "\\bsay\\b" }),
      [/bin\/clean\.sh/, together(...files.map(read))],
      [/do not say what nobody/, call("apply_patch", { patch })],
      [/clean\.sh/, bash("sh check.sh")],
      [/all scripts run/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  assert.deepEqual(finished.changes?.modified.toSorted(), files.toSorted());
  assert.match(await place.read("work/README.md"), /^`log_line` writes .* do not say what/m);
  assert.deepEqual(await inBox(place, "sh check.sh"), [0, "all scripts run\n"]);
});

const SQL_TEST = `import pathlib
import sqlite3
import unittest


class Report(unittest.TestCase):
    def test_a_customer_without_orders_is_listed_with_nothing(self):
        with sqlite3.connect(":memory:") as db:
            db.executescript(pathlib.Path("schema.sql").read_text())
            db.executescript("INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob'); INSERT INTO orders VALUES (1, 5), (1, 7);")
            rows = db.execute(pathlib.Path("report.sql").read_text()).fetchall()
        self.assertEqual(rows, [("Ada", 12), ("Bob", 0)])
`;

test("SQL: a failing test is written, and passes once the query is fixed", { skip }, async () => {
  await using place = await project("sql-report");
  const { code, answer, finished, results } = await work(place, {
    task: "report.sql leaves customers without orders out. Write a test for that, then fix it.",
    steps: [
      together(read("schema.sql"), read("report.sql")),
      call("write_file", { path: "test_report.py", content: SQL_TEST }),
      [/test_report\.py/, bash("python3 -m unittest 2>&1")],
      [
        /FAIL: test_a_customer_without_orders/,
        call("edit_file", {
          path: "report.sql",
          edits: [
            { old: "SUM(cents) AS", new: "COALESCE(SUM(cents), 0) AS" },
            { old: "customers JOIN", new: "customers LEFT JOIN" },
          ],
        }),
      ],
      [/2 places changed/, bash("python3 -m unittest 2>&1")],
      [/\nOK$/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text], results.at(-1));
  const { added, modified } = finished.changes ?? {};
  assert.deepEqual([added, modified], [["test_report.py"], ["report.sql"]]);
  assert.equal(await place.read("work/test_report.py"), SQL_TEST);
  assert.equal((await inBox(place, "python3 -m unittest"))[0], 0);
});
