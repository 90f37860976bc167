import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

/** The contributor's map names what is there. */

const ROOT = path.join(import.meta.dirname, "../..");
const FILES = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
const MAPS = FILES.filter((file) => /^(AGENTS\.md|(src|test|bench|sandbox|bin)\/.*README\.md)$/.test(file));

/** The folders above each file, from the root. */
const FOLDERS = new Set(
  FILES.flatMap((file) => file.split("/").map((_part, at, parts) => parts.slice(0, at).join("/"))),
);

const ENDING = /\.(ts|tsx|js|c|h|yaml|py|sh)$/;

/** What is made by the build, and names that stand for any. */
const MADE = /\.generated\.ts$|NAME/;

/** Names of files, and of folders of more than one part, that stand between backticks. */
const namedIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)*)\/?`/g)]
    .map(([, name = ""]) => name.replace(/^\.\//, ""))
    .filter(
      (name) => (ENDING.test(name) || /^(src|test|bench|bin|sandbox)\//.test(name)) && !MADE.test(name),
    );

/** Said from the root, or by its last parts. */
const isThere = (name: string): boolean =>
  FOLDERS.has(name) || FILES.some((file) => file === name || file.endsWith(`/${name}`));

test("what the contributor's map and the folders' READMEs name is in the tree", () => {
  const named = MAPS.flatMap((file) =>
    namedIn(readFileSync(path.join(ROOT, file), "utf8")).map((name) => ({ file, name })),
  );
  assert.ok(named.length > 150, `${named.length} names are few: are the maps still read?`);
  assert.deepEqual(
    named.filter(({ name }) => !isThere(name)).map(({ file, name }) => `${file}: ${name}`),
    [],
  );
});

test("every folder of src that holds a README is a row of the map", () => {
  const map = readFileSync(path.join(ROOT, "AGENTS.md"), "utf8");
  const top = FILES.flatMap((file) => /^(src\/[\w-]+)\/README\.md$/.exec(file)?.[1] ?? []);
  assert.deepEqual(
    top.filter((folder) => !map.includes(`| \`${folder}\``)),
    [],
  );
});
