import assert from "node:assert/strict";
import test from "node:test";
import { MODES } from "../../src/core/decision.ts";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const judge = (cmd: string, mode: (typeof MODES)[number] = "workspace-write"): readonly [string, string] => {
  const { decision, rules } = policy.decide(cmd, { mode, workspace: WORKSPACE, home: HOME });
  return [decision, rules[0]?.id ?? ""];
};

const BAD = [
  ["nothing", "", "deny", "text.empty"],
  ["blanks", " \t\n ", "deny", "text.empty"],
  ["only a comment", "# rm -rf /\n# ls", "deny", "text.empty"],
  ["an open quote", 'echo "hello', "deny", "text.syntax"],
  ["an open substitution", "echo $(ls", "deny", "text.syntax"],
  ["an operator at the end", "ls &&", "deny", "text.syntax"],
  ["a stray )", "ls )", "deny", "text.syntax"],
  ["NUL", "ls\0", "deny", "text.control"],
  ["a carriage return", "ls\r\nls", "deny", "text.control"],
  ["an escape", "ls \u001b[2J", "deny", "text.control"],
  ["a mark that reverses text", "ls # \u202e x", "ask", "text.invisible"],
  ["a zero-width character", "ls \u200b", "ask", "text.invisible"],
  ["a look-alike of a space", "ls\u00a0-la", "ask", "text.invisible"],
  ["a full-width bar", "ls \uff5c cat", "ask", "text.invisible"],
  ["a look-alike of a dash", "ls \u2013la", "ask", "text.invisible"],
  ["bytes that were not text", "ls \ufffd", "ask", "text.invalid"],
  ["half a character", "ls \ud83d", "ask", "text.invalid"],
  ["too much text", `ls ${"a".repeat(10_000)}`, "ask", "text.limit"],
  ["too many commands", "ls;".repeat(200), "ask", "shell.limit"],
  ["10,000 parentheses", "(".repeat(10_000), "deny", "text.syntax"],
  ["10,000 pairs of parentheses", `${"(".repeat(5000)}ls${")".repeat(5000)}`, "deny", "text.syntax"],
] as const;

for (const [name, cmd, decision, rule] of BAD)
  test(`${name}: ${decision}, because of ${rule}`, () => assert.deepEqual(judge(cmd), [decision, rule]));

for (const [name, cmd, decision] of BAD)
  if (decision === "deny")
    test(`${name} is denied in every mode`, () => {
      assert.deepEqual(
        MODES.map((mode) => judge(cmd, mode)[0]),
        ["deny", "deny", "deny"],
      );
    });

test("a danger is denied however long, deep or odd the surrounding text is", () => {
  const danger = "rm -rf /";
  const texts = [
    `ls ${"a".repeat(20_000)}; ${danger}`,
    `${"ls;".repeat(300)}${danger}`,
    `${"( ".repeat(30)}${danger}${" )".repeat(30)}`,
    `echo \u200b; ${danger}`,
    `coproc ls; ${danger}`,
    `shopt -s extglob; ls !(a); ${danger}`,
  ];
  assert.deepEqual(
    texts.filter((cmd) => judge(cmd)[0] !== "deny").map((cmd) => cmd.slice(0, 40)),
    [],
  );
});

test("text in other languages is allowed as an argument", () => {
  for (const cmd of ["echo 'h\u00e9llo w\u00f6rld'", "grep -rn '\u65e5\u672c\u8a9e' src", "echo \u2705"])
    assert.equal(judge(cmd)[0], "allow", cmd);
});
