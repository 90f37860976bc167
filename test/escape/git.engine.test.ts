import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { git, noGit, repository } from "../boxes/workspace/repository.ts";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, isThere } from "../fixtures/escape-cases.ts";
import type { Room } from "../fixtures/escape.ts";

/**
 * The box is over, and the user goes on with git on the host, in a copy so that the room stays as it is: nothing that
 * the box left may run. What the cases plant does no more than make CAN/made.
 */
async function userWorks(room: Room): Promise<void> {
  await room.leave();
  const copy = path.join(room.root, "state", "copy");
  await rm(copy, { recursive: true, force: true });
  onHost("cp", ["-a", room.W, copy], {});
  const bare = path.join(room.root, "state", "bare.git");
  tryGit("/", "init", "-q", "--bare", bare);
  await writeFile(path.join(copy, "README.md"), "edited\n");
  statusEverywhere(copy);
  for (const words of [
    ["add", "-A"],
    ["status"],
    ["diff", "HEAD"],
    ["commit", "-q", "-m", "second"],
    ["log", "-p"],
    ["checkout", "-q", "-b", "branch"],
    ["push", "-q", bare, "HEAD:refs/heads/x"],
    ["submodule", "status"],
    ["fetch", "-q", bare],
  ])
    tryGit(copy, ...words);
  assert.equal(await isThere(`${room.CAN}/made`), false, "git on the host ran what the box left");
}

/** An ordinary user does not get into every folder that a box locked, and neither does that user's git. */
function onHost(program: string, words: readonly string[], more: { readonly env?: NodeJS.ProcessEnv }): void {
  const { status } = spawnSync(program, words, { ...more, stdio: "ignore" });
  assert.ok(status === 0 || (status === 1 && process.getuid?.() !== 0), `${program} ended with ${status}`);
}

/** As if the user entered each folder, whatever its name is. */
function statusEverywhere(folder: string): void {
  const work = ["git", "-c", "safe.directory=*", "-C", "{}", "status"];
  const words = [folder, "-name", "objects", "-prune", "-o", "-type", "d", "-exec", ...work, ";"];
  const env = { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  onHost("find", words, { env });
}

function tryGit(folder: string, ...words: readonly string[]): void {
  try {
    git(folder, ...words);
  } catch {
    // Whether git is content does not matter, only what it starts.
  }
}

const HOOK = String.raw`'#!/bin/sh\ntouch {CAN}/made\n'`;
const BAIT = `'touch {CAN}/made; false'`;
const nested = (folder: string): string =>
  `mkdir -p ${folder}; git init -q ${folder}; git -C ${folder} config core.fsmonitor ${BAIT}; touch ${folder}/f; git -C ${folder} add f; git -C ${folder} -c core.fsmonitor=false -c user.name=t -c user.email=t@t commit -qm x`;
const works =
  "git status --short >/dev/null && git log --oneline | grep -q first && git diff HEAD >/dev/null";

const OWN: readonly Attack[] = [
  {
    name: "an appended hook, and another hooks folder",
    run: `printf ${HOOK} >> .git/hooks/pre-push; printf ${HOOK} > .git/hooks/pre-commit; chmod 755 .git/hooks/*; git config core.hooksPath /tmp; true`,
    denied: userWorks,
    twin: works,
    control: `printf ${HOOK} >> .git/hooks/pre-push; chmod 755 .git/hooks/*`,
  },
  {
    name: "commands in the configuration: ssh, aliases, helpers, editors, monitors, filters",
    run: `for k in core.sshCommand core.editor core.pager core.fsmonitor filter.x.clean diff.x.textconv gpg.program; do git config $k ${BAIT}; done; git remote add up git@h:x; git config alias.log '!touch {CAN}/made'; git config credential.helper '!touch {CAN}/made'; echo '* filter=x diff=x' > .gitattributes`,
    denied: userWorks,
    twin: `${works} && git config --get core.bare`,
    control: true,
  },
  {
    name: "what git uses besides its configuration: exclude, description, HEAD, index, refs, grafts",
    run: `echo '*' >> .git/info/exclude; echo x > .git/description; echo 'ref: refs/heads/other' > .git/HEAD; : > .git/index; echo x > .git/config.worktree; echo x > .git/shallow; echo /tmp > .git/objects/info/alternates; echo x > .git/commondir; git update-ref refs/heads/x HEAD; git tag x; git commit -qam x; rm -rf .git/objects; touch .git/index.lock; chmod -R 777 .git`,
    denied: (room) => {
      assert.equal(room.hostGit("status", "--short", "--", "README.md"), "");
      assert.equal(room.hostGit("for-each-ref", "refs/tags"), "");
    },
    twin: `${works} && git fsck`,
    control: true,
  },
  {
    name: "the repository swapped for the attacker's own",
    run: `mv .git .old; cp -r .git /tmp/g; rm -rf .git; git init -q; git config core.fsmonitor ${BAIT}; mv sub/.git sub/g; git init -q sub; git -C sub config core.fsmonitor ${BAIT}`,
    denied: userWorks,
    twin: `cp -r .git /tmp/copy && git --git-dir=/tmp/copy config core.fsmonitor false && git --git-dir=/tmp/copy log`,
    control: true,
  },
  {
    name: "a filter in .gitattributes, with its command in a nested repository",
    run: `echo '* filter=x diff=x' > .gitattributes; ${nested("n")}; git -C n config filter.x.clean ${BAIT}; echo '* filter=x' > n/.gitattributes`,
    denied: userWorks,
    twin: "echo '*.png binary' > .gitattributes",
    allowed: async (room) => assert.ok(await isThere(room.at(".gitattributes"))),
    control: true,
  },
];

const BELOW: readonly Attack[] = [
  {
    name: "nested repositories at several depths, for the user's next git add",
    run: ["n", "a/b/c/d", "node_modules/x", "docs/.hidden/y"].map(nested).join("\n"),
    denied: userWorks,
    twin: "mkdir -p a/b/c && touch a/b/c/f",
    control: true,
  },
  {
    name: "a bare layout without the name .git, for the user's cd",
    run: `mkdir -p docs; git init -q --bare docs/b; git -C docs/b config core.bare false; git -C docs/b config core.worktree .; git -C docs/b config core.fsmonitor ${BAIT}`,
    denied: userWorks,
    twin: "mkdir -p docs/b/refs && touch docs/b/HEAD",
    allowed: async (room) => {
      await room.leave();
      assert.ok(await isThere(room.at("docs/b/HEAD")));
    },
    control: true,
  },
  {
    name: "a pointer file to a prepared git directory",
    run: `${nested("n")}; mkdir m; mv n/.git m/dir; echo 'gitdir: ../m/dir' > n/.git; mkdir o; echo 'gitdir: {W}/m/dir' > o/.git`,
    denied: userWorks,
    twin: "echo 'gitdir: ../m/dir' > pointer.txt",
    control: true,
  },
  {
    name: "a repository in an unreadable folder, or in one whose name is not UTF-8",
    run: `${nested("n")}; ${nested("dark/x")}; chmod 0 dark/x dark; mkdir $'bad\\xff'; mv n $'bad\\xff/n'; ${nested("open")}`,
    denied: async (room) => {
      await userWorks(room);
      // What only root could read is reported.
      if (process.getuid?.() === 0) return;
      assert.match(room.warnings.join("\n"), /dark could not be searched/);
      for (const name of ["dark", "dark/x"]) await chmod(room.at(name), 0o700);
    },
    twin: "mkdir $'bad\\xff' && touch $'bad\\xff/f' && rm -r $'bad\\xff'",
    control: true,
  },
  {
    name: ".gitmodules with an update command, where there was none",
    run: `printf '[submodule "x"]\\n\\tpath = x\\n\\turl = ext::touch%% {CAN}/made\\n\\tupdate = !touch {CAN}/made\\n' > .gitmodules; mkdir -p .hg; printf '[hooks]\\nupdate = touch {CAN}/made\\n' > .hg/hgrc; mkdir .jj`,
    denied: async (room) => {
      for (const name of [".gitmodules", ".hg", ".jj"])
        assert.equal(await isThere(room.at(name)), false, name);
    },
    twin: "touch .gitignore .gitkeep",
    allowed: async (room) => assert.ok(await isThere(room.at(".gitignore"))),
    control: true,
  },
];

const ARRANGED: readonly Attack[] = [
  {
    name: "a hooks folder in the tree, named in an included file",
    before: async (room) => {
      room.hostGit("config", "include.path", "../team.gitconfig");
      await writeFile(room.at("team.gitconfig"), "[core]\n\thooksPath = team-hooks\n");
      await mkdir(room.at("team-hooks"));
    },
    run: `printf ${HOOK} > team-hooks/pre-commit; chmod 755 team-hooks/pre-commit; printf '[core]\\n\\tfsmonitor = touch {CAN}/made\\n' >> team.gitconfig; mv team-hooks th; mkdir team-hooks; printf ${HOOK} > team-hooks/pre-commit; chmod 755 team-hooks/pre-commit`,
    denied: userWorks,
    twin: works,
    control: true,
  },
  {
    name: "a configured hooks folder that does not exist yet",
    before: (room) => room.hostGit("config", "core.hooksPath", "tools/hooks"),
    run: `mkdir -p tools/hooks; printf ${HOOK} > tools/hooks/pre-commit; chmod 755 tools/hooks/pre-commit`,
    denied: userWorks,
    twin: "mkdir -p tools/other && touch tools/other/pre-commit",
    allowed: async (room) => assert.ok(await isThere(room.at("tools/other/pre-commit"))),
    control: true,
  },
  {
    name: "the hooks of husky and of a common folder",
    before: (room) => room.hostGit("config", "core.hooksPath", ".husky"),
    run: `printf ${HOOK} > .husky/pre-commit; chmod 755 .husky/pre-commit; mkdir .githooks; mv .husky .h; mkdir -p .husky; printf ${HOOK} > .husky/pre-commit; chmod 755 .husky/pre-commit`,
    denied: userWorks,
    twin: "cat .husky/pre-commit",
    control: true,
  },
  {
    name: "the git directory of a submodule",
    before: (room) => {
      const other = repository(path.join(room.root, "state", "other"));
      room.hostGit("submodule", "--quiet", "add", other, "lib");
      room.hostGit("commit", "-q", "-m", "lib");
    },
    run: `d=$(git -C lib rev-parse --git-dir); git -C lib config core.fsmonitor ${BAIT}; printf '[core]\\n\\tfsmonitor = touch {CAN}/made\\n' >> $d/config; printf ${HOOK} > $d/hooks/post-checkout; echo 'gitdir: ../x' > lib/.git; rm -rf lib; mv lib l`,
    denied: userWorks,
    twin: "git -C lib log --oneline && touch lib/made",
    control: true,
  },
  {
    name: "the repository of a linked worktree, outside the workspace",
    before: async (room) => {
      await rm(room.W, { recursive: true });
      const main = repository(path.join(room.root, "main"));
      git(main, "worktree", "add", "-q", room.W);
      await mkdir(room.at("sub"));
      room.own([main]);
    },
    run: `d=$(git rev-parse --git-common-dir); printf '[core]\\n\\tfsmonitor = touch {CAN}/made\\n' >> $d/config; git config core.fsmonitor ${BAIT}; printf ${HOOK} > $d/hooks/pre-commit; chmod 755 $d/hooks/pre-commit; mv $d $d.old; rm -rf $d`,
    denied: (room) => {
      tryGit(path.join(room.root, "main"), "status");
      tryGit(room.W, "status");
      assert.match(git(room.W, "log", "--oneline"), /first/);
    },
    twin: "git status && git log --oneline",
    control: true,
  },
  {
    name: "a repository in a folder without one",
    before: async (room) => {
      for (const name of [".git", "sub"]) await rm(room.at(name), { recursive: true });
      await mkdir(room.at("sub"));
    },
    run: `git init -q; git config core.fsmonitor ${BAIT}; mkdir .GIT2`,
    denied: userWorks,
    twin: "git init -q /tmp/r && git -C /tmp/r status",
    control: true,
  },
];

attacks([...OWN, ...BELOW, ...ARRANGED], skip || noGit);
