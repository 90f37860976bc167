import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { keptLength, typedLine } from "../../src/cli/completion-answer.ts";

const LINES: Readonly<Record<string, readonly [readonly string[], string]>> = {
  harness: [[], "harness"],
  "harness ": [[], ""],
  "harness run --mode re": [["run", "--mode"], "re"],
  "  FOO=1 BAR='a b' harness   sessions\tsh": [["sessions"], "sh"],
  'harness run "fix the': [["run"], "fix the"],
  'harness run "a \\" b" --m': [["run", 'a " b'], "--m"],
  "harness run 'it is' \\$HOME": [["run", "it is"], "$HOME"],
  "harness run $(touch x) `id` ": [["run", "$(touch", "x)", "`id`"], ""],
  "harness run '' ": [["run", ""], ""],
  "harness run a\\": [["run"], "a"],
};

for (const [line, [before, current]] of Object.entries(LINES))
  test(`typed: ${JSON.stringify(line)}`, () => {
    const typed = typedLine(line);
    assert.deepEqual([typed.before, typed.current], [before, current]);
  });

test("every text is parsed, and none takes long", () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom("a", "b", " ", "'", '"', "\\", "=", ":", "\n", "$"),
        maxLength: 200,
      }),
      (text) => {
        const typed = typedLine(text);
        const length = keptLength(typed, "=:");
        assert.ok(length >= 0 && length <= Math.max(typed.current.length, typed.raw.length));
      },
    ),
  );
  typedLine(`harness ${'"\\'.repeat(50_000)}`);
});

const kept = (line: string, breaks: string): number => keptLength(typedLine(`harness ${line}`), breaks);

test("the part that a shell keeps ends at its last word break, or before open quotes", () => {
  assert.equal(kept("--mode=re", ' \t"=:'), 7);
  assert.equal(kept("--model=qwen3:8", ' \t"=:'), 14);
  assert.equal(kept("--mode=re", ""), 0);
  assert.equal(kept("--mode", "=:"), 0);
  assert.equal(kept('--model="qwen3:8', "=:"), 8);
  assert.equal(kept("'qwen3:8", "=:"), 0);
});
