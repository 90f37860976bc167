import assert from "node:assert/strict";
import test from "node:test";
import { spawnSync } from "node:child_process";
import {
  commitPlan,
  type CommitTarget,
  gitArgv,
  type GitWords,
  readGitWords,
  refusedKeys,
} from "../../../src/boxes/workspace/commit-plan.ts";
import { parseGitConfig } from "../../../src/boxes/workspace/git-directory.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { shellText } from "../../../src/policy/shell/shell-syntax.ts";
import { fc, many } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";

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
  test(`in ${JSON.stringify(config)} ${keys.length} keys are refused`, () =>
    assert.deepEqual(refused(config), keys));

test("a submodule's core.worktree may point to itself", () => {
  const place = { gitDir: "/w/.git/modules/s", worktree: "/w/s" };
  assert.deepEqual(refused("[core]\n worktree = ../../../s\n", place), []);
});

test("only the git directory is writable, except for the parts of it that git executes later", () => {
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

test("a linked worktree's own part is writable inside the read-only list of worktrees", () => {
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
  test(`git ${JSON.stringify(args)} is accepted, after the options that disable hooks and programs`, () => {
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

test("a configuration that runs programs or cannot be read is refused with the key", async () => {
  assert.match((await plan("[alias]\n x = !y\n"))[1], /holds alias\.x$/);
  assert.match((await plan("[alias\n"))[1], /could not be read/);
});

// own process: it starts many programs, and each start costs by the memory of the process

/** What the reader says; undefined for what it refuses. */
function read(verb: string, words: readonly string[]): GitWords | undefined {
  try {
    return readGitWords(verb, words);
  } catch {
    return undefined;
  }
}

/** All options of `git commit` and `git add`, as `git rev-parse --parseopt` takes them. */
const SPECS: Readonly<Record<string, string>> = {
  commit: `git commit
--
q,quiet x
v,verbose x
F,file= x
author= x
date= x
m,message= x
c,reedit-message= x
C,reuse-message= x
fixup= x
squash= x
reset-author x
trailer= x
s,signoff x
t,template= x
e,edit x
cleanup= x
status x
S,gpg-sign? x
a,all x
i,include x
interactive x
p,patch x
o,only x
n,no-verify x
dry-run x
short x
branch x
ahead-behind x
porcelain x
long x
z,null x
amend x
no-post-rewrite x
u,untracked-files? x
pathspec-from-file= x
pathspec-file-nul x
allow-empty x
allow-empty-message x
`,
  add: `git add
--
n,dry-run x
v,verbose x
i,interactive x
p,patch x
e,edit x
f,force x
u,update x
renormalize x
N,intent-to-add x
A,all x
ignore-removal x
refresh x
ignore-errors x
ignore-missing x
sparse x
chmod= x
pathspec-from-file= x
pathspec-file-nul x
`,
};

/** git's own reader of options, over the same options: what it makes of each list of words, null where it refuses. */
async function parsedByGit(
  verb: string,
  lists: readonly (readonly string[])[],
): Promise<readonly (readonly string[] | null)[]> {
  await using place = await scratch({ spec: SPECS[verb] ?? "" });
  const script = `words() {
  if shown=$(git rev-parse --parseopt --stuck-long -- "$@" <"$SPEC" 2>/dev/null); then
    eval "$shown"; printf '%s\\0' "$@" "$END"
  else printf '%s\\0' "$REFUSED" "$END"; fi
}
${lists.map((words) => `words ${shellText(words)}\n`).join("")}`;
  const env = { PATH: process.env["PATH"], SPEC: place.at("spec"), END: "\x01end", REFUSED: "\x01refused" };
  const { stdout } = spawnSync("sh", { input: script, env, encoding: "utf8" });
  return stdout
    .split(`${env.END}\0`)
    .slice(0, -1)
    .map((part) => (part === `${env.REFUSED}\0` ? null : part.split("\0").slice(0, -1)));
}

const LETTERS = {
  commit: { a: "all", q: "quiet", v: "verbose", n: "no-verify", s: "signoff", m: "message" },
  add: { A: "all", u: "update", f: "force", v: "verbose", n: "dry-run", N: "intent-to-add" },
} as const;

/** As git prints it with --stuck-long: each option with its value, then `--` and the paths. */
function asGit(verb: "add" | "commit", { options, paths }: GitWords): readonly string[] {
  const longs = new Map<string, string>(Object.entries(LETTERS[verb]));
  const printed = options.map(([name, value]) => {
    const long = `--${longs.get(name) ?? name}`;
    return value === null ? long : `${long}=${value}`;
  });
  return [...printed, "--", ...paths];
}

const PIECES = {
  commit: `-m -am -mmsg -qm -qm-- -m-- -- -F -Fx --file --fil=x --mess --message --message= --message=x --message=-- --messag=y
    --amend --amen -a -aq -v -n -s --author --author=A --date -S -Skey -u -uno --no-edit --edit -e -C -c -t --template=x
    --fixup --fixup=HEAD --squash --trailer --trailer=a:b --pathspec-from-file --pathspec-from-file=x --cleanup
    --cleanup=verbatim --end-of-options --no-verify -p --interactive --dry-run --only -o - x file -z --message=a=b -m= -ma=b
    --no-message --no-all --no-author -qav -qa-m -a=x --all=x --signoff`,
  add: "-A -u -f -N -n -v -fA -Av -p -i -e --edit --all --al --chmod --chmod=+x +x --chm=+x --force --pathspec-from-file=x -- - x --no-all --renormalize --sparse -Aperm --refresh --ignore-errors --dry-run --upd --end-of-options",
};

for (const verb of ["commit", "add"] as const)
  test(`the options of git ${verb} are read as git reads them`, { skip: noGit }, async () => {
    const word = fc.constantFrom(...PIECES[verb].trim().split(/\s+/), "");
    const lists = fc.sample(fc.array(word, { minLength: 1, maxLength: 5 }), 400);
    const compared = lists.flatMap((words) => {
      const ours = read(verb, words);
      return ours === undefined ? [] : [{ words, ours: asGit(verb, ours) }];
    });
    assert.ok(compared.length > 40, `only ${compared.length} were compared`);
    const theirs = await parsedByGit(
      verb,
      compared.map(({ words }) => words),
    );
    assert.deepEqual(
      compared.map(({ words }, at) => ({ words, ours: theirs[at] })),
      compared,
    );
  });

test(
  "no accepted commit reads a file or has another message than the one checked",
  { skip: noGit },
  async () => {
    await using place = await scratch({ "trap/x": "TRAP\n", x: "TRAP\n" });
    const work = repository(place.at("w"));
    await place.write("w/x", "TRAP\n");
    await place.write("w/file", "TRAP\n");
    git(work, "add", "-A");
    git(work, "commit", "-qm", "TRAP files are in");
    const word = fc.constantFrom(
      ..."-m -am -mmsg -qm -- -F -Fx --fil=x --mess --message= --message=y -a -q -t x - -C HEAD -e --template=x --no-verify".split(
        " ",
      ),
    );
    let made = 0;
    fc.assert(
      fc.property(fc.array(word, { minLength: 2, maxLength: 5 }), (words) => {
        const ours = read("commit", words);
        const messages = ours?.options.flatMap(([name, value]) =>
          (name === "m" || name === "message") && value !== null ? [value] : [],
        );
        if (ours === undefined || messages === undefined || messages.length === 0) return;
        const { status } = spawnSync(
          "git",
          [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "core.editor=false",
            "-c",
            "commit.cleanup=verbatim",
            "commit",
            "--allow-empty",
            "--allow-empty-message",
            ...words,
          ],
          { cwd: work, env: { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" } },
        );
        if (status !== 0) return;
        made += 1;
        // How git joins empty messages is not the matter here.
        const said = git(work, "log", "-1", "--format=%B").split(/\n+/);
        assert.deepEqual(
          said.filter((part) => part !== ""),
          messages.filter((text) => text !== ""),
          JSON.stringify(words),
        );
      }),
      { numRuns: many(150) },
    );
    assert.ok(made > 10, `only ${made} commits were made`);
  },
);

for (const [words, why] of [
  [["-m", "--", "-F", "x"], /-F is not among the options/],
  [["--mess", "x"], /--mess is not among .*write it out: --message/],
  [["--fil=x"], /--fil=x is not among/],
  [["-S"], /-S is not among/],
  [["-uall"], /-uall is not among/],
  [["-m"], /-m has no value/],
  [["--amend=x"], /amend takes no value/],
  [["-qaF", "x"], /-qaF is not among/],
  [["file", "-e"], /-e is not among/],
] as const)
  test(`git commit ${words.join(" ")} is refused with the reason`, () => {
    assert.throws(() => readGitWords("commit", words), { message: why });
  });

test("option values are read as git reads them, and nothing after -- is an option", () => {
  assert.deepEqual(readGitWords("commit", ["-am", "--", "x", "--", "-F"]), {
    options: [
      ["a", null],
      ["m", "--"],
    ],
    paths: ["x", "-F"],
  });
  assert.throws(() => readGitWords("add", ["--chmod=u+s", "x"]), { message: /takes no such value/ });
});
