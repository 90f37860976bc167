import assert from "node:assert/strict";
import test from "node:test";
import { type Origin, readRules } from "../../src/policy/rule.ts";
import { failedExamples } from "../../src/policy/rules-from-commands.ts";
import { AROUND, policy } from "./judged.ts";

const WHY = { reason: "because" };
const ALLOW = { ...WHY, decision: "allow", match: ["x"] };
const DENY = { ...WHY, decision: "deny" };

const problemOf = (
  rule: unknown,
  origin: Origin = "user",
): readonly [keys: string, message: string] | undefined => {
  const [problem] = readRules([rule], origin).problems;
  return problem === undefined ? undefined : [problem.keys.join("."), problem.message];
};

const WORDS = 'expected the first words of a command, such as ["npm", "run", ["build", "lint"]]';

test("a mistake in a rule is reported with its key", () => {
  const rows: readonly (readonly [rule: unknown, keys: string, message: string])[] = [
    ["x", "0", "expected a rule"],
    [{ ...DENY, prefx: ["a"] }, "0.prefx", "prefx: unknown key; did you mean prefix?"],
    [
      { ...DENY, colour: "a" },
      "0.colour",
      "colour: unknown key; known keys: id, prefix, exact, arg, effect, path, host, tool, decision, reason, match, notMatch",
    ],
    [{ ...DENY, prefix: ["a"], notmatch: [] }, "0.notmatch", "notmatch: unknown key; did you mean notMatch?"],
    [{ ...WHY, prefix: ["a"] }, "0.decision", "decision: missing; expected one of allow, ask, deny"],
    [{ ...DENY, decision: "no", prefix: ["a"] }, "0.decision", "decision: expected one of allow, ask, deny"],
    [
      { decision: "deny", prefix: ["a"] },
      "0.reason",
      "reason: missing; expected the reason for the rule, in words",
    ],
    [
      { ...DENY, reason: " ", prefix: ["a"] },
      "0.reason",
      "reason: expected the reason for the rule, in words",
    ],
    [{ ...DENY, prefix: [] }, "0.prefix", `prefix: ${WORDS}`],
    [{ ...DENY, prefix: "npm run" }, "0.prefix", `prefix: ${WORDS}`],
    [{ ...DENY, prefix: ["npm", ""] }, "0.prefix.1", `prefix.1: ${WORDS}`],
    [
      { ...DENY, id: "a b", prefix: ["a"] },
      "0.id",
      "id: expected a name of letters, digits, dots and dashes",
    ],
    [DENY, "0", "the rule has no condition: give a prefix, arg, effect, path, host or tool"],
    [{ ...DENY, effect: "netwerk" }, "0.effect", "effect: netwerk is not an effect; did you mean network?"],
    [{ ...DENY, effect: "install", path: "a" }, "0.path", "path: install has no path"],
    [{ ...DENY, effect: "read", host: "a" }, "0.host", "host: read has no host; only network has one"],
    [{ ...DENY, arg: "a", exact: true }, "0.exact", "exact: needs a prefix, and the rule has none"],
    [
      { ...DENY, path: "a/../b" },
      "0.path",
      "path: a/../b is not a valid pattern: write names separated by slashes, without . and ..; a name may contain * ? [a-z], or be **",
    ],
    [
      { ...WHY, decision: "allow", prefix: ["frob"] },
      "0.match",
      "match: missing; a rule that allows needs at least one example of a command that it matches",
    ],
  ];
  assert.deepEqual(
    rows.map(([rule]) => problemOf(rule)),
    rows.map(([, keys, message]) => [keys, message]),
  );
});

const alone = (word: string): string =>
  `prefix: ${word} alone is too broad: it can run or fetch anything; give the next word too`;
const option = (words: string): string =>
  `prefix: ${words} is too broad: an option does not say what runs; give all words, and exact = true`;
const runs = (word: string): string =>
  `prefix: ${word} runs another command: give the words of that command, without ${word}`;

test("a rule that is too broad is a mistake", () => {
  const rows: readonly (readonly [rule: object, message: string])[] = [
    [{ prefix: ["bash"] }, alone("bash")],
    [{ prefix: ["/bin/sh"] }, alone("/bin/sh")],
    [{ prefix: ["python3.12"] }, alone("python3.12")],
    [{ prefix: ["git"] }, alone("git")],
    [{ prefix: ["docker"] }, alone("docker")],
    [{ prefix: [["frob", "npx"]] }, alone("npx")],
    [{ prefix: ["bash", "-c"] }, option("bash -c")],
    [{ prefix: ["git", ["log", "-C"]] }, option("git -C")],
    [{ prefix: ["env", "frob"] }, runs("env")],
    [{ prefix: ["sudo", "frob"] }, runs("sudo")],
    [{ prefix: ["xargs", "frob"] }, runs("xargs")],
    [{ prefix: ["eval", "frob"] }, runs("eval")],
    [{ arg: "--watch" }, "arg: an argument alone names no program: give the prefix that it belongs to"],
    [
      { effect: "network" },
      "effect: an effect alone is too broad to be allowed: add a prefix, a path or a host",
    ],
    [{ effect: "shell.function" }, "effect: no rule can allow shell.function"],
    [{ prefix: ["frob"], effect: "word.dynamic" }, "effect: no rule can allow word.dynamic"],
    [{ prefix: ["frob"], effect: "unknown" }, "effect: no rule can allow unknown"],
    [
      { effect: ["read", "install"], path: "a/**" },
      "effect: install has no path and no host: add the prefix of the command that may do it",
    ],
    [
      { path: "build/**" },
      'path: a path alone is too broad to be allowed: say which effect, such as effect = "read"',
    ],
    ...["**", "*", "/", "/**", ".", "~", "~/**", "~/*", "/etc/**", "/home/**", "./"].map(
      (path) =>
        [
          { effect: "read", path },
          'path: matches nearly everything: name a folder further down, such as "build/**"',
        ] as const,
    ),
    ...["*", "*.com", "a.*", "*.*.com", "*a.example.com"].map(
      (host) => [{ host }, 'host: matches too many hosts: give a name, or "*.example.com"'] as const,
    ),
  ];
  assert.deepEqual(
    rows.map(([rule]) => [rule, problemOf({ ...ALLOW, ...rule })?.[1]]),
    rows,
  );
});

test("narrow rules, and broad ones that tighten, are accepted", () => {
  const rules = [
    { ...ALLOW, prefix: ["bash"], exact: true },
    { ...ALLOW, prefix: ["git", "push"] },
    { ...ALLOW, prefix: ["curl"], host: "example.com" },
    { ...ALLOW, effect: "write", path: "build/**" },
    { ...ALLOW, effect: "read", path: ["/etc/hosts", "~/.gitconfig", "**/*.md"] },
    { ...ALLOW, host: "*.example.com" },
    { ...DENY, effect: "network" },
    { ...DENY, path: "**" },
    { ...DENY, host: "*" },
    { ...DENY, prefix: ["bash"] },
    { ...DENY, effect: "shell.function" },
  ];
  assert.deepEqual(readRules(rules, "user").problems, []);
});

test("rules of a project have names that start with project", () => {
  const { examples } = readRules([{ ...DENY, id: "a", prefix: ["frob"] }], "project");
  assert.deepEqual(
    examples.map(({ rule }) => rule.id),
    ["project.a"],
  );
});

test("two rules cannot share a name; a rule without one is named by its position", () => {
  const one = { ...DENY, id: "a", prefix: ["a"] };
  const { examples, problems } = readRules([one, { ...DENY, prefix: ["b"] }, one], "user");
  assert.deepEqual(
    examples.map(({ rule }) => rule.id),
    ["user.a", "user.2"],
  );
  assert.deepEqual(problems, [{ keys: [2, "id"], message: "id: another rule already has the id user.a" }]);
});

test("each example is tried with its own rule alone", () => {
  const rows: readonly (readonly [rule: object, failed: readonly string[]])[] = [
    [
      { ...ALLOW, prefix: ["frob"], match: ["frob a"], notMatch: ["frobs", "frob && curl x", "frob > ../a"] },
      [],
    ],
    [{ ...ALLOW, prefix: ["ls"], match: ["ls"] }, []],
    [
      { ...ALLOW, prefix: ["frob"], match: ["frobs"] },
      ['match: "frobs" is still asked about: frobs is not a known program (command.unknown)'],
    ],
    [
      { ...ALLOW, prefix: ["frob"], match: ["frob; rm -rf /"] },
      ['match: "frob; rm -rf /" is still denied: rm deletes everything in / (delete.broad)'],
    ],
    [{ ...ALLOW, prefix: ["frob"], match: ["ls"] }, ['match: "ls" is not matched']],
    [
      { ...ALLOW, prefix: ["frob"], match: ["frob"], notMatch: ["frob a"] },
      ['notMatch: "frob a" is matched'],
    ],
    [{ ...DENY, prefix: ["ls"], match: ["ls && x"], notMatch: ["echo ls"] }, []],
    [{ ...DENY, prefix: ["ls"], match: ["echo ls"] }, ['match: "echo ls" is not matched']],
    [{ ...DENY, prefix: ["ls"], notMatch: ["cat a | ls"] }, ['notMatch: "cat a | ls" is matched']],
  ];
  assert.deepEqual(
    rows.map(([rule]) => {
      const { examples, problems } = readRules([rule], "user");
      assert.deepEqual(problems, []);
      return [rule, failedExamples(examples, policy, AROUND.home).map(({ message }) => message)];
    }),
    rows,
  );
});
