import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { checkFor, projectCheck } from "../../../src/app/run/project-check.ts";
import { scratch } from "../../fixtures/scratch.ts";

const of = (files: Readonly<Record<string, string>>, scripts = true): Promise<string | undefined> =>
  checkFor(
    { names: new Set(Object.keys(files)), read: (name) => Promise.resolve(files[name] ?? "") },
    { scripts },
  );

const SCRIPT = JSON.stringify({ scripts: { test: "node --test" } });
const PLACEHOLDER = JSON.stringify({ scripts: { test: 'echo "Error: no test specified" && exit 1' } });
const CTEST =
  "cmake -S . -B /tmp/check >/dev/null && cmake --build /tmp/check && ctest --test-dir /tmp/check --output-on-failure";
const MESON =
  "{ test -e /tmp/check/build.ninja || meson setup /tmp/check >/dev/null; } && meson test -C /tmp/check --print-errorlogs";
const PYTEST = "python3 -m pytest -q -p no:cacheprovider";

test("the command of a project's own tests is derived from its top-level files", async () => {
  const table: readonly (readonly [Readonly<Record<string, string>>, string | undefined])[] = [
    [{}, undefined],
    [{ "README.md": "make test" }, undefined],
    [{ "package.json": SCRIPT }, "npm test --silent"],
    [{ "package.json": PLACEHOLDER }, undefined],
    [{ "package.json": "{ no json" }, undefined],
    [{ "package.json": '{"scripts": {"test": 4}}' }, undefined],
    [{ "package.json": "{}", Makefile: "test: all\n" }, "make test"],
    [{ "package.json": "{}", "sum.test.mjs": "" }, "node --test"],
    [{ "package.json": "{}", "test/sum.test.js": "" }, "node --test"],
    [{ "Cargo.toml": "[package]" }, "cargo test --offline"],
    [{ "go.mod": "module a" }, "go test ./..."],
    [{ "go.mod": "module a", "go.work": "use ." }, "go list -f '{{.Dir}}/...' -m | xargs go test"],
    [{ "package.json": "{}", "bun.lock": "{}", "test/sum.test.ts": "" }, "bun test"],
    [{ "deno.json": "{}" }, "deno test"],
    [{ "deno.jsonc": '{"tasks": {"test": "deno test -A"}}' }, "deno task test"],
    [{ "meson.build": "project('a')\ntest('b', b)\n" }, MESON],
    [{ "meson.build": "project('a')\n" }, undefined],
    [{ "pom.xml": "<project/>" }, "mvn -o -q test"],
    [{ gradlew: "#!/bin/sh" }, "./gradlew --offline test"],
    [{ "pytest.ini": "" }, PYTEST],
    [{ "conftest.py": "" }, PYTEST],
    [{ "pyproject.toml": "[tool.pytest.ini_options]" }, PYTEST],
    [{ "pyproject.toml": "[project]" }, undefined],
    [{ Makefile: "check:\n\ttrue\n" }, "make check"],
    [{ Makefile: "test := 4\nbuild: a\n" }, undefined],
    [{ "test_a.py": "import unittest\n" }, "python3 -m unittest discover -p 'test_*.py'"],
    [
      { "tests/a_test.py": "from unittest import TestCase\n" },
      "python3 -m unittest discover -s tests -p '*_test.py'",
    ],
    [{ "test_a.py": "def test_a(): pass\n" }, PYTEST],
    [{ "test_a.py": "assert True\nif __name__ == '__main__':\n  run()\n" }, "python3 test_a.py"],
    [{ "a;b_test.py": "" }, undefined],
    [{ "sum.test.ts": "" }, "node --test"],
    [{ "build.gradle.kts": "" }, "gradle --offline test"],
    [{ "mix.exs": "" }, "mix test"],
    [{ Rakefile: "require 'rake/testtask'\nRake::TestTask.new { |t| t.libs << 'test' }\n" }, "rake test"],
    [{ Rakefile: "Rake::TestTask.new(:unit) do |t|\nend\n", Gemfile: "" }, "bundle exec rake unit"],
    [{ Rakefile: "  task :test do\n  end\n" }, "rake test"],
    [
      { Rakefile: "RSpec::Core::RakeTask.new(:spec)\n", Gemfile: "", "spec/a_spec.rb": "" },
      "bundle exec rake spec",
    ],
    [{ Rakefile: "task :default do\nend\n" }, undefined],
    [{ Gemfile: "gem 'rspec'", "spec/a_spec.rb": "" }, "bundle exec rspec"],
    [{ Gemfile: "gem 'rspec'", "spec/helper.rb": "" }, undefined],
    [{ "composer.json": '{"scripts": {"test": "phpunit"}}', "tests/ATest.php": "" }, "composer test"],
    [
      { "composer.json": '{"require-dev": {"phpunit/phpunit": "^10"}}', "tests/ATest.php": "" },
      "vendor/bin/phpunit tests",
    ],
    [
      {
        "composer.json": '{"require-dev": {"phpunit/phpunit": "^10"}}',
        "phpunit.xml": "",
        "tests/ATest.php": "",
      },
      "vendor/bin/phpunit",
    ],
    [{ "composer.json": "{}", "tests/ATest.php": "" }, undefined],
    [{ "Package.swift": "" }, "swift test"],
    [{ "dune-project": "" }, "dune test"],
    [{ ".rspec": "", Gemfile: "" }, "bundle exec rspec"],
    [{ ".rspec": "" }, "rspec"],
    [{ "composer.json": SCRIPT }, "composer test"],
    [{ "composer.json": "{}", "phpunit.xml.dist": "" }, "vendor/bin/phpunit"],
    [{ justfile: "build:\n  a\ntest *args: build\n  b\n" }, "just test"],
    [{ justfile: "test := 'a'\ntests:\n  b\n" }, undefined],
    [{ "CMakeLists.txt": "project(a)\n  enable_testing()\n" }, CTEST],
    [{ "CMakeLists.txt": "include(CTest)\n" }, CTEST],
    [{ "CMakeLists.txt": "include(a)\n# enable_testing()\n" }, undefined],
    [{ "t/a.t": "", "lib/A.pm": "" }, "prove -l t"],
    [{ "test.t": "", "A.pm": "" }, "prove *.t"],
    [{ "a b.t": "" }, undefined],
    [{ "test.sh": "#!/bin/sh\n" }, "sh test.sh"],
    [{ "tests/run.sh": "#!/usr/bin/env bash\n" }, "bash tests/run.sh"],
    [{ "test.sh": "#!/usr/bin/fish\n" }, undefined],
    [{ "run.sh": "#!/bin/sh\n", "my-test.sh": "" }, undefined],
    [{ "test/a.bats": "", "test/run.sh": "" }, "bats test"],
  ];
  for (const [files, command] of table) assert.equal(await of(files), command, JSON.stringify(files));
});

test("a script whose name alone suggests a test is ignored unless such scripts are allowed", async () => {
  assert.equal(await of({ "test.sh": "", "tests/run.sh": "" }, false), undefined);
  assert.equal(await of({ "test/a.bats": "", "test.sh": "" }, false), "bats test");
  assert.equal(await of({ "test.sh": "", "a.t": "" }, false), "prove *.t");
});

test("a file of newlines is read without trying every line from every line", async () => {
  const lines = "\n".repeat(250_000);
  const files = { "test_a.py": lines, "test_b.py": lines, Makefile: `test${" ".repeat(250_000)}` };
  // With a pattern that tries every line from every line this takes minutes.
  assert.equal(await of(files), PYTEST);
});

test("only plain files determine the command: no link that leads out, no folder in place of a file", async () => {
  await using place = await scratch({
    "work/package.json/file": "",
    "work/tests/test_a.py": "import unittest\n",
    "linked/a": "",
    "away/package.json": SCRIPT,
    "away/tests/test_b.py": "import unittest\n",
  });
  assert.equal(await projectCheck(place.at("work")), "python3 -m unittest discover -s tests -p 'test_*.py'");
  await symlink(place.at("away/package.json"), place.at("linked/package.json"));
  await symlink(place.at("away/tests"), place.at("linked/tests"));
  assert.equal(await projectCheck(place.at("linked")), undefined);
  assert.equal(await projectCheck(place.at("nosuch")), undefined);
});

test("a workspace of packages without a test at its top runs its members' tests", async () => {
  const none = "{}";
  const table: readonly (readonly [Readonly<Record<string, string>>, string | undefined])[] = [
    [{ "packages/a/package.json": SCRIPT, "packages/b/package.json": none }, "--workspaces --if-present"],
    [{ "packages/a/package.json": SCRIPT, "packages/b/package.json": PLACEHOLDER }, "--workspace packages/a"],
    [{ "packages/a/package.json": PLACEHOLDER, "packages/b/package.json": none }, undefined],
    [{ "packages/a;b/package.json": SCRIPT, "packages/b/package.json": PLACEHOLDER }, undefined],
    [{ "other/a/package.json": SCRIPT }, undefined],
    [{ "packages/old/package.json": SCRIPT }, undefined],
  ];
  const manifest = JSON.stringify({ workspaces: ["packages/*", "!packages/old", "../away/*"] });
  for (const [files, command] of table) {
    await using place = await scratch({ "package.json": manifest, ...files });
    const wanted = command === undefined ? undefined : `npm test --silent ${command}`;
    assert.equal(await projectCheck(place.path), wanted, JSON.stringify(files));
  }
  await using pnpm = await scratch({
    "package.json": none,
    "pnpm-workspace.yaml": 'packages:\n  - "libs/**"\n',
    "libs/a/package.json": SCRIPT,
  });
  assert.equal(await projectCheck(pnpm.path), "pnpm --recursive test");
  assert.equal(
    await of({ "package.json": SCRIPT, "packages/a/package.json": SCRIPT }),
    "npm test --silent",
    "the top's own test counts",
  );
});
