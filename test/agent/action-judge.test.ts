import assert from "node:assert/strict";
import test from "node:test";
import { judgeIn } from "../../src/agent/action-judge.ts";
import type { Mode } from "../../src/core/decision.ts";
import { type Facts, NO_FACTS } from "../../src/core/tool.ts";

const judged = (facts: Partial<Facts>, mode: Mode = "workspace-write", links = (path: string) => path) =>
  judgeIn({ mode, workspace: "/repo", home: "/home/user", links }).judge({ ...NO_FACTS, ...facts });

test("file tools are limited to the workspace and temporary folders, even where a shell may read more", () => {
  assert.equal(judged({ reads: ["/repo/src/a.ts"] }).decision, "allow");
  assert.equal(judged({ writes: ["/tmp/x"] }).decision, "allow");
  for (const path of ["/etc/passwd", "/repo/../secret", "/home/user/.bashrc", "/usr/include/stdio.h"]) {
    const { decision, contained, rules } = judged({ reads: [path] });
    assert.deepEqual([path, decision, contained, rules[0]?.id], [path, "deny", false, "path.outside"]);
  }
  assert.equal(judged({ commands: ["cat /usr/include/stdio.h"] }).decision, "allow");
});

const links = (path: string): string => (path === "/repo/link" ? "/etc/passwd" : path);
const changes = (command: string): boolean => judged({ commands: [command] }).changes;

test("a link is judged by its target", () => {
  assert.equal(judged({ reads: ["/repo/link"] }, "workspace-write", links).decision, "deny");
  assert.equal(judged({ writes: ["/repo/plain"] }, "workspace-write", links).decision, "allow");
});

test("in danger-full-access, files of the container may be written, and files that the host executes may not", () => {
  assert.equal(judged({ writes: ["/opt/tool"] }, "danger-full-access").decision, "allow");
  assert.equal(judged({ writes: ["/repo/.git/hooks/pre-commit"] }, "danger-full-access").decision, "deny");
});

test("in read-only mode a write requires confirmation", () => {
  assert.equal(judged({ writes: ["/repo/a"] }, "read-only").decision, "ask");
  assert.equal(judged({ reads: ["/repo/a"] }, "read-only").decision, "allow");
});

test("for several files the strictest verdict applies, its rules are listed first, and every file is named as a target", () => {
  const { decision, target, rules, changes } = judged({ writes: ["/repo/a", "/repo/.git/config"] });
  assert.deepEqual([decision, target, changes], ["deny", "/repo/a, /repo/.git/config", true]);
  assert.notEqual(rules[0]?.id, "path.workspace");
});

test("asks lists only the rules that require confirmation, not those that allow other commands of the line", () => {
  const asking = (facts: Partial<Facts>): readonly string[] => judged(facts).asks.map(({ id }) => id);
  const both = judged({ commands: ["seq 1 9; echo a > b.txt && ls -la"] });
  assert.deepEqual(
    both.rules.map(({ id }) => id),
    ["write.workspace", "read.workspace"],
  );
  assert.deepEqual(both.asks, both.rules.slice(0, 1));
  assert.deepEqual(asking({ commands: ["ls -la"] }), []);
  assert.deepEqual(asking({ commands: ["ls", "npm run x && ls"] }), ["code.project"]);
  assert.deepEqual(asking({ program: "box", commands: ["ls"] }), ["tool.program"]);
});

test("a command counts as a change when one of its effects is a change", () => {
  assert.deepEqual(["ls -l", "cat a > /dev/null", "touch a", "rm a", "mkdir x", "git status"].map(changes), [
    false,
    false,
    true,
    true,
    true,
    false,
  ]);
});

test("a call that touches nothing is allowed", () => {
  const { decision, command, changes } = judged({});
  assert.deepEqual([decision, command, changes], ["allow", false, false]);
});
test("a tool that runs a program is judged by the facts it declares and by its name", () => {
  const judge = judgeIn({
    mode: "workspace-write",
    workspace: "/repo",
    home: "/home/user",
    links: (path) => path,
  });
  const { decision, contained, target, mayWrite } = judge.judge(
    { ...NO_FACTS, program: "box" },
    "their__tool",
  );
  assert.deepEqual([decision, contained, target, mayWrite], ["ask", true, "their__tool", true]);
  const { grants, hosts } = judge.judge({ ...NO_FACTS, hosts: ["a.example"] }, "web_fetch");
  assert.deepEqual([grants, hosts], [["a.example"], ["a.example"]]);
  assert.equal(judge.judge({ ...NO_FACTS, program: "box", reads: ["/etc/passwd"] }, "t").decision, "deny");
});

const judge = (mode: Mode) => judgeIn({ mode, workspace: "/w", home: "/home/u", links: () => null });

const HARMLESS = ["true 1", "ls -l src", "cat a.txt | grep x", "wc -l a.txt 2>/dev/null", "sleep 1"];
const WRITING = [
  "echo x > a.txt",
  "rm a.txt",
  "chmod +x a.sh",
  "npm test",
  "git status",
  "python3 -c 'print(1)'",
  "some-unknown-program",
  "sed -i s/a/b/ a.txt",
  "echo $(date) >> /tmp/link-into-the-workspace",
  "if then",
];

for (const mode of ["workspace-write", "danger-full-access"] as const) {
  for (const command of HARMLESS)
    test(`${mode}: ${command} leaves the workspace unchanged`, () => {
      assert.equal(judge(mode).judge({ ...NO_FACTS, commands: [command] }).mayWrite, false);
    });
  for (const command of WRITING)
    test(`${mode}: ${command} may write`, () => {
      assert.equal(judge(mode).judge({ ...NO_FACTS, commands: [command] }).mayWrite, true);
    });
}

test("a file tool may write where it declares writes, and not where it only declares reads", () => {
  const own = judge("workspace-write");
  assert.equal(own.judge({ ...NO_FACTS, writes: ["/w/a.txt"] }).mayWrite, true);
  assert.equal(own.judge({ ...NO_FACTS, reads: ["/w/a.txt"] }).mayWrite, false);
  assert.equal(own.judge({ ...NO_FACTS, commands: ["true"], lasting: true }).lasting, true);
});
