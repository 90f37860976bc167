import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { type CompiledTable, compileTables, tableFiles } from "../../bin/compile-tables.ts";
import { wrongTableExamples } from "../../bin/table-examples.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const compiled = compileTables();

test("the generated modules match the tables", () => {
  for (const { module, text } of compiled)
    assert.equal(readFileSync(path.join(ROOT, module), "utf8"), text, module);
});

test("every example of every table holds", () => {
  const examples = compiled.flatMap((table) => table.examples);
  assert.ok(examples.length > 200);
  assert.ok(compiled.every((table) => table.examples.some(({ holds }) => holds)));
  assert.deepEqual(wrongTableExamples(examples), []);
});

test("an example that does not hold names its table and row", () => {
  const about = { where: "secret-paths.yaml: a private key", about: "SECRETS", row: "a private key" };
  assert.deepEqual(
    wrongTableExamples([
      { ...about, given: "/w/a.ts", holds: true },
      { ...about, given: "/w/a.key", holds: true },
      { ...about, given: "/w/b.key", holds: false },
    ]),
    [
      "secret-paths.yaml: a private key: /w/a.ts: does not hold",
      "secret-paths.yaml: a private key: /w/b.key: holds",
    ],
  );
});

/** The tables with one text of one of them replaced. */
function changed(file: string, before: string, after: string): readonly CompiledTable[] {
  const files = new Map(tableFiles());
  const text = files.get(file) ?? "";
  assert.ok(text.includes(before), `${file} has no ${before}`);
  return compileTables(files.set(file, text.replace(before, after)));
}

const PATHS = "src/policy/paths/secret-paths.yaml";
const VARIABLES = "src/policy/effects/environment.yaml";
const FAMILIES = "src/models/model-families.yaml";
const MISTAKES: Readonly<
  Record<string, readonly [file: string, before: string, after: string, said: RegExp]>
> = {
  "an unknown key": [PATHS, "paths:\n  ", "pahts:\n  ", /secret-paths\.yaml: .*(?:paths|pahts)/],
  "an unknown key of a row": [
    PATHS,
    "    paths: .ssh/\n",
    "    paths: .ssh/\n    why: x\n",
    /secret-paths\.yaml: paths: ssh keys and settings: .*why/,
  ],
  "a path that occurs twice": [
    PATHS,
    "paths: .ssh/\n",
    "paths: .ssh/, .gnupg/\n",
    /secret-paths\.yaml: GnuPG keys: \.gnupg\/ stands in "ssh keys and settings" as well/,
  ],
  "a path in capitals": [
    PATHS,
    "paths: .ssh/\n",
    "paths: .SSH/\n",
    /ssh keys and settings: \.SSH\/ is not in small letters/,
  ],
  "a row that occurs twice": [
    FAMILIES,
    "  qwen2: ",
    "  qwen: ",
    /model-families\.yaml: Map keys must be unique/,
  ],
  "a word that occurs twice": [
    VARIABLES,
    "releases: JAVA_HOME",
    "releases: GOROOT",
    /environment\.yaml: releases/,
  ],
  "an invalid pattern": [
    VARIABLES,
    "names: PYTHONBREAKPOINT",
    "names: (PYTHON",
    /environment\.yaml: values: no breakpoint of Python: names: no pattern/,
  ],
  "a family without a context": [FAMILIES, "qwq: 40K", "qwq: many", /model-families\.yaml: families: qwq/],
  "an example without a family": [
    FAMILIES,
    "my-own-model: none",
    "my-own-model: own",
    /families\.yaml: own: no family/,
  ],
};

for (const [what, [file, before, after, said]] of Object.entries(MISTAKES))
  test(`${what} is an error that names file and row`, () => {
    assert.throws(() => changed(file, before, after), said);
  });
