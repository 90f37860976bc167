import assert from "node:assert/strict";
import { test } from "node:test";
import { type CompiledPrograms, compilePrograms, readFamilies } from "../../../bin/compile-programs.ts";
import { wrongExamples } from "../../../bin/program-examples.ts";
import type { Model } from "../../../src/policy/programs/program-model.ts";
import { Models } from "../../../src/policy/programs/program-models.ts";
import { MODELS } from "../../../src/policy/programs/programs.generated.ts";

const families = readFamilies();
const compiled = compilePrograms(families);

test("the loaded models are generated from the current rows", () => {
  assert.deepEqual(MODELS, compiled.models);
});

test("every model of every program can be prepared", () => {
  assert.doesNotThrow(() => new Models().compileAll());
});

test("every example of every row gets the verdict that the row states", () => {
  assert.ok(compiled.examples.length > 1200);
  assert.deepEqual(wrongExamples(compiled.examples), []);
});

test("an example with another verdict names its row", () => {
  const [wrong = ""] = wrongExamples([
    { where: "lints.yaml: eslint", decision: "deny", command: "eslint ." },
  ]);
  assert.match(wrong, /^lints\.yaml: eslint: eslint \.: allow \(.*\), not deny$/);
});

/** The programs with the rows of an additional file. */
const rows = (text: string): CompiledPrograms =>
  compilePrograms(new Map([...families, ...readFamilies(new Map([["zz-mine.yaml", text]]))]));

const MISTAKES: Readonly<Record<string, readonly [row: string, said: RegExp]>> = {
  "an unknown key": ["zz: {optoins: {plain: -a}}", /zz-mine\.yaml: programs: zz.*optoins/],
  "an unknown group": ["zz: {options: {harmless: -a}}", /zz-mine\.yaml: zz: options: harmless is no group/],
  "an invalid option": ["zz: {options: {plain: a}}", /zz-mine\.yaml: zz: options: a is no option/],
  "an option that occurs twice": ["zz: {options: {plain: -a, writes: -a}}", /the option -a stands twice/],
  "an unknown effect": ["zz: {does: nets}", /zz-mine\.yaml: programs: zz: does.*no effect/],
  "an unknown role": ["zz: {arguments: {rest: reads}}", /zz-mine\.yaml: programs: zz: arguments: rest/],
  "an unknown reader": ["zz: {reader: zz}", /zz-mine\.yaml: zz: no reader is called zz/],
  "two ways to read it": ["zz: {reader: find, only prints: true}", /one of them/],
  "a key that rows cannot share": [
    "zz: {every subcommand: {reader: find}, subcommands: {a: {}}}",
    /zz-mine\.yaml: programs: zz: every subcommand.*reader/,
  ],
  "an option that is both shared and in the row": [
    "zz: {every subcommand: {options: {plain: -a}}, subcommands: {a: {options: {writes: -a}}}}",
    /zz-mine\.yaml: zz: a: the option -a stands twice/,
  ],
  "a reference to a missing row": ["zz: {like: yy}", /like yy: the file has no such row/],
  "a name that occurs in another file": [
    "eslint: {only prints: true}",
    /eslint: stands in javascript-lints\.yaml as well/,
  ],
  "a name twice": [
    "zz: {only prints: true}\n  zz: {only prints: true}",
    /zz-mine\.yaml: Map keys must be unique/,
  ],
};

for (const [what, [row, said]] of Object.entries(MISTAKES))
  test(`${what} is an error that names file and row`, () => {
    assert.throws(() => rows(`programs:\n  ${row}\n`), said);
  });

test("a row in an additional file makes its program known", () => {
  const made = rows("programs:\n  zz: {options: {plain: -a, writes: -o}, arguments: {rest: read}}\n");
  assert.deepEqual(JSON.parse(made.models[made.programs["zz"] ?? -1] ?? ""), {
    options: { plain: "-a", writes: "-o" },
    arguments: { rest: "read" },
    tells: ["--version", "--help"],
  });
});

test("rows inherit what their file or program states for all, unless they override it", () => {
  const made = rows(
    [
      "every program: {syntax: gnu, does: network}",
      "programs:",
      "  zz: {does: nothing}",
      "  yy:",
      "    every subcommand: {options: {plain: -q}, arguments: {rest: data}, does: asks}",
      "    subcommands:",
      "      a: {options: {plain: -a, writes: -o}}",
      "      b: {arguments: {rest: read}, does: nothing}",
      "      c: {every use: asks}",
      "",
    ].join("\n"),
  );
  const model = (number: number | undefined): Model => JSON.parse(made.models[number ?? -1] ?? "") as Model;
  const tells = ["--version", "--help"];
  assert.deepEqual(model(made.programs["zz"]), { complete: true, abbreviates: true, tells });
  const inner = Object.values(model(made.programs["yy"]).commands ?? {}).map(model);
  assert.deepEqual(inner, [
    { options: { plain: "-q -a", writes: "-o" }, arguments: { rest: "data" }, does: ["ask"], tells },
    { options: { plain: "-q" }, arguments: { rest: "read" }, tells },
    { tells, reader: ["every use", ["asks"]] },
  ]);
});
