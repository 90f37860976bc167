import assert from "node:assert/strict";
import test from "node:test";
import type { Tier } from "../../src/core/run-record.ts";
import { type ChangedPath, handoffOf, handoffWithin } from "../../src/policy/handoff-paths.ts";

const tierOf = (change: Partial<ChangedPath> & { readonly path: string }): Tier | undefined =>
  handoffOf([{ what: "added", kind: "file", mode: 0o644, oldMode: 0, ...change }], "/repo")[0]?.tier;

const link = (path: string, target: string) => tierOf({ path, kind: "link", target });

const gone = (path: string) => tierOf({ path, what: "deleted" });

const all = (paths: string): readonly ChangedPath[] =>
  paths.split(" ").map((path) => ({ path, what: "added", kind: "file" }));

const textIn = (value: object | string | undefined): string | undefined =>
  typeof value === "object" ? JSON.stringify(value) : value;

function told(before: object | string | undefined, after: object | string): string | undefined {
  const text = { before: textIn(before), after: textIn(after) };
  return handoffOf([{ path: "package.json", what: "modified", kind: "file", text }], "/repo")[0]?.reason;
}

const rows = (tier: Tier | undefined, paths: string): readonly (readonly [Tier | undefined, string])[] =>
  paths.split(" ").map((path) => [tier, path]);

const CASES = [
  ...rows(
    "dangerous",
    ".git/hooks/pre-commit .git/config .GIT/config sub/.git/info/attributes .husky/pre-commit .githooks/x .gitmodules",
  ),
  ...rows(
    "dangerous",
    ".vscode/tasks.json a/.vscode/settings.json .idea/workspace.xml x.code-workspace .vimrc",
  ),
  ...rows(
    "dangerous",
    ".envrc sub/.envrc mise.toml .mise.toml .claude/settings.json .mcp.json .cursor/rules",
  ),
  ...rows(
    "dangerous",
    ".harness/config.toml .bashrc .pre-commit-config.yaml lefthook.yml .dir-locals.el .gdbinit",
  ),
  ...rows("look", ".github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile .circleci/config.yml"),
  ...rows("look", "package-lock.json yarn.lock a/Cargo.lock go.sum requirements-dev.txt .npmrc .yarnrc.yml"),
  ...rows("look", "Makefile MAKEFILE lib/rules.mk build.rs Cargo.toml conftest.py setup.py pyproject.toml"),
  ...rows("look", "Dockerfile dockerfile.dev docker-compose.yml compose.override.yaml Vagrantfile flake.nix"),
  ...rows("look", "vite.config.ts .eslintrc.cjs AGENTS.md docs/CLAUDE.md .env .env.local .gitattributes"),
  ...rows("look", "package.json sub/package.json node_modules/x/index.js .venv/lib/x.py"),
  ...rows(
    undefined,
    "src/index.ts README.md .gitignore data.json src/git/config hooks/useState.ts lockfile env",
  ),
  ...rows(undefined, "sub/.bashrc .github/CODEOWNERS .github/ISSUE_TEMPLATE/bug.md config.js"),
] as const;

test("files that the host runs by itself are dangerous, files that a build runs need a look, other files are not reported", () => {
  for (const [tier, path] of CASES) assert.equal(tierOf({ path }), tier, path);
});

test("links that lead outside, or to files that the host obeys, are dangerous; other links are not reported", () => {
  for (const [path, target] of [
    ["l", "/etc/passwd"],
    ["l", ".."],
    ["a/l", "../../x"],
    ["a/l", "b/../../../repo/x"],
    ["l", "/repository"],
    ["l", ".git/hooks"],
    ["a/l", "../.vscode"],
  ] as const)
    assert.equal(link(path, target), "dangerous", target);
  for (const [path, target] of [
    ["l", "a"],
    ["a/b/l", "../../c"],
    ["l", "/repo/a"],
    ["l", "/repo"],
    ["l", "a/../b"],
  ] as const)
    assert.equal(link(path, target), undefined, target);
});

test("special files and set-user-id programs are dangerous, and a new program needs a look", () => {
  assert.equal(tierOf({ path: "p", kind: "odd" }), "dangerous");
  assert.equal(tierOf({ path: "s", mode: 0o4755 }), "dangerous");
  assert.equal(tierOf({ path: "s", mode: 0o2755 }), "dangerous");
  assert.equal(tierOf({ path: "run", mode: 0o755 }), "look");
  assert.equal(tierOf({ path: "run", what: "modified", mode: 0o755, oldMode: 0o644 }), "look");
  assert.equal(tierOf({ path: "run", what: "modified", mode: 0o755, oldMode: 0o755 }), undefined);
  assert.equal(tierOf({ path: "folder", kind: "folder", mode: 0o755 }), undefined);
});

test("a new repository is reported once; commits in an existing one need a look", () => {
  const nested = handoffOf(all("sub/.git/HEAD sub/.git/hooks/x sub/.git/config sub/a"), "/repo");
  assert.deepEqual(
    nested.map(({ path, tier }) => [path, tier]),
    [["sub/.git", "dangerous"]],
  );
  const commit = handoffOf(all(".git/objects/ab/cd .git/refs/heads/main .git/index .git/logs/HEAD"), "/repo");
  assert.deepEqual(
    commit.map(({ path, tier }) => [path, tier]),
    [[".git", "look"]],
  );
  const bare = handoffOf(all("x/HEAD x/config x/hooks/post-update"), "/repo");
  assert.deepEqual(
    bare.map(({ path, tier }) => [path, tier]),
    [["x", "dangerous"]],
  );
});

test("a deleted file is not reported, unless it restricted something", () => {
  assert.deepEqual(["Makefile", ".vscode/tasks.json", ".git/hooks/x", "node_modules/a"].map(gone), [
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual([".harnessignore", ".harness/config.toml"].map(gone), ["dangerous", "dangerous"]);
});

test("in a package.json only scripts and dependencies matter, and the changed ones are named", () => {
  assert.equal(told({ name: "a" }, { name: "b", description: "x" }), undefined);
  assert.equal(
    told({ scripts: { a: "1", b: "2" } }, { scripts: { a: "1", b: "3", postinstall: "x" } }),
    "npm runs its scripts; changed: b, postinstall",
  );
  assert.equal(told({}, { dependencies: { x: "1" } }), "changed: dependencies");
  assert.equal(told({}, "{not json"), "npm runs its scripts, and what it depends on");
  assert.equal(told(undefined, { scripts: { a: "1" } }), "npm runs its scripts; changed: a");
});

test("dangerous entries come first, then by path", () => {
  const paths = ["z/.envrc", "Makefile", "a.mk", ".husky/x"];
  const ordered = handoffOf(
    paths.map((path) => ({ path, what: "added" as const, kind: "file" as const })),
    "/repo",
  );
  assert.deepEqual(
    ordered.map(({ path }) => path),
    [".husky/x", "z/.envrc", "Makefile", "a.mk"],
  );
});

test("when space is limited the last entries of each tier are left out and counted, and no dangerous one for a lesser one", () => {
  const looks = Array.from({ length: 500 }, (_, at) => `a/${at}/Makefile`);
  const paths = [...looks, "node_modules/x/1", "node_modules/x/2", "z/.envrc", "z/1/.envrc"];
  const changes = paths.map((path) => ({ path, what: "added" as const, kind: "file" as const }));
  const { handoff, left } = handoffWithin(changes, "/repo", 2000);
  assert.deepEqual(
    handoff.slice(0, 2).map(({ path }) => path),
    ["z/.envrc", "z/1/.envrc"],
  );
  assert.deepEqual(left, { dangerous: 0, look: 501 - (handoff.length - 2) });
  assert.ok(JSON.stringify(handoff).length < 4000);
});

const pathsOf = (paths: string): readonly string[] => handoffOf(all(paths), "/repo").map(({ path }) => path);

test("a bare repository is recognised by its contents, in any letter case; a lone HEAD is not one", () => {
  assert.deepEqual(pathsOf("x/y/head x/y/Objects/ab/c x/y/refs/heads/m"), ["x/y"]);
  assert.deepEqual(pathsOf("HEAD config"), ["HEAD"]);
  assert.deepEqual(pathsOf("x/HEAD y/config x/objects/a x/sub/refs/b"), []);
});

test("a link with an unknown target counts as dangerous", () => {
  assert.equal(tierOf({ path: "l", kind: "link", target: null }), "dangerous");
  assert.equal(tierOf({ path: "l", kind: "link", target: "a" }), undefined);
});
