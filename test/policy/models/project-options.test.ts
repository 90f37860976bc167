import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandPolicy } from "../../../src/policy/decide.ts";
import type { Model } from "../../../src/policy/programs/program-model.ts";
import { PROJECT } from "../../../src/policy/programs/project-programs.ts";

const policy = new CommandPolicy();
const verdict = (command: string): string =>
  policy.decide(command, { mode: "workspace-write", workspace: "/home/dev/project", home: "/home/dev" })
    .decision;

function uses(name: string, { commands = {} }: Model): readonly string[] {
  return [name, ...Object.entries(commands).flatMap(([word, model]) => uses(`${name} ${word}`, model))];
}

const all = PROJECT.flatMap((table) =>
  Object.entries(table).flatMap(([name, model]) => (name.includes(" ") ? [] : uses(name, model))),
);

test("no program of a project, and no sub-command of one, is allowed with an option that nobody knows", () => {
  assert.ok(all.length > 2000);
  assert.deepEqual(
    all.filter((use) => verdict(`${use} --no-such-option-here`) === "allow"),
    [],
  );
});

test("no program of a project is less than asked for where the folder is not known", () => {
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

test("a check of another folder is not allowed", () => {
  assert.deepEqual(
    ["npm test", "cargo test", "go vet ./...", "pytest", "tsc --noEmit", "npm ls", "eslint .", "make"].filter(
      (use) => verdict(`cd /tmp/x && ${use}`) === "allow",
    ),
    [],
  );
});
