// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { fc, part } from "../fixtures/property.ts";
import { MODES, type Verdict, VERDICTS } from "../../src/core/decision.ts";
import { EFFECT_NAMES, readRules, type UserRules } from "../../src/policy/rule.ts";
import { judgedIn } from "../fixtures/policy/corpus.ts";
import { AROUND, policy, rulesFrom, type Written } from "./judged.ts";

const rank = (verdict: Verdict): number => VERDICTS.indexOf(verdict);

/** Commands of every kind in the corpus, and random combinations of words. */
const TEXTS = judgedIn("**/*.jsonl").map(({ cmd }) => cmd);
const WORDS =
  "frob npm run build cat rm -rf src .env ~/x /etc/passwd $X $(frob) `id` 'a b' > < | && ; ( ) & { } * ../x curl sudo bash -c python3 git push FOO=1 2>&1".split(
    " ",
  );
const text = fc.oneof(
  fc.constantFrom("", ...TEXTS),
  fc.array(fc.constantFrom(...WORDS), { maxLength: 8 }).map((words) => words.join(" ")),
);
const mode = fc.constantFrom(...MODES);

const word = fc.constantFrom(...WORDS, "npx", "ls", "timeout");
const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(values, { nil: undefined });
const condition = {
  prefix: optional(fc.array(word, { minLength: 1, maxLength: 3 })),
  exact: optional(fc.boolean()),
  arg: optional(word),
  effect: optional(fc.subarray([...EFFECT_NAMES], { minLength: 1, maxLength: 4 })),
  path: optional(fc.constantFrom("src/**", "~/**", "/etc/*", "**", "*.ts", "/", "~/x")),
  host: optional(fc.constantFrom("example.com", "*.example.com", "*")),
};

/** The valid ones among random rules. */
const rules = (verdicts: readonly Verdict[]): fc.Arbitrary<UserRules> =>
  fc
    .array(fc.record({ ...condition, decision: fc.constantFrom(...verdicts) }), {
      minLength: 1,
      maxLength: 4,
    })
    .map((list) => {
      const full = list.map((rule) => ({ ...rule, reason: "because", match: ["x"] }));
      const plain: unknown = JSON.parse(JSON.stringify(full));
      return readRules(plain as unknown[], "user").examples.map(({ rule }) => rule);
    });

const RUNS = { numRuns: part(300) };

test("rules that tighten never make a verdict milder", () => {
  fc.assert(
    fc.property(text, mode, rules(["ask", "deny"]), rules(VERDICTS), (command, mode, tighter, others) => {
      const judge = (list: UserRules): number =>
        rank(policy.decide(command, { ...AROUND, mode, rules: list }).decision);
      assert.ok(judge([...others, ...tighter]) >= judge(others));
    }),
    RUNS,
  );
});

test("rules that allow never make a verdict stricter, and never change a deny", () => {
  fc.assert(
    fc.property(text, mode, rules(["allow"]), (command, mode, list) => {
      const before = policy.decide(command, { ...AROUND, mode }).decision;
      const after = policy.decide(command, { ...AROUND, mode, rules: list }).decision;
      assert.ok(before === "deny" ? after === "deny" : rank(after) <= rank(before));
    }),
    RUNS,
  );
});

const NEVER =
  /^(?:text\.|word\.|shell\.|env\.|code\.(?:input|fetched)|read\.unknown|write\.unknown|delete\.unknown)/;

/** The broadest rules that may allow something. */
const PROGRAMS = [
  "frob",
  "npm",
  "build",
  "cat",
  "rm",
  "ls",
  "cp",
  "mv",
  "echo",
  "git",
  "python3",
  "sh",
  "node",
];
const BROADEST = rulesFrom([
  ...PROGRAMS.flatMap((program): readonly Written[] => {
    const prefix = ["git", "npm", "python3", "sh", "node"].includes(program)
      ? [program, ["run", "push", "status", "log", "tool.py", "install", "x.sh", "server.js"]]
      : [program];
    return [{ decision: "allow", prefix }];
  }),
  {
    decision: "allow",
    effect: ["read", "write", "delete", "permissions", "code"],
    path: ["src/**", "~/x/**"],
  },
  { decision: "allow", host: ["*.example.com", "evil.example", "example.com"] },
]);

test("a faulty text or a value known only to the shell is never allowed", () => {
  const doubtful = TEXTS.filter((command) =>
    policy.decide(command, { ...AROUND, mode: "workspace-write" }).rules.some(({ id }) => NEVER.test(id)),
  );
  assert.ok(doubtful.length > 50);
  const allowed = doubtful.filter(
    (command) =>
      policy.decide(command, { ...AROUND, mode: "workspace-write", rules: BROADEST }).decision === "allow",
  );
  assert.deepEqual(allowed, []);
});

test("with rules too, read-only is never milder than workspace-write", () => {
  fc.assert(
    fc.property(text, rules(VERDICTS), (command, list) => {
      const [strict, usual] = (["read-only", "workspace-write"] as const).map((mode) =>
        rank(policy.decide(command, { ...AROUND, mode, rules: list }).decision),
      );
      assert.ok((strict ?? 0) >= (usual ?? 0));
    }),
    RUNS,
  );
});

test("containment follows from the effects, whatever the rules", () => {
  fc.assert(
    fc.property(text, rules(VERDICTS), (command, list) => {
      const context = { ...AROUND, mode: "workspace-write" } as const;
      assert.equal(
        policy.decide(command, { ...context, rules: list }).contained,
        policy.decide(command, context).contained,
      );
    }),
    RUNS,
  );
});
