import assert from "node:assert/strict";
import test from "node:test";
import { decidePath, type PathContext } from "../../../src/policy/paths/decide-path.ts";

/** A workspace that is itself reached by a link, with links inside. */
const LEADS: ReadonlyMap<string, string> = new Map([
  ["/home/dev/project", "/data/project"],
  ["/home/dev/project/a.ts", "/data/project/a.ts"],
  ["/home/dev/project/hooks/x", "/data/project/.git/hooks/x"],
  ["/home/dev/project/env", "/data/project/.env"],
  ["/home/dev/project/out/x", "/srv/x"],
  ["/home/dev/project/.git/x", "/data/project/plain/x"],
  ["/home/dev/project/tmp/x", "/tmp/x"],
  ["/home/dev/project/keys", "/home/real/.ssh/config"],
  ["/home/dev/project/rc", "/home/real/.bashrc"],
  ["/home/dev/project/deep/../x", "/srv/x"],
  ["/home/dev", "/home/real"],
]);

const CONTEXT: PathContext = {
  mode: "workspace-write",
  workspace: "/home/dev/project",
  home: "/home/dev",
  links: (path) => LEADS.get(path) ?? null,
};

for (const [op, path, verdict] of [
  ["write", "a.ts", "allow"],
  ["write", "/data/project/a.ts", "allow"],
  ["write", "/data/project/.git/x", "deny"],
  ["write", "/data/other/a.ts", "ask"],
  ["write", "new.ts", "allow"],
  ["write", "hooks/x", "deny"],
  ["read", "hooks/x", "allow"],
  ["read", "env", "ask"],
  ["write", "out/x", "ask"],
  ["write", ".git/x", "deny"],
  ["write", "tmp/x", "allow"],
  ["read", "keys", "ask"],
  ["write", "rc", "deny"],
  ["write", "deep/../x", "ask"],
  ["write", "x", "allow"],
] as const)
  test(`${op} ${path}: ${verdict}, the stricter verdict of the written path and its target`, () => {
    assert.equal(decidePath(path, op, CONTEXT).decision, verdict);
  });

test("the reason names the target", () => {
  assert.deepEqual(decidePath("out/x", "write", CONTEXT), {
    decision: "ask",
    contained: false,
    rules: [{ id: "path.outside", reason: "outside the workspace; it leads to /srv/x", span: [0, 5] }],
    path: "/home/dev/project/out/x",
  });
});

test("devices and processes are judged by name, without reading links of this machine", () => {
  const asked: string[] = [];
  const links = (path: string): null => (asked.push(path), null);
  for (const path of ["/dev/stdout", "/dev/sda", "/proc/self/environ", "~somebody/x"])
    decidePath(path, "write", { ...CONTEXT, links });
  assert.deepEqual(asked, []);
});
