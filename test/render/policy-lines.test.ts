import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import test from "node:test";
import { Output } from "../../src/render/tty/output.ts";
import type { MatchedRule, Verdict } from "../../src/core/decision.ts";
import { explanation } from "../../src/render/policy-lines.ts";

const screen = (columns: number): Output =>
  new Output(Object.assign(new PassThrough(), { columns }) as unknown as NodeJS.WriteStream);

type Nobody = Partial<Pick<Parameters<typeof explanation>[0], "mode" | "onAsk" | "writes">> & {
  readonly contained?: boolean;
};

const told = (
  text: string,
  rules: readonly (readonly [Verdict, MatchedRule])[],
  effects: readonly string[] = [],
  { contained = false, ...nobody }: Nobody = {},
): readonly string[] =>
  explanation(
    {
      text,
      decision: {
        decision: rules[0]?.[0] ?? "allow",
        contained,
        rules: rules.map(([, rule]) => rule),
      },
      verdicts: rules.map(([verdict]) => verdict),
      effects,
      hintFor: () => "another way",
      mode: "workspace-write",
      onAsk: "contained",
      writes: true,
      ...nobody,
    },
    screen(44),
  ).split("\n");

test("milder rules state their verdict, allowed ones are listed separately, and a hint is given once", () => {
  const lines = told("a; b; c", [
    ["deny", { id: "one", reason: "it is bad", span: [0, 1] }],
    ["ask", { id: "two", reason: "who knows", span: [3, 4] }],
    ["ask", { id: "too", reason: "of the same part", span: [3, 4] }],
    ["allow", { id: "three", reason: "it is good", span: [6, 7] }],
  ]);
  assert.deepEqual(lines.slice(0, 18), [
    "deny  it is bad  (one)",
    "",
    "    a; b; c",
    "    ^",
    "    one  it is bad",
    "    to pass: another way",
    "",
    "    a; b; c",
    "       ^",
    "    two (ask)  who knows",
    "    too (ask)  of the same part",
    "",
    "allowed",
    "    three  it is good",
    "",
    "effects",
    "    none",
    "",
  ]);
});

test("a line and its marks fit the screen, and at most six lines are shown", () => {
  const text = `${"x".repeat(100)}\n`.repeat(8).trimEnd();
  const lines = told(text, [["ask", { id: "all", reason: "long", span: [0, text.length] }]]);
  assert.deepEqual(lines.slice(2, 4), [`    ${"x".repeat(39)}…`, `    ${"^".repeat(39)}`]);
  assert.deepEqual(lines.slice(14, 16), ["    … and 2 more lines", "    all  long"]);
});

test("the last of very many effects are only counted", () => {
  const lines = told(
    "a",
    [],
    Array.from({ length: 203 }, (_, at) => `does ${at}`),
  );
  const last = lines.indexOf("    does 199");
  assert.deepEqual(lines.slice(last - 1, last + 3), [
    "    does 198",
    "    does 199",
    "    … and 3 more: --json has all",
    "",
  ]);
});

for (const [nobody, said] of [
  [{ contained: true }, "it runs"],
  [{}, "it is refused"],
  [{ mode: "danger-full-access" }, "it runs"],
  [
    { contained: true, mode: "read-only" },
    "it is refused: the mode is read-only, where nothing that needs approval runs",
  ],
  [{ contained: true, onAsk: "refuse" }, "it is refused: on_ask is refuse"],
  [{ contained: true, onAsk: "park" }, "it runs"],
  [{ onAsk: "park" }, "it waits for you: on_ask is park"],
  [{ onAsk: "park", mode: "read-only", writes: false }, "it waits for you: on_ask is park"],
  [
    { onAsk: "park", mode: "read-only" },
    "it is refused: the mode is read-only, where nothing that needs approval runs",
  ],
] as const satisfies readonly (readonly [Nobody, string])[])
  test(`a command that asks, with ${JSON.stringify(nobody)} and nobody there: ${said}`, () => {
    const lines = told("a", [["ask", { id: "one", reason: "it may", span: [0, 1] }]], [], nobody);
    assert.equal(lines.at(-1), `unattended  ${said}`);
  });
