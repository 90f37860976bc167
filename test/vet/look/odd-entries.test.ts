// also slow: a hundred thousand entries
import assert from "node:assert/strict";
import test from "node:test";
import { lookedAt, type Planted, rulesOf } from "../../fixtures/looked-at-tree.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const link = (target: string): Planted => ({ kind: "link", target });

/** Rule → trees that break it, and trees that break none. */
const CASES: Readonly<
  Record<
    string,
    { readonly is: readonly Record<string, Planted>[]; readonly not: readonly Record<string, Planted>[] }
  >
> = {
  "files.link-out": {
    is: [
      { up: link("../other") },
      { "a/b": link("../../x") },
      { home: link("/home/dev") },
      { drive: link("C:\\x") },
    ],
    not: [{ "a/b": link("../c") }, { "a/b": link(".//c/../d") }],
  },
  "files.link-system": {
    is: [{ node: link("/usr/bin/node") }, { null: link("/dev/null") }],
    not: [{ bin: link("usr/bin") }],
  },
  "files.link-secret": {
    is: [
      { keys: link("../../.ssh/id_rsa") },
      { shadow: link("/etc/shadow") },
      { sock: link("/var/run/docker.sock") },
      { self: link("/proc/self/environ") },
    ],
    not: [{ ssh: link("docs/ssh") }],
  },
  "files.link-git": {
    is: [{ hooks: link(".git/hooks") }, { "a/b": link("../.GIT/config") }, { ".gitmodules": link("other") }],
    not: [{ ".gitignore": link("other") }, { git: link("src/git") }],
  },
  "files.link-loop": {
    is: [{ a: link("a") }, { a: link("b"), b: link("a") }, { "a/b": link("../c/d"), c: link("a/b") }],
    not: [{ a: link("b"), b: link("c"), c: "" }, { "a/self": link("..") }],
  },
  "files.hard-link": { is: [{ a: { names: 2 } }], not: [{ a: { names: 1 } }] },
  "files.odd": {
    is: [{ a: { kind: "odd", target: "pipe" } }, { a: { kind: "odd", target: "socket" } }],
    not: [{ a: "" }],
  },
  "files.device": { is: [{ a: { kind: "odd", target: "device" } }], not: [{ a: "" }] },
  "files.setuid": {
    is: [{ a: { mode: 0o4755 } }, { a: { mode: 0o2755 } }],
    not: [{ a: { mode: 0o755 } }, { a: { kind: "folder", mode: 0o2755 } }],
  },
  "files.closed": { is: [{ a: { kind: "folder", closed: true } }], not: [{ a: { kind: "folder" } }] },
  "files.deep": { is: [{ [`${"a/".repeat(120)}b`]: "" }], not: [{ [`${"a/".repeat(20)}b`]: "" }] },
  "files.huge": { is: [{ a: { size: 2 ** 40 } }], not: [{ a: { size: 2 ** 20 } }] },
};

for (const [rule, { is, not }] of Object.entries(CASES))
  test(`${rule} is found where it applies, and nowhere else`, async () => {
    for (const tree of is)
      assert.ok((await rulesOf(tree)).includes(rule), JSON.stringify(tree).slice(0, 200));
    for (const tree of not) assert.deepEqual(await rulesOf(tree), [], JSON.stringify(tree).slice(0, 200));
  });

slowTest(
  "a hundred thousand entries, and links that all lead to each other, give a bounded number of findings",
  async () => {
    const farm = Object.fromEntries(
      Array.from({ length: 100_000 }, (_, at) => [`farm/${at}`, link(`${(at * 7919) % 100_000}`)]),
    );
    const { findings } = await lookedAt(farm);
    assert.ok(findings.length < 100, String(findings.length));
    assert.ok(findings.some(({ rule }) => rule === "files.wide"));
  },
);

/** Rule → names that break it, and names that break none. */
const NAMES: Readonly<Record<string, { readonly is: readonly string[]; readonly not: readonly string[] }>> = {
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

for (const [rule, { is, not }] of Object.entries(NAMES))
  test(`${rule} is found in names to which it applies, and in no others`, async () => {
    for (const name of is) assert.ok((await rulesOf({ [name]: "" })).includes(rule), JSON.stringify(name));
    for (const name of not) assert.deepEqual(await rulesOf({ [name]: "" }), [], JSON.stringify(name));
  });

test("names that some file systems treat as the same are reported, more seriously if one is a link", async () => {
  const link: Planted = { kind: "link", target: "c" };
  assert.deepEqual(await rulesOf({ "a/B": "", "a/b": "" }), ["names.same"]);
  assert.deepEqual(await rulesOf({ "caf\u00e9": "", "cafe\u0301": "" }), ["names.same"]);
  assert.deepEqual(await rulesOf({ "a/B": link, "a/b": { kind: "folder" } }), ["names.same-link"]);
  assert.deepEqual(await rulesOf({ "a/B": "", "b/b": "" }), []);
});
