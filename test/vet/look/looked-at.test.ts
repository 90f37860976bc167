import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Findings, LOOK_RULES } from "../../../src/vet/look/looked-at.ts";

const doc = readFileSync(path.join(import.meta.dirname, "../../../docs/untrusted.md"), "utf8");
const section = doc.split(/^## /m).find((each) => each.startsWith("What the tree itself shows")) ?? "";

test("docs/untrusted.md lists each rule of the look with its weight and words", () => {
  const rows = [...section.matchAll(/^\| `([\w.-]+)` +\| (\w+) +\| (.*?) +\|$/gm)].map(([, ...row]) => row);
  const rules = Object.entries(LOOK_RULES).map(([rule, { weight, words }]) => [rule, weight, words]);
  assert.deepEqual(rows, rules);
});

test("twenty findings of a rule are listed and the others counted, with quoted control characters made visible", () => {
  const found = new Findings();
  for (let at = 0; at < 25; at += 1) found.add("files.odd", "a\u001b[2Jb", { path: `p${at}\n` });
  found.add("files.odd", "a\u001b[2Jb", { path: "p0\n" });
  found.add("files.device", "x", { path: "d" });
  const all = found.all();
  assert.equal(all.length, 22);
  assert.equal(all[0]?.rule, "files.device");
  assert.equal(all[1]?.text, "a␛[2Jb");
  assert.equal(all[1]?.path, "p0␊");
  assert.equal(all.at(-1)?.times, 5);
});
