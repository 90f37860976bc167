import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgramTable } from "../../../src/policy/programs/program-models.ts";
import { tells, told } from "./told.ts";

tells({
  "git add src": "ask; read src; repository record; code settings",
  "git commit -am 'rm -rf /'": "ask; repository record; code settings",
  "git commit -F /etc/passwd": "ask; read /etc/passwd; repository record; code settings",
  "git commit --amend --no-edit": "ask; repository local; repository record; code settings",
  "git commit -S -m a": "ask; option.unknown -S; repository record; code settings",
  "git checkout main": "ask; code settings; repository local",
  "git checkout -b a": "ask; code settings; repository local",
  "git checkout -B a": "ask; repository lost; code settings; repository local",
  "git checkout -- src/a.ts": "ask; code settings; repository lost; write src/a.ts",
  "git checkout .": "ask; code settings; repository lost; write .",
  "git checkout -f main": "ask; repository lost; code settings; repository local",
  "git checkout HEAD~1 -- .husky/pre-commit": "deny; code settings; repository lost; write .husky/pre-commit",
  "git restore --staged .": "ask; code settings; repository local",
  "git restore src/a.ts": "ask; code settings; repository lost; write src/a.ts",
  "git restore -SW src/a.ts": "ask; code settings; repository lost; write src/a.ts",
  "git switch -c a": "ask; repository local; code settings",
  "git switch --discard-changes main": "ask; repository lost; repository local; code settings",
  "git branch a": "ask; code settings; repository local",
  "git branch -v a": "ask; code settings; repository local",
  "git branch -D a": "ask; repository lost; code settings; repository local",
  "git tag v1": "ask; code settings; repository local",
  "git tag -s v1": "ask; option.unknown -s; code settings; repository local",
  "git stash": "ask; repository local; code settings",
  "git stash pop": "ask; repository local; code settings",
  "git stash drop": "ask; repository lost; code settings",
  "git reset HEAD~1": "ask; repository local; code settings",
  "git clean -d": "ask; code settings; repository lost",
  "git clean -nd --no-dry-run": "ask; repository lost; code settings",
  "git rm --cached -r .": "ask; code settings; repository local",
  "git mv a b": "ask; code settings; repository local; delete a; write b",
  "git worktree add ../a": "ask; write /home/dev/a; repository local; code settings",
  "git worktree remove -f a": "ask; delete -f -r a; code settings; repository lost",
  "git merge a": "ask; repository local; code settings",
  "git bisect run git status": "ask; code settings; repository local",
  "git gc": "ask; code settings; repository local",
  "git apply a.patch": "ask; read a.patch; code settings; write .",
  "git init ../a": "ask; write /home/dev/a; repository local; code settings",
  "git difftool -x id": "ask; read /etc/passwd; code project; code settings",
  "git lfs ls-files": "allow; code settings",
  "git gui": "ask; operand.unknown git gui",
});

tells({
  "git reset --hard": "deny; repository rewritten; repository local; code settings",
  "git reset --har": "deny; repository rewritten; repository local; code settings",
  "git clean -xdf": "deny; code settings; repository rewritten",
  "git gc --prune=now": "deny; code settings; repository rewritten",
  "git prune": "deny; code settings; repository rewritten",
  "git update-ref -d refs/heads/a": "deny; code settings; repository rewritten",
  "git reflog expire --all": "deny; code settings; repository rewritten",
  "git filter-branch HEAD": "deny; repository rewritten; code settings",
  "git filter-repo --path a": "deny; repository rewritten; code settings",
  "git rm -rf .": "deny; code settings; repository lost; delete -f -r .",
  "git mv a .git/hooks/b": "deny; code settings; repository local; delete a; write .git/hooks/b",
  "git rebase -x 'rm -rf /' main": "deny; delete -f -r /; repository local; code settings",
  "git submodule foreach 'git clean -f'":
    "deny; code settings; operand.unknown git clean -f; repository rewritten",
  "git push origin +main": "deny; repository remote; code settings; network; repository forced",
  "git push --force-with-l": "deny; repository forced; repository remote; code settings; network",
  "git push --mirror": "deny; repository forced; repository remote; code settings; network",
  "git push -uf origin main": "deny; repository forced; repository remote; code settings; network",
  "git lfs install": "deny; write .git/hooks",
});

tells({
  "git push": "ask; repository remote; code settings; network",
  "git push origin :a": "ask; repository remote; code settings; network",
  "git push https://user@example.com/a HEAD": "ask; repository remote; code settings; network example.com",
  "git push --receive-pack=id origin":
    "ask; option.unknown --receive-pack; repository remote; code settings; network",
  "git fetch": "ask; code settings; network",
  "git fetch 'ext::sh -c id'": "ask; code settings; network; option.loads-code ext::sh -c id",
  "git pull --rebase": "ask; repository local; code settings; network",
  "git clone git@example.com:a/b ../b":
    "ask; write /home/dev/b; repository local; code settings; network example.com",
  "git clone -c core.fsmonitor=id a b":
    "ask; option.unknown -c; write b; repository local; code settings; network",
  "git remote update": "ask; network; repository local; code settings",
  "git remote show origin": "ask; code settings; network",
  "git submodule update --init": "ask; network; repository local; code settings",
  "git send-email a": "ask; read a; network; code settings",
});

const COMMANDS = Object.keys(new ProgramTable().find("git")?.commands ?? {});

test("no git command is allowed with an unknown option", () => {
  const allowed = COMMANDS.filter((name) => told(`git ${name} --no-such-option`).startsWith("allow"));
  assert.deepEqual(allowed, []);
});

test("only git commands that need no repository are allowed outside the workspace", () => {
  const allowed = COMMANDS.filter((name) => told(`cd /tmp && git ${name}`).startsWith("allow"));
  assert.deepEqual(allowed, ["version", "help"]);
});

test("read-only mode is never milder", () => {
  const milder = COMMANDS.filter(
    (name) =>
      told(`git ${name} a`, "read-only").startsWith("allow") && !told(`git ${name} a`).startsWith("allow"),
  );
  assert.deepEqual(milder, []);
});
