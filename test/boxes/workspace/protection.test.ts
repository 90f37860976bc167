import assert from "node:assert/strict";
import { chown, link, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import test from "node:test";
import { findProtected } from "../../../src/boxes/workspace/protection.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { git, mkfifo, noGit, repository } from "./repository.ts";

// own process: it starts many programs, and each start costs by the memory of the process

/** The protection of `root` with paths relative to the scratch folder. */
async function found(home: Scratch, root = "w") {
  const { readOnly, pinned, outside, warnings } = await findProtected(home.at(root));
  const relative = (paths: readonly string[]): readonly string[] =>
    paths.map((file) => path.relative(home.path, file));
  return {
    readOnly: relative(readOnly).toSorted(),
    pinned: relative(pinned),
    outside: relative(outside),
    warnings: warnings.map((text) => text.replaceAll(home.path, "")),
  };
}

const nothing = { readOnly: [], pinned: [], outside: [], warnings: [] };

test("names are protected at the top and, where they take effect there, below; ordinary files are not", async () => {
  await using home = await scratch({
    "w/.envrc": "",
    "w/.bashrc": "",
    "w/sub/.bashrc": "",
    "w/sub/deep/.vscode/tasks.json": "",
    "w/sub/deep/.vscode/.mcp.json": "",
    "w/x.Code-Workspace": "",
    "w/.aider.conf.yml": "",
    "w/src/git/config/hooks": "",
    "w/.gitignore": "",
  });
  assert.deepEqual(await found(home), {
    ...nothing,
    readOnly: ["w/.aider.conf.yml", "w/.bashrc", "w/.envrc", "w/sub/deep/.vscode", "w/x.Code-Workspace"],
    pinned: ["w/sub", "w/sub/deep"],
  });
});

test(
  "a repository, a nested one and a bare one are protected, and in dependencies only repositories",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "w/node_modules/p/.vscode/x": "" });
    repository(home.at("w"));
    repository(home.at("w/a/nested"));
    repository(home.at("w/node_modules/p"));
    git(home.path, "init", "-q", "--bare", home.at("w/fixtures/bare"));
    assert.deepEqual(await found(home), {
      ...nothing,
      readOnly: ["w/.git", "w/a/nested/.git", "w/fixtures/bare", "w/node_modules/p/.git"],
      pinned: ["w/a", "w/fixtures", "w/node_modules", "w/a/nested", "w/node_modules/p"],
    });
  },
);

test("a name that is obeyed only in a folder of a certain name is protected there, and watched if it is missing", async () => {
  await using home = await scratch({
    "w/.github/hooks/a.json": "",
    "w/.github/workflows/a.yml": "",
    "w/hooks/config.toml": "",
    "w/sub/.config/mise/config.toml": "",
    "w/sub/mise/config.toml": "",
    "w/sub/mise/x": "",
  });
  assert.deepEqual(await found(home), {
    ...nothing,
    readOnly: ["w/.github/hooks", "w/sub/.config/mise", "w/sub/mise/config.toml"],
    pinned: ["w/.github", "w/sub", "w/sub/.config", "w/sub/mise"],
  });
  const { absent } = await findProtected(home.at("w"));
  const has = (name: string): boolean => absent.includes(home.at("w", name));
  assert.deepEqual([".github/hooks", ".config/mise", "mise/config.toml"].map(has), [false, true, true]);
});

test("a folder has no say in what is protected at the top of a workspace of its name", async () => {
  await using home = await scratch({ ".github/hooks/a.json": "" });
  const { readOnly } = await findProtected(home.at(".github"));
  assert.deepEqual(readOnly, []);
});

test("missing protected names are watched, existing ones are not", async () => {
  await using home = await scratch({ "w/.ENVRC": "", "w/.claude/x": "" });
  const { absent } = await findProtected(home.at("w"));
  const has = (name: string): boolean => absent.includes(home.at("w", name));
  assert.deepEqual([".git", ".harness", ".aider*", ".envrc", ".claude"].map(has), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

test("a linked worktree also protects the main repository outside", { skip: noGit }, async () => {
  await using home = await scratch();
  repository(home.at("main"));
  git(home.at("main"), "worktree", "add", "-q", home.at("w"));
  assert.deepEqual(await found(home), { ...nothing, readOnly: ["w/.git"], outside: ["main/.git"] });
});

test("a worktree inside its own main repository needs nothing outside", { skip: noGit }, async () => {
  await using home = await scratch();
  repository(home.at("w"));
  git(home.at("w"), "worktree", "add", "-q", home.at("w/trees/one"));
  assert.deepEqual(await found(home), {
    ...nothing,
    readOnly: ["w/.git", "w/trees/one/.git"],
    pinned: ["w/trees", "w/trees/one"],
  });
});

test("a submodule is protected inside its parent and as the workspace itself", { skip: noGit }, async () => {
  await using home = await scratch();
  repository(home.at("library"));
  repository(home.at("w"));
  git(home.at("w"), "submodule", "--quiet", "add", home.at("library"), "lib");
  assert.deepEqual(await found(home), {
    ...nothing,
    readOnly: ["w/.git", "w/.gitmodules", "w/lib/.git"],
    pinned: ["w/lib"],
  });
  assert.deepEqual(await found(home, "w/lib"), {
    ...nothing,
    readOnly: ["w/lib/.git"],
    outside: ["w/.git/modules/lib"],
  });
});

test("a separate git directory is mounted only if it names this worktree", { skip: noGit }, async () => {
  await using home = await scratch();
  git(home.path, "init", "-q", `--separate-git-dir=${home.at("apart")}`, home.at("w"));
  const unknown = await found(home);
  assert.deepEqual(unknown.outside, []);
  assert.match(unknown.warnings.join(), /apart does not name this worktree/);
  git(home.at("w"), "config", "core.worktree", home.at("w"));
  assert.deepEqual(await found(home), { ...nothing, readOnly: ["w/.git"], outside: ["apart"] });
});

test(
  "a separate git directory inside the workspace is protected, also under another name",
  { skip: noGit },
  async () => {
    await using home = await scratch();
    git(home.path, "init", "-q", `--separate-git-dir=${home.at("w/store")}`, home.at("w/tree"));
    assert.deepEqual((await found(home)).readOnly, ["w/store", "w/tree/.git"]);
  },
);

for (const [what, pointer, why] of [
  ["the root of the file system", "/", /is not a git directory/],
  ["a folder with keys", "../keys", /keys is not a git directory/],
  ["another repository", "../other/.git", /does not name this worktree/],
  ["a worktree of another folder", "../other/.git/worktrees/wt", /does not name this worktree/],
  ["a path with a line break", "../keys\n/x", /is not a gitdir line/],
] as const)
  test(`a pointer to ${what} is reported and not mounted`, { skip: noGit }, async () => {
    await using home = await scratch({ "keys/id": "k", "w/.git": `gitdir: ${pointer}\n` });
    repository(home.at("other"));
    git(home.at("other"), "worktree", "add", "-q", home.at("wt"));
    const { readOnly, outside, warnings } = await found(home);
    assert.deepEqual([readOnly, outside], [["w/.git"], []]);
    assert.match(warnings.join("\n"), why);
  });

test("a git directory whose commondir leads outside mounts nothing", { skip: noGit }, async () => {
  await using home = await scratch({
    "w/.git/HEAD": "ref: refs/heads/main\n",
    "w/.git/commondir": "../../other/.git\n",
  });
  repository(home.at("other"));
  const { outside, warnings } = await found(home);
  assert.deepEqual(outside, []);
  assert.match(warnings.join("\n"), /other\/\.git, which is not mounted/);
});

test(
  "files, hooks and scripts named in the configuration are protected, and missing ones are watched",
  { skip: noGit },
  async () => {
    await using home = await scratch({
      "w/conf/git.inc": "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = later.inc\n",
      "w/tools/hooks/pre-commit": "",
      "w/tools/clean.sh": "",
      "w/tools/other.sh": "",
      "w/scripts/pre-push": "",
      "w/test/x": "",
    });
    repository(home.at("w"));
    git(home.at("w"), "config", "include.path", "../conf/git.inc");
    git(home.at("w"), "config", "filter.x.clean", "sh -c 'tools/clean.sh %f'");
    git(home.at("w"), "config", "alias.t", "!make test");
    await symlink("../../scripts/pre-push", home.at("w/.git/hooks/pre-push"));
    const { readOnly } = await found(home);
    assert.deepEqual(readOnly, [
      "w/.git",
      "w/conf/git.inc",
      "w/scripts/pre-push",
      "w/tools/clean.sh",
      "w/tools/hooks",
    ]);
    const { absent } = await findProtected(home.at("w"));
    assert.ok(absent.includes(home.at("w/conf/later.inc")));
  },
);

const plant: Readonly<Record<string, (file: string, home: Scratch) => Promise<unknown>>> = {
  "is a link": (file) => symlink("/nonexistent", file),
  "is a FIFO": async (file) => mkfifo(file),
  "is a socket": (file) =>
    new Promise<void>((resolve) => {
      const server = createServer().listen(file, resolve);
      server.unref();
    }),
  "has 2 names": async (file, home) => {
    await writeFile(home.at("w/notes.txt"), "");
    await link(home.at("w/notes.txt"), file);
  },
};

for (const [why, make] of Object.entries(plant))
  for (const name of [".git", ".envrc"])
    test(`${name} that ${why} is refused`, async () => {
      await using home = await scratch({ "w/x/y": "" });
      await make(home.at("w/x", name), home);
      const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
      assert.equal(exit, 6);
      assert.ok(message.includes(`${home.at("w/x", name)} is a protected path and ${why}`), message);
    });

const notRoot = process.getuid?.() === 0 ? false : "only root gives files away";

test("a protected path of another owner is refused", { skip: notRoot }, async () => {
  await using home = await scratch({ "w/.vscode/x": "" });
  await chown(home.at("w/.vscode"), 4321, 4321);
  assert.match((await refusalOf(() => findProtected(home.at("w"))))[1], /belongs to uid 4321/);
});

test(
  "paths in the workspace that an enclosing repository names are protected, existing or not",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "up/w/tools/fsm": "", "up/w/tools/plain": "", "up/hooks/x": "" });
    repository(home.at("up"));
    git(home.at("up"), "config", "core.hooksPath", "w/hooks");
    git(home.at("up"), "config", "core.fsmonitor", "w/tools/fsm");
    assert.deepEqual(await found(home, "up/w"), {
      ...nothing,
      readOnly: ["up/w/tools/fsm"],
      pinned: ["up/w/tools"],
    });
    const { absent } = await findProtected(home.at("up/w"));
    assert.ok(absent.includes(home.at("up/w/hooks")));
    git(home.at("up"), "config", "core.hooksPath", "w");
    assert.match((await refusalOf(() => findProtected(home.at("up/w"))))[1], /core\.hooksPath/);
  },
);

test(
  "a bare repository as the workspace is refused, and so is a pointer or hooks path to the workspace itself",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "p/.git": "gitdir: .\n" });
    git(home.path, "init", "-q", "--bare", home.at("b"));
    repository(home.at("h"));
    git(home.at("h"), "config", "core.hooksPath", ".");
    for (const [root, why] of [
      ["b", /bare git repository/],
      ["p", /the workspace itself/],
      ["h", /as a whole/],
    ] as const)
      assert.match((await refusalOf(() => findProtected(home.at(root))))[1], why);
  },
);

test("names with line breaks, commas and quotes are allowed, one that is not UTF-8 is refused", async () => {
  await using home = await scratch({ "w/two\nlines, \"q\" 'x':y/.envrc": "" });
  assert.deepEqual((await found(home)).readOnly, ["w/two\nlines, \"q\" 'x':y/.envrc"]);
  const odd = Buffer.concat([Buffer.from(home.at("w/odd")), Buffer.from([0xff, 0xfe])]);
  await mkdir(odd);
  assert.equal((await found(home)).readOnly.length, 1);
  await mkdir(Buffer.concat([odd, Buffer.from("/.git")]));
  assert.match((await refusalOf(() => findProtected(home.at("w"))))[1], /not valid UTF-8/);
});

test("a git configuration that cannot be read or is a link into the tree is refused", async () => {
  for (const [text, target, why] of [
    ["[core\n", undefined, /could not be read as git configuration/],
    ["", "../conf", /is reached through a link/],
  ] as const) {
    await using home = await scratch({ "w/.git/HEAD": "ref: refs/heads/main\n", "w/conf": "[core]\n" });
    if (target === undefined) await home.write("w/.git/config", text);
    else await symlink(target, home.at("w/.git/config"));
    assert.match((await refusalOf(() => findProtected(home.at("w"))))[1], why);
  }
});

for (const [what, files, why] of [
  ["a commondir of two lines", { "w/.git/commondir": "../a\n/b\n" }, /commondir is .* exactly one line/],
  [
    "a commondir too large to be read",
    { "w/.git/commondir": `x${"\n".repeat(2 ** 20)}` },
    /exactly one line/,
  ],
  ["a pointer into the tree, over a line break", { "w/n/.git": "gitdir: ../a\n/b\n" }, /line break/],
  ["a setting with too many words", { "w/.git/config": `[alias]\n\tx = "!${words(20_000)}"\n` }, /words/],
  [
    "a configuration too large to be read",
    { "w/.git/config": `#${"x".repeat(2 ** 20)}\n` },
    /could not be read/,
  ],
] as const)
  test(`${what} is refused, because git would use it`, async () => {
    await using home = await scratch({
      "w/.git/HEAD": "ref: refs/heads/main\n",
      "w/a\n/b/HEAD": "",
      ...files,
    });
    const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
    assert.deepEqual([exit, why.test(message)], [6, true], message);
  });

function words(many: number): string {
  return Array.from({ length: many }, (_, index) => index).join(" ");
}

test("all hooks, script words and included files are protected, however many or deep, and circular includes end", async () => {
  const hooks = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`w/.git/hooks/a${index}`, ""]));
  const circle = "[include]\n\tpath = one.inc\n\tpath = two.inc\n\tpath = deep0.inc\n";
  const chain = Array.from({ length: 15 }, (_, at): readonly [string, string] => [
    `w/deep${at}.inc`,
    `[include]\n\tpath = deep${at + 1}.inc\n`,
  ]);
  await using home = await scratch({
    ...hooks,
    ...Object.fromEntries(chain),
    "w/.git/HEAD": "ref: refs/heads/main\n",
    "w/.git/config": `[alias]\n\tx = "!${words(100)} tools/last.sh"\n[include]\n\tpath = ../one.inc\n[core]\n\thooksPath = ":(optional)own"\n`,
    "w/one.inc": circle,
    "w/two.inc": circle,
    "w/tools/last.sh": "",
    "w/tools/hook": "",
    "w/own/x": "",
  });
  await symlink("../../tools/hook", home.at("w/.git/hooks/zz-last"));
  const { readOnly } = await findProtected(home.at("w"));
  for (const name of ["tools/last.sh", "tools/hook", "one.inc", "two.inc", "deep14.inc", "own"])
    assert.ok(readOnly.includes(home.at("w", name)), name);
});
