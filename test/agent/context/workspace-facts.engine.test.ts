import assert from "node:assert/strict";
import test from "node:test";
import type { Box } from "../../../src/core/ports.ts";
import { gatherFacts } from "../../../src/agent/context/workspace-facts.ts";
import { skip } from "../../fixtures/engine.ts";
import { realBox } from "../../fixtures/real-box.ts";

const never = new AbortController().signal;

async function shell(box: Box, script: string): Promise<void> {
  const request = { words: ["bash", "-ec", script], timeoutMs: 60_000, keep: { head: 4000, tail: 0 } };
  const { exit_code, stderr } = await box.exec(request, never);
  assert.equal(exit_code, 0, new TextDecoder().decode(stderr.head));
}

test("one command in the box describes a workspace", { skip }, async () => {
  await using made = await realBox({
    "AGENTS.md": "root rules\n",
    "a/b/CLAUDE.md": "deep rules",
    "a/AGENTS.md": "a rules\n",
    "node_modules/x/AGENTS.md": "not ours",
    "with space/f.txt": "1",
    ".env": "",
  });
  const got = await gatherFacts(made.box, never);
  assert.match(got.system, /\S+ (?:x86_64|aarch64)$/);
  assert.match(got.tools, /\bgit\b.*\bnode\b/);
  assert.deepEqual(got.names, ["AGENTS.md", "a/", "node_modules/", "with space/", ".env", ".keep"]);
  assert.deepEqual(got.instructions, [
    { path: "AGENTS.md", text: "root rules\n", cut: false },
    { path: "a/AGENTS.md", text: "a rules\n", cut: false },
    { path: "a/b/CLAUDE.md", text: "deep rules", cut: false },
  ]);
  assert.deepEqual([got.branch, got.status, got.commits, got.more], ["", null, [], { names: 0, status: 0 }]);
});

test(
  "a repository is described by its branch, changes and last commits, without running its code",
  { skip },
  async () => {
    await using made = await realBox({ "a.txt": "1" }, { mode: "danger-full-access" });
    await shell(
      made.box,
      `git init -q -b trunk . && git config user.name x && git config user.email x@example.org
     for n in one two three four; do git commit -q --allow-empty -m "$n"; done
     printf '#!/bin/sh\\ntouch /tmp/ran\\n' > .git/trap && chmod +x .git/trap
     git config core.fsmonitor "$PWD/.git/trap" && git config core.hooksPath .git/hooks
     for n in $(seq 30); do touch "new $n"; done`,
    );
    const got = await gatherFacts(made.box, never);
    assert.equal(got.branch, "trunk");
    assert.deepEqual(
      got.commits.map((line) => line.trim().replace(/^\w+ /, "")),
      ["four", "three", "two"],
    );
    assert.deepEqual([got.status?.length, got.more.status], [20, 12]);
    assert.equal(got.status?.[0], "?? .keep");
    await assert.rejects(shell(made.box, "test -e /tmp/ran"));
    await shell(made.box, "git status >/dev/null && test -e /tmp/ran");
  },
);

test("large, broken or outside files are described in part or not at all", { skip }, async () => {
  await using made = await realBox({
    "big/AGENTS.md": "x".repeat(30_000),
    "more/CLAUDE.md": "y".repeat(30_000),
  });
  await shell(
    made.box,
    `ln -s /etc/passwd AGENTS.md; ln -s /etc out; mkfifo CLAUDE.md; mkdir locked
     printf 'a\\0b\\377' > locked/AGENTS.md; chmod 0 locked/AGENTS.md
     mkdir -p 1/2/3/4/5/6/7/8/9; touch 1/2/3/4/5/6/7/8/9/AGENTS.md
     for n in $(seq 100); do touch "f$n"; done`,
  );
  const got = await gatherFacts(made.box, never);
  assert.equal(got.names.length, 50);
  assert.equal(got.more.names, 58);
  assert.ok(got.names.includes("AGENTS.md") && !got.names.includes("AGENTS.md/"));
  assert.deepEqual(
    got.instructions.map(({ path, text, cut }) => [path, text.length, cut]),
    [
      ["big/AGENTS.md", 30_000, false],
      ["locked/AGENTS.md", 0, true],
      ["more/CLAUDE.md", 9_996, true],
    ],
  );
});

test("a lost box yields nothing", { skip }, async () => {
  const made = await realBox();
  await made[Symbol.asyncDispose]();
  const got = await gatherFacts(made.box, never);
  assert.deepEqual([got.system, got.names, got.instructions], ["", [], []]);
});
