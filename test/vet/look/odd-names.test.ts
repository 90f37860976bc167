import assert from "node:assert/strict";
import test from "node:test";
import { type Planted, rulesOf } from "../../fixtures/looked-at-tree.ts";

/** Rule → names that break it, and names that break none. */
const CASES: Readonly<Record<string, { readonly is: readonly string[]; readonly not: readonly string[] }>> = {
  "names.escape": { is: ["a\u001b[2Jb", "a\u009b2J"], not: ["a[2Jb"] },
  "names.control": { is: ["a\nb", "a\tb", "a\u007f"], not: ["Icon\r", "a b"] },
  "names.bidi": { is: ["a\u202egnp.js", "a\u2066b"], not: ["שלום.txt", "مرحبا.md"] },
  "names.invisible": {
    is: ["pack\u200bage.json", "a\u{e0041}", "a\u3164b", "a\ufeff"],
    not: ["❤\ufe0f.md", "👩\u200d💻.txt"],
  },
  "names.look-alike": {
    is: ["p\u0430ckage.json", "src/index\u0455.js", "\uff41b"],
    not: ["документ.txt", "10µm.md", "Ωmega.txt", "README-日本語.md"],
  },
  "names.no-text": { is: ["a\udcff"], not: ["aÿ"] },
  "names.option": { is: ["-rf", "--force", "a/-x.md"], not: ["-1", "a-b", "-"] },
  "names.option-runs": {
    is: ["--checkpoint-action=exec=sh x.sh", "-exec", "--to-command=sh"],
    not: ["checkpoint-action"],
  },
  "names.reserved": { is: ["aux.c", "nul", "COM1", "a ", "a."], not: ["auxiliary.c", "console.js"] },
  "names.git-like": {
    is: [".GIT", ".git ", "git~1", ".gi\u200ct", "a/.Git"],
    not: [".gita", "git", ".github"],
  },
  "names.lies": {
    is: ["invoice.pdf.exe", "photo.jpg        .js", "cv.docx.lnk"],
    not: ["a.test.js", "x.pdf", "lib.min.js"],
  },
  "names.program": { is: ["git.exe", "npm.cmd"], not: ["bin/git.exe", "setup.exe"] },
};

for (const [rule, { is, not }] of Object.entries(CASES))
  test(`${rule} is found in names that are so, and in no others`, async () => {
    for (const name of is) assert.ok((await rulesOf({ [name]: "" })).includes(rule), JSON.stringify(name));
    for (const name of not) assert.deepEqual(await rulesOf({ [name]: "" }), [], JSON.stringify(name));
  });

test("names that are one for some file systems are told, and more of them where one is a link", async () => {
  const link: Planted = { kind: "link", target: "c" };
  assert.deepEqual(await rulesOf({ "a/B": "", "a/b": "" }), ["names.same"]);
  assert.deepEqual(await rulesOf({ "caf\u00e9": "", "cafe\u0301": "" }), ["names.same"]);
  assert.deepEqual(await rulesOf({ "a/B": link, "a/b": { kind: "folder" } }), ["names.same-link"]);
  assert.deepEqual(await rulesOf({ "a/B": "", "b/b": "" }), []);
});
