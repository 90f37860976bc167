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

const ENDING = /\.(ts|tsx|js|c|h|yaml|py|sh|md)$/;

/** What is made by the build, and names that stand for any. */
const MADE = /\.generated\.ts$|NAME/;

/** Names of files, and of folders of more than one part, that stand between backticks. */
const namedIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)*)\/?`/g)]
    .map(([, name = ""]) => name.replace(/^\.\//, ""))
    .filter(
      (name) =>
        (ENDING.test(name) || /^(src|test|bench|bin|sandbox|docs|examples)\//.test(name)) && !MADE.test(name),
    );

/** Said from the root, or by its last parts. */
const isThere = (name: string): boolean =>
  FOLDERS.has(name) || FILES.some((file) => file === name || file.endsWith(`/${name}`));

test("every file that the contributor's map and the folders' READMEs name exists", () => {
  const named = MAPS.flatMap((file) =>
    namedIn(readFileSync(path.join(ROOT, file), "utf8")).map((name) => ({ file, name })),
  );
  assert.ok(named.length > 150, `${named.length} names are few: are the maps still read?`);
  assert.deepEqual(
    named.filter(({ name }) => !isThere(name)).map(({ file, name }) => `${file}: ${name}`),
    [],
  );
});

/** Comments of the code, which name other files by their last parts. */
const REMARK = /^\s*(?:\/?\*|\/\/).*$/gm;

test("every file that a comment names exists", () => {
  const code = FILES.filter((file) => /^(src|sandbox|bin|bench)\/.*\.(ts|c|h)$/.test(file));
  const named = code.flatMap((file) => {
    const remarks = readFileSync(path.join(ROOT, file), "utf8").match(REMARK)?.join("\n") ?? "";
    const names = remarks.match(/(?<![\w./-])(?:[\w-]+\/)*[\w-]+\.(?:ts|h)(?!\w)/g) ?? [];
    return names.filter((name) => !MADE.test(name)).map((name) => ({ file, name }));
  });
  assert.ok(named.length > 20, `${named.length} names are few: are comments still read?`);
  assert.deepEqual(
    named.filter(({ name }) => !isThere(name)).map(({ file, name }) => `${file}: ${name}`),
    [],
  );
});

test("every folder of src with a README has a row in the map", () => {
  const map = readFileSync(path.join(ROOT, "AGENTS.md"), "utf8");
  const top = FILES.flatMap((file) => /^(src\/[\w-]+)\/README\.md$/.exec(file)?.[1] ?? []);
  assert.deepEqual(
    top.filter((folder) => !map.includes(`| \`${folder}\``)),
    [],
  );
});

/** An option of another package. */
const OF_OTHERS = new Set(["filenameEncoding"]);

/** What the map calls by name, and every file that may hold it. */
const MAP = readFileSync(path.join(ROOT, "AGENTS.md"), "utf8");
const CODE = FILES.filter(
  (file) =>
    /^(src|test|bench|bin|sandbox)\/.*\.(ts|js|c|h|yaml)$/.test(file) && file !== "test/house/map.test.ts",
);

test("every name of the code in the map exists in the code", () => {
  const names = [...MAP.matchAll(/`([A-Za-z]\w*)`/g)].map(([, name = ""]) => name);
  const wanted = new Set(names.filter((name) => /_|[a-z][A-Z]|^[A-Z]{3}/.test(name) && !OF_OTHERS.has(name)));
  assert.ok(wanted.size > 40, `${wanted.size} names are few: is the map still read?`);
  for (const file of CODE) {
    const words = new Set(readFileSync(path.join(ROOT, file), "utf8").match(/\w+/g));
    for (const name of wanted) if (words.has(name)) wanted.delete(name);
    if (wanted.size === 0) break;
  }
  assert.deepEqual([...wanted], []);
});

/** Other names on the pages are those of a user's project. */
const OUR_SCRIPT = /^(?:test:|bench$|kills$)/;

test("every npm script that the map and the pages name is in package.json", () => {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const pages = ["AGENTS.md", "README.md", ...FILES.filter((file) => /^docs\/[^/]+\.md$/.test(file))];
  const shown = pages.flatMap((page) =>
    [...readFileSync(path.join(ROOT, page), "utf8").matchAll(/npm run ([a-z][\w:-]*)/g)].map(
      ([, name = ""]) => ({ page, name }),
    ),
  );
  const ours = shown.filter(({ page, name }) => page === "AGENTS.md" || OUR_SCRIPT.test(name));
  assert.ok(ours.length > 30, `${ours.length} are few`);
  assert.deepEqual(
    ours.filter(({ name }) => scripts[name] === undefined).map(({ page, name }) => `${page}: ${name}`),
    [],
  );
});
