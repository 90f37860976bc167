import assert from "node:assert/strict";
import test from "node:test";
import { lookedAt, type Planted, rulesOf } from "../../fixtures/looked-at-tree.ts";

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
  test(`${rule} is found where it is, and nowhere else`, async () => {
    for (const tree of is)
      assert.ok((await rulesOf(tree)).includes(rule), JSON.stringify(tree).slice(0, 200));
    for (const tree of not) assert.deepEqual(await rulesOf(tree), [], JSON.stringify(tree).slice(0, 200));
  });

test("a hundred thousand entries, and links that all lead to each other, are bounded", async () => {
  const farm = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, at) => [`farm/${at}`, link(`${(at * 7919) % 100_000}`)]),
  );
  const { findings } = await lookedAt(farm);
  assert.ok(findings.length < 100, String(findings.length));
  assert.ok(findings.some(({ rule }) => rule === "files.wide"));
});
