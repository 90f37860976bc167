import assert from "node:assert/strict";
import { test } from "node:test";
import { told } from "./told.ts";
const all = (table: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(table).map((command) => [command, told(command)]));

const READING: Readonly<Record<string, string>> = {
  "git status": "allow; config .",
  "git -C src status": "allow; read ./src; config ./src",
  "git -C .. status": "ask; read ~; config ~",
  "git -C /tmp/x log": "ask; read /tmp/x; config /tmp/x",
  "cd /tmp && git status": "ask; config /tmp",
  "git log --oneline -20": "allow; config .",
  "git log --oneline -- .env": "allow; config .",
  "git log -p -- .env": "ask; config .; read ./.env",
  "git log -L 1,5:src/a.ts": "allow; config .; read ./src/a.ts",
  "git show HEAD:.env": "ask; config .; read ./.env",
  "git show 'HEAD@{10:00}:src/a.ts'": "allow; config .; read ./src/a.ts",
  "git show :2:src/a.ts": "allow; config .; read ./src/a.ts",
  "git diff main...HEAD -- ':!dist' ':(exclude).env'": "allow; config .; read ./main...HEAD",
  "git diff --no-index /etc/passwd a": "ask; config .; read /etc/passwd; read ./a",
  "git blame src/a.ts": "allow; config .; read ./src/a.ts",
  "git grep -n todo src": "allow; config .; read ./src",
  "git grep -e todo src": "allow; config .; read ./src",
  "git cat-file -p HEAD:a": "allow; config .; read ./a",
  "git branch --merged main": "allow; config .",
  "git tag -n foo": "allow; config .",
  "git remote -v": "allow; config .",
  "git stash list": "allow; config .",
  "git reflog main": "allow; config .",
  "git worktree list": "allow; config .",
  "git notes": "allow; config .",
  "git hash-object a": "allow; read ./a; config .",
  "git clean -nd": "allow; config .",
  "git apply --check a.patch": "allow; read ./a.patch; config .",
  "git symbolic-ref HEAD": "allow; config .",
  "git ls-files --others": "allow; config .",
  "git help -a": "allow",
  "git push --help": "allow",
  "git --version": "allow",
  git: "allow",
};

const OPTIONS: Readonly<Record<string, string>> = {
  "git log --output=a": "ask; write ./a; config .",
  "git diff --outp=a": "ask; option.unknown --outp; config .",
  "git diff --ext-diff": "ask; option.unknown --ext-diff; config .",
  "git diff --textconv": "ask; option.unknown --textconv; config .",
  "git diff -O/etc/passwd": "ask; read /etc/passwd; config .",
  "git log --show-signature": "ask; option.unknown --show-signature; config .",
  "git log --format='%h %G?'": "ask; config .; option.unknown --format %h %G?",
  "git branch --sort=signature": "ask; config .; option.unknown --sort signature",
  "git grep -lOvi todo": "ask; option.unknown -O; config .",
  "git grep --open-files-in-pager=id todo": "ask; option.unknown --open-files-in-pager; config .",
  "git ls-remote --upload-pa=id .": "ask; option.unknown --upload-pack; config .; network",
  "git archive -o a.tar HEAD": "ask; write ./a.tar; config .; read ./HEAD",
  "git shortlog --output=a HEAD": "ask; write ./a; config .",
  "git blame --contents=/etc/passwd a": "ask; read /etc/passwd; config .; read ./a",
  "git log --format --output=a": "ask; write ./a; config .",
  "git log --unknown": "ask; option.unknown --unknown; config .",
  "git diff *": "ask; word.leading-glob *; config .; read ./*",
  "git st": "ask; operand.unknown git st",
};

const SETTINGS: Readonly<Record<string, string>> = {
  "git -c color.ui=always diff": "allow; config .",
  "git -c core.pager=cat log": "allow; config .",
  "git -c core.pager=less log": "ask; config .; option.unknown -c core.pager=less",
  "git -c core.fsmonitor=id status": "ask; config .; option.unknown -c core.fsmonitor=id",
  "git -c x.y=z -C src status": "ask; read ./src; config ./src; option.unknown -c x.y=z",
  "git --exec-path=/x log": "ask; option.loads-code /x; config .",
  "git --git-dir=/tmp/x log": "ask; option.loads-code /tmp/x; config .",
  "git --paginate log": "ask; option.unknown --paginate; config .",
  "git --config-env=a=b log": "ask; option.unknown --config-env; config .",
  "git config --list": "allow; config .",
  "git config user.name": "allow; config .",
  "git config get user.name": "allow; config .",
  "git config user.name me": "ask; config .; local git config user.name",
  "git config core.pager less": "deny; config .; write ./.git/config",
  "git config --global alias.x '!id'": "deny; config .; write ~/.gitconfig",
  "git config --unset core.hooksPath": "deny; config .; write ./.git/config",
  "git config set core.editor id": "deny; config .; write ./.git/config",
  "git config --rename-section a alias": "deny; config .; write ./.git/config",
  "git config --system a.b c": "deny; config .; write /etc/gitconfig",
  "git config -f a b.c d": "ask; config .; write ./a",
  "git config -f /etc/passwd --list": "ask; config .; read /etc/passwd",
  "git config --edit": "ask; option.unknown --edit; config .",
  "git config --get http.extraHeader": "ask; config .; operand.unknown http.extraHeader",
};

test("git shows what is in the workspace, and asks for what lies elsewhere or holds secrets", () => {
  assert.deepEqual(all(READING), READING);
});

test("options of readers that write, run or load are named", () => {
  assert.deepEqual(all(OPTIONS), OPTIONS);
});

test("settings are read; those that git would run are neither given nor stored", () => {
  assert.deepEqual(all(SETTINGS), SETTINGS);
});
