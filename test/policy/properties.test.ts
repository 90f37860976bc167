// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc, isTried, part } from "../fixtures/property.ts";
import { MODES, type Mode, VERDICTS } from "../../src/core/decision.ts";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, judgedIn, WORKSPACE } from "../fixtures/policy/corpus.ts";
import { type Mutation, REQUOTING, WRAPPING } from "../fixtures/policy/mutations.ts";

const policy = new CommandPolicy();
const judged = (cmd: string, mode: Mode = "workspace-write"): string =>
  policy.decide(cmd, { mode, workspace: WORKSPACE, home: HOME }).decision;

const known = new Map<string, string>();

/** Cached, because nearly every command is judged for every mutation. */
function decide(cmd: string): string {
  const decision = known.get(cmd) ?? judged(cmd);
  known.set(cmd, decision);
  return decision;
}
const rank = (decision: string): number => VERDICTS.findIndex((verdict) => verdict === decision);

const all = judgedIn("sample.jsonl", "attacks/*.jsonl", "asks/*.jsonl", "benign/*.jsonl");
const refused = [...new Set(all.filter(({ cmd }) => decide(cmd) !== "allow").map(({ cmd }) => cmd))];
const denied = refused.filter((cmd) => decide(cmd) === "deny");

const places = new Map(refused.map((cmd, place) => [cmd, place]));

/** Each command meets some of the mutations, with a pseudo-random choice of its own. */
function milder(commands: readonly string[], mutation: Mutation): readonly string[] {
  const turn = [...REQUOTING, ...WRAPPING].indexOf(mutation);
  return commands.flatMap((cmd, index) => {
    if (!isTried(places.get(cmd) ?? 0, turn)) return [];
    let seed = index * 2_654_435_761 + 1;
    const pick = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return seed % below;
    };
    const other = mutation.apply(cmd, pick);
    return other !== null && rank(decide(other)) < rank(decide(cmd)) ? [`${cmd}\n  as ${other}`] : [];
  });
}

for (const mutation of REQUOTING)
  test(`a command that is not allowed stays so when written differently: ${mutation.name}`, () => {
    assert.deepEqual(milder(refused, mutation), []);
  });

for (const mutation of WRAPPING) {
  test(`a command that is not allowed stays so as a part of another: ${mutation.name}`, () => {
    const allowed = milder(refused, mutation).filter(
      (each) => decide(each.slice(each.indexOf("\n  as ") + 6)) === "allow",
    );
    assert.deepEqual(allowed, []);
  });

  test(`a denied command is denied as a part of another: ${mutation.name}`, () => {
    assert.deepEqual(milder(denied, mutation), []);
  });
}

test("two joined commands never get a milder verdict than either of them", () => {
  const some = fc.constantFrom(...all.map(({ cmd }) => cmd).filter((cmd) => /^\w[\w ./-]+$/.test(cmd)));
  fc.assert(
    fc.property(some, some, fc.constantFrom(" && ", " || ", "; ", " | ", "\n", " & "), (a, b, joint) => {
      // A `cd` can change the verdict of the following command.
      fc.pre(!/\b(?:cd|pushd|popd)\b/.test(a));
      assert.ok(rank(decide(a + joint + b)) >= Math.max(rank(decide(a)), rank(decide(b))));
    }),
    { numRuns: part(1000) },
  );
});

test("read-only is never milder than workspace-write, nor that than danger-full-access", () => {
  for (const { cmd } of all) {
    const [readOnly = 0, workspace = 0, danger = 0] = MODES.map((mode) =>
      rank(mode === "workspace-write" ? decide(cmd) : judged(cmd, mode)),
    );
    assert.ok(readOnly >= workspace && workspace >= danger, cmd);
  }
});

test("an unknown option is never allowed", () => {
  const programs = [
    "ls",
    "cat",
    "git log",
    "grep -r x",
    "sort",
    "npm test",
    "cargo test",
    "jq .",
    "find . -name x",
    "sed -n 1p",
  ];
  for (const program of programs)
    for (const option of ["--no-such-option", "--no-such=1", "-\u00e4"])
      assert.notEqual(decide(`${program} ${option} y`), "allow", `${program} ${option}`);
});

const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(..."'\"\\$`(){}[]<>|&;#!~*?=,\n\t ".split("")),
      fc.constantFrom(
        "$(",
        "${",
        "$((",
        "<<E\n",
        "E\n",
        "<(",
        "if ",
        "then ",
        "fi",
        "do ",
        "done",
        "case ",
        "esac",
        "{a,",
        "$'",
        "[[ ",
        " ]]",
      ),
      fc.constantFrom(
        "ls",
        "cd",
        "rm -rf",
        "/",
        "~",
        "git",
        "echo",
        "bash -c",
        "find . -exec",
        "x=1",
        "\u200b",
        "\r",
        "\0",
        "\ud800",
      ),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(""));

test("every text gets a verdict with a rule whose span lies in the text", () => {
  fc.assert(
    fc.property(fc.oneof(soup, anyText()), fc.constantFrom(...MODES), (text, mode) => {
      const { decision, rules } = policy.decide(text, { mode, workspace: WORKSPACE, home: HOME });
      assert.ok(VERDICTS.includes(decision));
      assert.ok(rules.length > 0);
      for (const { span } of rules) assert.ok(span[0] >= 0 && span[0] <= span[1] && span[1] <= text.length);
    }),
    { numRuns: part(1500) },
  );
});
