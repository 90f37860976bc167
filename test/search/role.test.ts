import assert from "node:assert/strict";
import { test } from "node:test";
import { roleOf } from "../../src/search/ranked-query.ts";
import type { Role } from "../../src/search/search-store.ts";

const PATHS: Readonly<Record<Role, readonly string[]>> = {
  source: [
    "src/main.rs",
    "cmd/launch/claude.go",
    "app/Models/User.php",
    "lib/tester.rb",
    "src/latest.ts",
    "src/contest/vote.py",
    "src/helper/testing/index.ts",
    "bin/deploy",
    "src/API.ts",
    "src/documents/page.ts",
    "server/inspect.go",
  ],
  test: [
    "test/unit/a.ts",
    "pkg/server_test.go",
    "src/app.test.tsx",
    "tests/test_views.py",
    "spec/models/user_spec.rb",
    "src/test/java/com/x/GsonTest.java",
    "Jellyfin.Api.Tests/UserTests.cs",
    "runtime-tests/bun/index.ts",
    "conftest.py",
    "a/testdata/x.go",
    "test/x.bats",
    "src/__tests__/a.js",
  ],
  example: ["examples/chat.rs", "playground/css/main.js", "benchmarks/fast.go"],
  docs: ["README.md", "docs/guide.html", "LICENSE", "CHANGELOG", "RELEASE-NOTES", "notes/x.rst"],
  vendored: [
    "vendor/github.com/x/y.go",
    "third_party/zlib/inflate.c",
    "deps/lua/src/lua.c",
    "web/jquery.min.js",
  ],
  config: [
    "package.json",
    ".github/workflows/ci.yml",
    "Makefile",
    "a/CMakeLists.txt",
    "x.tmTheme",
    ".eslintrc",
    "pkg/BUILD",
    "Justfile",
  ],
};

for (const [role, paths] of Object.entries(PATHS))
  test(`what is ${role} is known by its path`, () => {
    for (const path of paths) assert.equal(roleOf(path), role, path);
  });
