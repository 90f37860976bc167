import assert from "node:assert/strict";
import test from "node:test";
import { judgeIn } from "../../src/agent/action-judge.ts";
import type { Mode } from "../../src/core/decision.ts";
import { NO_FACTS } from "../../src/core/tool.ts";

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
    test(`${mode}: ${command} leaves the workspace as it is`, () => {
      assert.equal(judge(mode).judge({ ...NO_FACTS, commands: [command] }).mayWrite, false);
    });
  for (const command of WRITING)
    test(`${mode}: ${command} may write`, () => {
      assert.equal(judge(mode).judge({ ...NO_FACTS, commands: [command] }).mayWrite, true);
    });
}

test("what a file tool writes, writes; what it reads does not", () => {
  const own = judge("workspace-write");
  assert.equal(own.judge({ ...NO_FACTS, writes: ["/w/a.txt"] }).mayWrite, true);
  assert.equal(own.judge({ ...NO_FACTS, reads: ["/w/a.txt"] }).mayWrite, false);
  assert.equal(own.judge({ ...NO_FACTS, commands: ["true"], lasting: true }).lasting, true);
});
