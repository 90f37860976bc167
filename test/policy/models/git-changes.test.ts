import assert from "node:assert/strict";
import { test } from "node:test";
import { GIT } from "../../../src/policy/models/git/git.ts";
import { tells, told } from "./told.ts";

tells({
  "git add src": "ask; read src; repository record; code config",
  "git commit -am 'rm -rf /'": "ask; repository record; code config",
  "git commit -F /etc/passwd": "ask; read /etc/passwd; repository record; code config",
  "git commit --amend --no-edit": "ask; repository local; repository record; code config",
  "git commit -S -m a": "ask; option.unknown -S; repository record; code config",
  "git checkout main": "ask; code config; repository local",
  "git checkout -b a": "ask; code config; repository local",
  "git checkout -B a": "ask; repository lost; code config; repository local",
  "git checkout -- src/a.ts": "ask; code config; repository lost; write src/a.ts",
  "git checkout .": "ask; code config; repository lost; write .",
  "git checkout -f main": "ask; repository lost; code config; repository local",
  "git checkout HEAD~1 -- .husky/pre-commit": "deny; code config; repository lost; write .husky/pre-commit",
  "git restore --staged .": "ask; code config; repository local",
  "git restore src/a.ts": "ask; code config; repository lost; write src/a.ts",
  "git restore -SW src/a.ts": "ask; code config; repository lost; write src/a.ts",
  "git switch -c a": "ask; repository local; code config",
  "git switch --discard-changes main": "ask; repository lost; repository local; code config",
  "git branch a": "ask; code config; repository local",
  "git branch -v a": "ask; code config; repository local",
  "git branch -D a": "ask; repository lost; code config; repository local",
  "git tag v1": "ask; code config; repository local",
  "git tag -s v1": "ask; option.unknown -s; code config; repository local",
  "git stash": "ask; repository local; code config",
  "git stash pop": "ask; repository local; code config",
  "git stash drop": "ask; repository lost; code config",
  "git reset HEAD~1": "ask; repository local; code config",
  "git clean -d": "ask; code config; repository lost",
  "git clean -nd --no-dry-run": "ask; repository lost; code config",
  "git rm --cached -r .": "ask; code config; repository local",
  "git mv a b": "ask; code config; repository local; delete a; write b",
  "git worktree add ../a": "ask; write /home/dev/a; repository local; code config",
  "git worktree remove -f a": "ask; delete -f -r a; code config; repository lost",
  "git merge a": "ask; repository local; code config",
  "git bisect run git status": "ask; code config; repository local",
  "git gc": "ask; code config; repository local",
  "git apply a.patch": "ask; read a.patch; code config; repository local",
  "git init ../a": "ask; write /home/dev/a; repository local; code config",
  "git difftool -x id": "ask; read /etc/passwd; code project; code config",
  "git lfs ls-files": "allow; code config",
  "git gui": "ask; operand.unknown git gui",
});

tells({
  "git reset --hard": "deny; repository rewritten; repository local; code config",
  "git reset --har": "deny; repository rewritten; repository local; code config",
  "git clean -xdf": "deny; code config; repository rewritten",
  "git gc --prune=now": "deny; code config; repository rewritten",
  "git prune": "deny; code config; repository rewritten",
  "git update-ref -d refs/heads/a": "deny; code config; repository rewritten",
  "git reflog expire --all": "deny; code config; repository rewritten",
  "git filter-branch HEAD": "deny; repository rewritten; code config",
  "git filter-repo --path a": "deny; repository rewritten; code config",
  "git rm -rf .": "deny; code config; repository lost; delete -f -r .",
  "git mv a .git/hooks/b": "deny; code config; repository local; delete a; write .git/hooks/b",
  "git rebase -x 'rm -rf /' main": "deny; delete -f -r /; repository local; code config",
  "git submodule foreach 'git clean -f'":
    "deny; code config; operand.unknown git clean -f; repository rewritten",
  "git push origin +main": "deny; repository remote; code config; network; repository forced",
  "git push --force-with-l": "deny; repository forced; repository remote; code config; network",
  "git push --mirror": "deny; repository forced; repository remote; code config; network",
  "git push -uf origin main": "deny; repository forced; repository remote; code config; network",
  "git lfs install": "deny; write .git/hooks",
});

tells({
  "git push": "ask; repository remote; code config; network",
  "git push origin :a": "ask; repository remote; code config; network",
  "git push https://user@example.com/a HEAD": "ask; repository remote; code config; network example.com",
  "git push --receive-pack=id origin":
    "ask; option.unknown --receive-pack; repository remote; code config; network",
  "git fetch": "ask; code config; network",
  "git fetch 'ext::sh -c id'": "ask; code config; network; option.loads-code ext::sh -c id",
  "git pull --rebase": "ask; repository local; code config; network",
  "git clone git@example.com:a/b ../b":
    "ask; write /home/dev/b; repository local; code config; network example.com",
  "git clone -c core.fsmonitor=id a b":
    "ask; option.unknown -c; write b; repository local; code config; network",
  "git remote update": "ask; network; repository local; code config",
  "git remote show origin": "ask; code config; network",
  "git submodule update --init": "ask; network; repository local; code config",
  "git send-email a": "ask; read a; network; code config",
});

const COMMANDS = Object.keys(GIT["git"]?.commands ?? {});

test("no command of git is allowed with an option that nobody knows", () => {
  const allowed = COMMANDS.filter((name) => told(`git ${name} --no-such-option`).startsWith("allow"));
  assert.deepEqual(allowed, []);
});

test("no command of git but those without a repository is allowed outside the workspace", () => {
  const allowed = COMMANDS.filter((name) => told(`cd /tmp && git ${name}`).startsWith("allow"));
  assert.deepEqual(allowed, ["version", "help"]);
});

test("read-only is never milder", () => {
  const milder = COMMANDS.filter(
    (name) =>
      told(`git ${name} a`, "read-only").startsWith("allow") && !told(`git ${name} a`).startsWith("allow"),
  );
  assert.deepEqual(milder, []);
});
