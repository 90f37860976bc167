import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { manPage } from "../../bin/man-page.ts";
import { EXIT } from "../../src/core/errors.ts";

const PAGE = manPage(
  { version: "1.2.3", description: "Works" },
  {
    topics: { sessions: { description: "What runs did." } },
    commands: {
      "sessions:show": {
        summary: ".TH is no request here, and \\fBthis\\fR is text.",
        description: "'quoted\n.SH line",
        args: { id: { required: true, description: "a session" } },
        flags: {
          mode: { type: "option", options: ["a", "b"], description: "how" },
          quiet: { type: "boolean", char: "q", description: "less" },
        },
        examples: ['harness sessions show "x\\y"', ".so is no file"],
      },
      setup: { hidden: true, summary: "not shown", args: {}, flags: {} },
    },
  },
);

test("the page has each visible command with its text, flags and examples", () => {
  for (const part of [
    '.SS "harness sessions show ID [OPTIONS]"',
    '.B "\\-\\-mode VALUE"',
    "\\&how: a, b",
    '.B "\\-q, \\-\\-quiet"',
    "harness 1.2.3",
  ])
    assert.ok(PAGE.includes(part), part);
  assert.ok(!PAGE.includes("not shown"));
});

test("no text becomes a groff request", () => {
  const requests = PAGE.split("\n").filter((line) => /^[.']/.test(line));
  const known = /^\.(?:TH|SH|SS|TP|B|PP|nf|fi)\b/;
  assert.deepEqual(
    requests.filter((line) => !known.test(line)),
    [],
  );
  assert.equal(requests.filter((line) => line.startsWith(".TH")).length, 1);
});

test("every exit code is listed", () => {
  const told = PAGE.slice(PAGE.indexOf(".SH EXIT STATUS"), PAGE.indexOf(".SH FILES"));
  const missing = Object.values(EXIT).filter(
    (code) => code !== EXIT.noBox && !new RegExp(`\\b${code}\\b`).test(told),
  );
  assert.deepEqual(missing, []);
});

const groff = spawnSync("groff", ["--version"]).status === 0;

test("groff formats it without warnings", { skip: !groff && "groff is not installed" }, () => {
  const set = spawnSync("groff", ["-man", "-Tutf8", "-ww"], { input: PAGE, encoding: "utf8" });
  assert.deepEqual([set.status, set.stderr], [0, ""]);
  assert.match(set.stdout, /\.TH is no request here, and \\fBthis\\fR is text\./);
});
