import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandPolicy } from "../../../src/policy/decide.ts";
import { compilePrograms } from "../../../bin/compile-programs.ts";
import { ProgramTable } from "../../../src/policy/programs/program-models.ts";
import { PROGRAMS } from "../../../src/policy/programs/programs.generated.ts";

const policy = new CommandPolicy();
const verdict = (command: string): string =>
  policy.decide(command, { mode: "workspace-write", workspace: "/home/dev/project", home: "/home/dev" })
    .decision;

const FAMILIES = [
  "builds",
  "compilers",
  "dotnet-and-swift",
  "go",
  "javascript-builds",
  "javascript-lints",
  "javascript-packages",
  "javascript-tests",
  "jvm",
  "node",
  "other-languages",
  "php",
  "python",
  "python-lints",
  "python-tools",
  "ruby",
  "rust",
  "scripting-checks",
  "system-packages",
  "text-lints",
];
const table = new ProgramTable();

function uses(name: string, number: number): readonly string[] {
  const { commands = {} } = table.model(number);
  return [name, ...Object.entries(commands).flatMap(([word, inner]) => uses(`${name} ${word}`, inner))];
}

const all = compilePrograms()
  .namesOf(...FAMILIES.map((family) => `${family}.yaml`))
  .flatMap((name) => (name.includes(" ") ? [] : uses(name, PROGRAMS[name] ?? -1)));

test("no project program, and no sub-command of one, is allowed with an unknown option", () => {
  assert.ok(all.length > 2000);
  assert.deepEqual(
    all.filter((use) => verdict(`${use} --no-such-option-here`) === "allow"),
    [],
  );
});

test("every project program requires confirmation where the folder is unknown", () => {
  assert.deepEqual(
    [
      "npm test",
      "cargo test",
      "go vet ./...",
      "pytest",
      "tsc --noEmit",
      "npm ls",
      "git status",
      "eslint .",
    ].filter((use) => verdict(`cd "$X" && ${use}`) === "allow"),
    [],
  );
});

test("a check in another folder is not allowed", () => {
  assert.deepEqual(
    ["npm test", "cargo test", "go vet ./...", "pytest", "tsc --noEmit", "npm ls", "eslint .", "make"].filter(
      (use) => verdict(`cd /tmp/x && ${use}`) === "allow",
    ),
    [],
  );
});
