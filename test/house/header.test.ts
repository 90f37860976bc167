import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { repository } from "./plant.ts";

const HOUSE =
  "agent app boxes cli config core docker extensions kubernetes models platform policy render s3 search sessions telemetry tools vet".split(
    " ",
  );

test("src/ holds exactly the folders of the house", async () => {
  const entries = await readdir(path.join(repository, "src"), { withFileTypes: true });
  assert.deepEqual(
    entries.map((entry) => (entry.isDirectory() ? entry.name : `${entry.name} is no folder`)).toSorted(),
    HOUSE,
  );
});

for (const folder of [...HOUSE.map((name) => `src/${name}`), "sandbox"])
  test(`${folder}/ opens with what it owns, what it must not know, and its invariant`, async () => {
    const text = await readFile(path.join(repository, folder, "README.md"), "utf8");
    const lines = text.split("\n").map((line) => /^([A-Z][a-z ]+): \S.*\S$/.exec(line)?.[1] ?? line);
    assert.deepEqual(lines, ["Owns", "Must not know", "Invariant", ""]);
  });

test("each file name in src/ is unique; a command's file is named after the command", async () => {
  const entries = await readdir(path.join(repository, "src"), { recursive: true, withFileTypes: true });
  const files = entries.filter(
    ({ name, parentPath }) => name.endsWith(".ts") && !parentPath.includes(path.join("cli", "commands")),
  );
  const names = files.map(({ name }) => name);
  assert.ok(names.length > 100);
  assert.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
});
