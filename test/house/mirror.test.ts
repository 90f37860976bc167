import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { scratch } from "../fixtures/scratch.ts";
import { repository } from "./plant.ts";

/** Folders of tests that mirror no folder of `src`; `bin` mirrors the one at the root. */
const OUTSIDE = new Set([
  "contract",
  "escape",
  "e2e",
  "fakes",
  "far",
  "fixtures",
  "house",
  "kills",
  "kubernetes",
  "projects",
  "real",
  "registry",
  "bin",
]);

/** Folders under test/ that mirror nothing under src/. */
function strays(root: string): readonly string[] {
  return readdirSync(path.join(root, "test"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => path.relative(path.join(root, "test"), path.join(parentPath, name)))
    .filter((folder) => !OUTSIDE.has(folder.split(path.sep)[0] ?? ""))
    .filter((folder) => !existsSync(path.join(root, "src", folder)))
    .toSorted();
}

test("tests lie in the folder that mirrors what they test", () => {
  assert.deepEqual(strays(repository), []);
});

test("a test folder that mirrors nothing is named, its twin is not", async () => {
  await using place = await scratch({
    "src/core/deep/a.ts": "",
    "test/core/deep/a.test.ts": "",
    "test/core/gone/b.test.ts": "",
    "test/e2e/any/c.test.ts": "",
    "test/old/d.test.ts": "",
  });
  assert.deepEqual(strays(place.path), [path.join("core", "gone"), "old"]);
});

/** Files of src, without tables, modules generated from them, and commands, whose folders follow the command line. */
const sources = (): readonly string[] =>
  readdirSync(path.join(repository, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll(path.sep, "/"))
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".generated.ts"))
    .filter((file) => !file.startsWith("cli/commands/"));

const MOST_IN_A_FOLDER = 20;

test("a folder of src holds no more files than can be read at a glance", () => {
  const folders = [...Map.groupBy(sources(), (file) => path.posix.dirname(file))];
  assert.ok(folders.length > 20, `${folders.length} folders are few: is src still read?`);
  const full = folders.filter(([, files]) => files.length > MOST_IN_A_FOLDER);
  assert.deepEqual(
    full.map(([folder, files]) => `src/${folder}: ${files.length}`),
    [],
  );
});
