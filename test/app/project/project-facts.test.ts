import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { factsText, projectFacts } from "../../../src/app/project/project-facts.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("languages, commands and folders are derived from file names and manifests", async () => {
  await using place = await scratch({
    "package.json": JSON.stringify({ scripts: { test: "node --test", build: "tsc", "rm -rf /": "x" } }),
    "pnpm-lock.yaml": "",
    Makefile: "lint:\n\techo\nbuild := x\n",
    "src/a.ts": "",
    "src/deep/b.ts": "",
    "tools/c.py": "",
    "node_modules/x/index.js": "",
    ".hidden/d.go": "",
    "odd `name`/e.rb": "",
  });
  await symlink("/", place.at("everything"));
  const facts = await projectFacts(place.path);
  assert.deepEqual(facts.languages[0], { name: "TypeScript", files: 2 });
  assert.equal(
    facts.languages.some(({ name }) => name === "Go" || name === "JavaScript"),
    false,
  );
  assert.deepEqual(
    facts.commands.map(({ command }) => command),
    ["pnpm run build", "pnpm test", "make lint"],
  );
  assert.deepEqual(
    facts.folders.map(({ name }) => name),
    ["src", "tools"],
  );
  const text = factsText(facts);
  assert.match(text, /- test: `pnpm test`/);
  assert.match(text, /- `src\/`: 2 files, mostly TypeScript/);
});

test("a project without known files yields no facts", async () => {
  await using place = await scratch({ "notes.txt": "" });
  assert.deepEqual(await projectFacts(place.path), { languages: [], commands: [], folders: [] });
});
