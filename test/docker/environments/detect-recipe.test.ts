import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { detectRecipe, projectFiles } from "../../../src/docker/environments/detect-recipe.ts";
import { majorOfRange, numbersIn } from "../../../src/docker/environments/ecosystems.ts";
import { namedHosts } from "../../../src/docker/environments/project-needs.ts";
import { readRecipe } from "../../../src/docker/environments/recipe.ts";
import { buildInPlace, byProductsLast } from "../../../src/docker/environments/python-project.ts";
import { emptySubmodules, lfsPointers } from "../../../src/docker/environments/unserved.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { SHAPES } from "./project-shapes.ts";

const filesOf = (files: Readonly<Record<string, string>>) =>
  Object.entries(files).map(([path, text]) => ({ path, text, hash: "" }));

for (const { name, files, recipe, notTaken = [] } of SHAPES)
  test(`a project is detected from its files: ${name}`, () => {
    const found = detectRecipe(filesOf(files));
    const told = Object.keys(recipe).map((key) => [key, found.recipe[key as keyof typeof recipe]]);
    assert.deepEqual(Object.fromEntries(told), recipe);
    for (const text of notTaken)
      assert.ok(
        found.notTaken.some(({ what }) => what.includes(text)),
        text,
      );
    if (notTaken.length === 0) assert.deepEqual(found.notTaken, []);
    assert.deepEqual(
      readRecipe(found.recipe),
      found.recipe,
      "what is found is a recipe as anybody may write it",
    );
    for (const { from } of found.taken) assert.ok(Object.hasOwn(files, from), `${from} is one of its files`);
  });

test("a repository cannot inject its own words into a command", () => {
  const evil = "20; touch /tmp/x";
  const found = detectRecipe(
    filesOf({
      "package.json": JSON.stringify({
        packageManager: `pnpm@${evil}`,
        engines: { node: evil },
        dependencies: { a: "1" },
      }),
      ".nvmrc": evil,
      "requirements-$(id).txt": "a",
      "pyproject.toml": '[project]\n[project.optional-dependencies]\n"test; id"=[]\n',
    }),
  );
  assert.doesNotMatch(JSON.stringify(found.recipe), /touch|\bid\b/);
});

const notTakenOf = (files: Readonly<Record<string, string>>): string =>
  detectRecipe(filesOf(files))
    .notTaken.map(({ what }) => what)
    .join("\n");

test("package hosts in a project's files are pointed out, in a time linear to their size", () => {
  assert.match(notTakenOf({ Gemfile: "source('https://gems.example')\n" }), /--allow-domain gems\.example/);
  assert.match(
    notTakenOf({ Gemfile: 'source ( "https://me@gems.example/a" )\n' }),
    /--allow-domain gems\.example/,
  );
  assert.match(
    notTakenOf({
      "composer.json": '{"repositories":[{"type":"composer","url":"https:\\/\\/php.example\\/"}]}',
    }),
    /--allow-domain php\.example/,
  );
  const many = 400_000;
  for (const text of [
    `source${" ".repeat(many)}x`,
    `source(${" ".repeat(many)}x`,
    `source "https://${"a".repeat(many)}`,
    "source 'https:/".repeat(many / 16),
  ])
    assert.match(notTakenOf({ Gemfile: text }), /--allow-domain HOST/);
  for (const text of [`"url":${" ".repeat(many)}x`, '"url":"https:/'.repeat(many / 16)])
    assert.match(notTakenOf({ "composer.json": text }), /--allow-domain repo\.packagist\.org/);
});

test("for a registry without a preset, the hosts that it sends to for its files are named, too", () => {
  const gems = { Gemfile: `source "https://${["rubygems", "org"].join(".")}"\n` };
  assert.match(notTakenOf(gems), /--allow-domain rubygems\.org,index\.rubygems\.org$/);
  const usual = /--allow-domain repo\.packagist\.org,api\.github\.com,codeload\.github\.com$/;
  assert.match(notTakenOf({ "composer.json": "{}" }), usual);
  const lock = '{"packages":[{"dist":{"url":"https://api.github.com/repos/a/b/zipball/1"}}]}';
  const locked = notTakenOf({ "composer.json": "{}", "composer.lock": lock });
  assert.match(locked, /--allow-domain api\.github\.com,codeload\.github\.com$/);
  const lines = [{ what: locked, from: "a/composer.json" }];
  assert.deepEqual(namedHosts(lines, "a"), ["api.github.com", "codeload.github.com"]);
  assert.deepEqual(namedHosts(lines, "."), []);
  const off = '{"repositories":[{"type":"path","url":"own"},{"packagist.org":false}]}';
  assert.match(notTakenOf({ "composer.json": off }), /--allow-domain HOST$/);
});

test("a version range selects a release line only if it has an upper limit", () => {
  const cases = {
    "^18": "18",
    "18.x": "18",
    "~20.1": "20",
    "^18 || ^20": "20",
    "^18 || >=20": null,
    "<=22": "22",
    "*": null,
    "": null,
  };
  for (const [range, line] of Object.entries(cases)) assert.equal(majorOfRange(range), line, range);
  assert.equal(numbersIn("system"), null);
  assert.equal(numbersIn("go1.22.3"), "1.22.3");
});

test("members of a workspace are found also in folders that are skipped elsewhere", async () => {
  await using place = await scratch({
    "package.json": '{"workspaces":["apps/*","examples/one","lib/**"]}',
    "apps/docs/package.json": "{}",
    "examples/one/package.json": "{}",
    "examples/two/package.json": "{}",
    "lib/test/package.json": "{}",
    "docs/package.json": "{}",
    "requirements/test.txt": "pytest",
    "tests/conftest.py": "x",
    "A.csproj": "<Project/>",
  });
  const { files } = await projectFiles(place.path);
  assert.deepEqual(files.map(({ path }) => path).toSorted(), [
    "A.csproj",
    "apps/docs/package.json",
    "examples/one/package.json",
    "package.json",
    "requirements/test.txt",
    "tests/conftest.py",
  ]);
  const unread = files.filter(({ hash }) => hash === "").map(({ path }) => path);
  assert.deepEqual(unread.toSorted(), ["A.csproj", "tests/conftest.py"], "only their existence counts");
});

test("members beyond the limit of folders are reported in one line", () => {
  const members = Array.from({ length: 70 }, (_, at) => `packages/p${at}/package.json`);
  const { recipe, notTaken } = detectRecipe(
    filesOf({
      "package.json": '{"workspaces":["packages/*"],"dependencies":{"a":"1"}}',
      "yarn.lock": "",
      ...Object.fromEntries(members.map((file) => [file, DEPENDENT] as const)),
    }),
  );
  assert.equal(recipe.folders.length, 60);
  const said = notTaken.map(({ what }) => what).join("\n");
  assert.match(said, /^packages\S+, \S+, \S+ and 8 more: an environment has at most 60 folders$/);
});

const DEPENDENT = '{"dependencies":{"a":"1"}}';

test("submodules that nobody has filled are found, inside the workspace only", async () => {
  await using place = await scratch({
    ".gitmodules":
      '[submodule "a"]\n\tpath = lib/a\n\turl = x\n[submodule "b"]\n\tpath = b\n[submodule "c"]\n\tpath = ../c\n[submodule "d"]\n\tpath = gone\n',
    "b/file": "",
    "lib/a/file": "",
  });
  assert.deepEqual(await emptySubmodules(place.path), ["gone"]);
  assert.deepEqual(await emptySubmodules(place.at("b")), []);
});

const steps = (run: string, folder = ".") => ({ setup: [{ run, folder }] });

test("files that a build writes beside the sources come first, with the line that makes them again", () => {
  const lost = ["src/a.egg-info/PKG-INFO", "src/a/__pycache__/b.pyc", "src/a/_version.py", "build/x.o"];
  assert.deepEqual(byProductsLast(lost)[0], "src/a/_version.py");
  const pip = ".venv/bin/python -m pip install --quiet -e '.[test]' pytest";
  assert.equal(
    buildInPlace(steps(pip), lost),
    "harness sandbox exec -- .venv/bin/python -m pip install --no-deps -e .",
  );
  assert.equal(
    buildInPlace(steps("uv sync --frozen", "api"), lost),
    "harness sandbox exec -- sh -c 'cd api && uv pip install --no-deps -e .'",
  );
  assert.equal(
    buildInPlace(
      steps(pip),
      lost.filter((file) => !file.endsWith("_version.py")),
    ),
    undefined,
  );
  assert.equal(buildInPlace(steps("npm ci"), lost), undefined);
  assert.equal(buildInPlace(steps(pip, "a'; touch x"), lost), undefined);
});

test("pointers of git-lfs are found among the files that .gitattributes names", async () => {
  const pointer = "version https://git-lfs.example/spec/v1\noid sha256:00\nsize 12345\n";
  await using place = await scratch({
    ".gitattributes": "*.bin filter=lfs diff=lfs -text\n/data/** filter=lfs\n*.txt text\n",
    "a.bin": pointer,
    "deep/er/b.bin": pointer,
    "data/c/d.csv": pointer,
    "e.bin": "contents",
    "f.txt": pointer,
    "large.bin": pointer.padEnd(5000),
    "node_modules/x/g.bin": pointer,
  });
  await symlink("a.bin", place.at("link.bin"));
  assert.deepEqual([...(await lfsPointers(place.path))].toSorted(), [
    "a.bin",
    "data/c/d.csv",
    "deep/er/b.bin",
  ]);
  await using plain = await scratch({ "a.bin": pointer });
  assert.deepEqual(await lfsPointers(plain.path), []);
});
