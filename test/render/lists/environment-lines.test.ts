import assert from "node:assert/strict";
import test from "node:test";
import { keptEnvironments, recipeLines } from "../../../src/render/lists/environment-lines.ts";
import { fakeTerminal } from "../../fakes/terminal.ts";

const listed = (id: string) => ({
  id,
  workspace: `/w/${id}\u001B[2J`,
  name: "",
  state: "ready",
  made: null,
  bytes: 3 * 2 ** 20,
  system_bytes: null,
});

test("an ending names the environments that stay, and what removes them", () => {
  assert.equal(
    keptEnvironments([listed("one")]),
    "1 environment stays: harness env rm --all\n  one  3.0 MiB, image -  /w/one␛[2J\n",
  );
  const many = keptEnvironments(Array.from({ length: 25 }, (_, at) => listed(`e${at}`)));
  assert.match(many, /^25 environments stay: /);
  assert.equal(many.split("\n").length, 23);
  assert.match(many, /\n {2}and 5 more: harness env list\n$/);
});

test("no line of a recipe breaks in a terminal: a file finds its place beside what it says, or below it", () => {
  const taken = [
    { what: "toolchain: python (any)", from: "requirements.txt" },
    { what: `set-up: ${"x".repeat(54)}`, from: "requirements.txt" },
    { what: `set-up: ${"y".repeat(30)}`, from: "requirements.txt" },
  ];
  const shown = { kind: "detected", file: "", taken, notTaken: [], ignored: [] };
  assert.deepEqual(recipeLines(shown, fakeTerminal(80).stream).split("\n"), [
    "found in the project's files",
    `  ${"toolchain: python (any)".padEnd(60)}  requirements.txt`,
    `  set-up: ${"x".repeat(54)}`,
    "      requirements.txt",
    `  ${`set-up: ${"y".repeat(30)}`.padEnd(60)}  requirements.txt`,
    "",
  ]);
  assert.match(recipeLines(shown, fakeTerminal().stream), /x{54} {2}requirements/, "the twin: no terminal");
});
