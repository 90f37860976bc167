import assert from "node:assert/strict";
import test from "node:test";
import {
  builtLines,
  environmentTable,
  keptEnvironments,
  recipeLines,
  standingLines,
} from "../../src/render/environment-lines.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const listed = (id: string) => ({
  id,
  workspace: `/w/${id}\u001B[2J`,
  name: "",
  state: "ready",
  made: null,
  bytes: 3 * 2 ** 20,
  system_bytes: null,
  pushed: null,
});

test("the last message names the environments that stay, and how to remove them", () => {
  assert.equal(
    keptEnvironments([listed("one")]),
    "1 environment stays: harness env rm --all\n  one  3.0 MiB, image -  /w/one␛[2J\n",
  );
  const many = keptEnvironments(Array.from({ length: 25 }, (_, at) => listed(`e${at}`)));
  assert.match(many, /^25 environments stay: /);
  assert.equal(many.split("\n").length, 23);
  assert.match(many, /\n {2}and 5 more: harness env list\n$/);
});

test("no line of a recipe is wrapped by the terminal: a file is shown beside its statement, or below it", () => {
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
  assert.match(recipeLines(shown, fakeTerminal().stream), /x{54} {2}requirements/, "without a terminal");
});

const PUSHED = `registry.example/team/env@sha256:${"ab".repeat(32)}`;

test("an environment in a registry is reported when it is built, shown and listed", () => {
  const made = "2026-01-01T00:00:00Z";
  const record = { id: "e1", made, versions: [], seconds: 2, volumes: [], installed: null };
  const built = (how: "kept" | "pushed", moved: number): string =>
    builtLines(record, "built", { lost: [], pushed: { how, image: PUSHED, moved } });
  assert.equal(built("pushed", 1), `e1  built in 2 s\n  pushed: ${PUSHED} (1 layer was sent)\n`);
  assert.equal(built("pushed", 0), `e1  built in 2 s\n  pushed: ${PUSHED} (0 layers were sent)\n`);
  assert.equal(built("kept", 0), `e1  built in 2 s\n  in the registry: ${PUSHED}\n`);
  assert.equal(builtLines(record, "kept", { lost: [], pushed: null }), "e1  already complete\n");
  assert.equal(
    builtLines(record, "built", { lost: ["a/_b.so"], again: "harness x", pushed: null }),
    "e1  built in 2 s\n  not kept, because it is outside the environment's folders: a/_b.so\n  if the tests need these files: harness x\n",
  );
  assert.match(standingLines(record, { pushed: PUSHED }), new RegExp(`^in the registry: ${PUSHED}$`, "m"));
  const rows = environmentTable([listed("one"), { ...listed("two"), pushed: PUSHED }], fakeTerminal().stream);
  assert.match(rows, / - {2,}\/w\/one/);
  assert.match(rows, / registry\.example\/team\/env@sha256:abababababab {2,}\/w\/two/);
});
