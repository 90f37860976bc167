import assert from "node:assert/strict";
import test from "node:test";
import {
  type CommitTarget,
  commitPlan,
  gitArgv,
  refusedKeys,
} from "../../../src/boxes/protect/commit-words.ts";
import { parseGitConfig } from "../../../src/boxes/protect/git-config.ts";
import { refusalOf } from "../../fixtures/refusal.ts";

const target: CommitTarget = {
  workspace: "/w",
  worktree: "/w",
  gitDir: "/w/.git",
  commonDir: "/w/.git",
  config: ["[core]\n\trepositoryformatversion = 0\n\thooksPath = .husky\n[user]\n\tname = me\n"],
  identity: { name: "n", email: "e@e" },
};

const refused = (
  config: string,
  place: Pick<CommitTarget, "gitDir" | "worktree"> = target,
): readonly string[] => refusedKeys(parseGitConfig(config) ?? [], place);

for (const [config, ...keys] of [
  [
    '[filter "x"]\n clean = a\n smudge = b\n process = c\n required = true\n',
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "filter.x.required",
  ],
  ['[diff "x"]\n textconv = a\n command = b\n', "diff.x.textconv", "diff.x.command"],
  [
    "[core]\n sshCommand = a\n gitProxy = b\n askPass = c\n",
    "core.sshcommand",
    "core.gitproxy",
    "core.askpass",
  ],
  ["[alias]\n add = !x\n", "alias.add"],
  ["[include]\n path = ../x\n", "include.path"],
  ['[includeIf "gitdir:/"]\n path = ../x\n', "includeif.gitdir:/.path"],
  ["[core]\n worktree = /\n", "core.worktree"],
  ['[remote "o"]\n url = u\n uploadpack = x\n vcs = y\n', "remote.o.uploadpack", "remote.o.vcs"],
  ['[submodule "s"]\n url = u\n update = !x\n', "submodule.s.update"],
  ["[gpg]\n program = x\n", "gpg.program"],
  ['[trailer "x"]\n command = y\n', "trailer.x.command"],
  ["[something]\n new = y\n", "something.new"],
  ['[core]\n bare = false\n fsmonitor = x\n[branch "a.b"]\n merge = m\n vscode-merge-base = o\n'],
] as const)
  test(`of ${JSON.stringify(config)} ${keys.length} keys are refused`, () =>
    assert.deepEqual(refused(config), keys));

test("a submodule's core.worktree is its own place", () => {
  const place = { gitDir: "/w/.git/modules/s", worktree: "/w/s" };
  assert.deepEqual(refused("[core]\n worktree = ../../../s\n", place), []);
});

test("the plan: only the git directory is writable, and in it nothing that is obeyed later", () => {
  const { mounts, env, cwd } = commitPlan(target, ["commit", "-m", "x"]);
  const writable = mounts.filter((mount) => mount.writable).map((mount) => mount.path);
  assert.deepEqual(writable, ["/w/.git"]);
  for (const name of ["config", "config.worktree", "hooks", "info", "modules"])
    assert.ok(mounts.some((mount) => mount.path === `/w/.git/${name}` && !mount.writable));
  assert.equal(mounts[0]?.path, "/w");
  assert.equal(cwd, "/w");
  assert.equal(env["GIT_AUTHOR_NAME"], undefined);
  assert.equal(env["GIT_AUTHOR_EMAIL"], "e@e");
});

test("of a linked worktree its own part is writable inside the frozen list of worktrees", () => {
  const gitDir = "/main/.git/worktrees/w";
  const { mounts } = commitPlan({ ...target, gitDir, commonDir: "/main/.git" }, ["add", "."]);
  const at = (path: string): number => mounts.findIndex((mount) => mount.path === path);
  assert.ok(at("/main/.git") < at("/main/.git/worktrees") && at("/main/.git/worktrees") < at(gitDir));
  assert.deepEqual(mounts[at(gitDir)]?.writable, true);
  assert.deepEqual(mounts[at(`${gitDir}/commondir`)]?.writable, false);
});

for (const args of [
  ["add", "-A"],
  ["add", "--", "-p"],
  ["commit", "-am", "--exec=x"],
  ["commit", "--message", "-S", "--amend"],
  ["commit", "--message=a\nb", "file"],
])
  test(`git ${JSON.stringify(args)} is taken, after all that is off`, () => {
    const argv = gitArgv(args);
    assert.deepEqual(argv.slice(-args.length), args);
    assert.ok(argv.indexOf("core.hooksPath=/dev/null") < argv.indexOf(args[0] ?? ""));
  });

for (const args of [
  [],
  ["push"],
  ["-c", "core.fsmonitor=x", "add", "."],
  ["add", "-p"],
  ["add", "--edit"],
  ["add", "--pathspec-from-file=/etc/passwd"],
  ["commit", "-S", "-m", "x"],
  ["commit", "-F", "/etc/passwd"],
  ["commit", "--template=x"],
  ["commit", "--gpg-sign=x"],
  ["constructor"],
])
  test(`git ${args.join(" ")} is refused`, async () => {
    assert.equal((await refusalOf(() => gitArgv(args)))[0], 4);
  });

const plan = (config: string): Promise<readonly [number, string]> =>
  refusalOf(() => commitPlan({ ...target, config: [config] }, ["add", "."]));

test("a configuration that runs programs, or cannot be read, is refused by name", async () => {
  assert.match((await plan("[alias]\n x = !y\n"))[1], /holds alias\.x$/);
  assert.match((await plan("[alias\n"))[1], /could not be read/);
});
