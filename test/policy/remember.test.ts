import assert from "node:assert/strict";
import test from "node:test";
import { type RuleForm, withRules } from "../../src/policy/rule.ts";
import { ruleFor } from "../../src/policy/rules-from-commands.ts";
import { AROUND, policy, rulesFrom, verdict } from "./judged.ts";

const APPROVED = { decision: "allow", reason: "approved as it stands" } as const;

const made = (text: string): readonly RuleForm[] => {
  const remembered = ruleFor(text, AROUND, policy);
  assert.equal(remembered.kind, "rules", text);
  return remembered.kind === "rules" ? remembered.rules : [];
};

test("an approved command is remembered by its exact words", () => {
  const prefix = ["frob", "a b", "$x"];
  const rules = made("frob 'a b' '$x'");
  assert.deepEqual(rules, [{ prefix, exact: true, ...APPROVED, match: ["frob 'a b' '$x'"] }]);
  const compiled = rulesFrom(rules);
  assert.deepEqual(
    ["frob 'a b' '$x'", "frob 'a b' '$x' c", "frob 'a b'", "frob a b '$x'"].map((text) =>
      verdict(text, compiled),
    ),
    ["allow", "ask", "ask", "ask"],
  );
});

test("the rule names paths outside the workspace", () => {
  const rows = [
    ["cat /etc/passwd ~/x", ["/etc/passwd", "~/x"]],
    ["cd ~ && cat x", ["~/x"]],
    ["ls ~", ["~"]],
    ["rm /home/dev/project/x", ["~/project/x"]],
    ["cd sub && ./run.sh", ["sub/run.sh"]],
  ] as const;
  assert.deepEqual(
    rows.map(([text]) => [text, made(text).at(-1)?.path]),
    rows,
  );
});

test("each of several commands that needs a rule gets one, with its own example", () => {
  assert.deepEqual(
    made("ls && frob a > out.txt; bash -c 'frob b'").map(({ prefix, effect, path, match }) => ({
      prefix,
      effect,
      path,
      match,
    })),
    [
      { prefix: undefined, effect: "write", path: "out.txt", match: ["echo > out.txt"] },
      { prefix: ["frob", "a"], effect: undefined, path: undefined, match: ["frob a"] },
      { prefix: ["frob", "b"], effect: undefined, path: undefined, match: ["frob b"] },
    ],
  );
});

test("no rule is made for a command that is denied, already allowed, or not known well enough", () => {
  const rows = [
    ["ls", "it is allowed already"],
    ["rm -rf /", "it is denied: rm deletes everything in / (delete.broad)"],
    ["ls '", "it is denied"],
    ["frob $X", "the value of $X is known only at run time: write it out"],
    ["frob *.ts", "the value of *.ts is known only at run time: write it out"],
    ["FOO=1 frob", "no rule can allow it: the effect of the variable FOO is not known (env.own)"],
    [
      "frob < /etc/passwd",
      "a rule for this would apply to every command: /etc/passwd is outside the workspace (read.outside)",
    ],
    [
      "cat x | sh",
      "no rule can allow it: sh runs what it is given on stdin, which is not known (code.input)",
    ],
    ["cat '/etc/*'", "no rule can match exactly this in every workspace: cat /etc/\\*"],
    [
      "cat ../x",
      "no rule can match exactly this in every workspace: cat ../x; write paths that begin with ~ or /",
    ],
  ] as const;
  for (const [text, reason] of rows) {
    const remembered = ruleFor(text, AROUND, policy);
    assert.ok(
      remembered.kind === "refused" && remembered.reason.startsWith(reason),
      JSON.stringify([text, remembered]),
    );
  }
});

test("a user's own rule that asks is not circumvented", () => {
  const rules = rulesFrom([{ id: "mine", prefix: ["frob"], decision: "ask" }]);
  assert.deepEqual(ruleFor("frob a", { ...AROUND, rules }, policy), {
    kind: "refused",
    reason: "no rule can allow it: because (user.mine)",
  });
});

test("a rule is appended to a file, with that file's line ends", () => {
  const [rule] = made("frob 'a\"b'");
  assert.ok(rule);
  const text =
    '[[rule]]\nprefix = ["frob", "a\\"b"]\nexact = true\ndecision = "allow"\nreason = "approved as it stands"\nmatch = ["frob \'a\\"b\'"]\n';
  const rows = [
    ["", text],
    ["# mine\n", `# mine\n\n${text}`],
    ["# mine", `# mine\n\n${text}`],
    ["# mine\r\n", `# mine\r\n\r\n${text.replaceAll("\n", "\r\n")}`],
  ] as const;
  assert.deepEqual(
    rows.map(([before]) => [before, withRules(before, [rule])]),
    rows,
  );
});
