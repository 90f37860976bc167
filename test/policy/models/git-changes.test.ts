import assert from "node:assert/strict";
import { test } from "node:test";
import { GIT } from "../../../src/policy/models/git/git.ts";
import { told } from "./told.ts";
const all = (table: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(table).map((command) => [command, told(command)]));

const LOCAL: Readonly<Record<string, string>> = {
  "git add src": "ask; read ./src; record git add; config .",
  "git commit -am 'rm -rf /'": "ask; record git commit; config .",
  "git commit -F /etc/passwd": "ask; read /etc/passwd; record git commit; config .",
  "git commit --amend --no-edit": "ask; local --amend; record git commit; config .",
  "git commit -S -m a": "ask; option.unknown -S; record git commit; config .",
  "git checkout main": "ask; config .; local git checkout",
  "git checkout -b a": "ask; config .; local git checkout",
  "git checkout -B a": "ask; lost -B; config .; local git checkout",
  "git checkout -- src/a.ts": "ask; config .; lost git checkout; write ./src/a.ts",
  "git checkout .": "ask; config .; lost git checkout; write .",
  "git checkout -f main": "ask; lost -f; config .; local git checkout",
  "git checkout HEAD~1 -- .husky/pre-commit": "deny; config .; lost git checkout; write ./.husky/pre-commit",
  "git restore --staged .": "ask; config .; local git restore",
  "git restore src/a.ts": "ask; config .; lost git restore; write ./src/a.ts",
  "git restore -SW src/a.ts": "ask; config .; lost git restore; write ./src/a.ts",
  "git switch -c a": "ask; local git switch; config .",
  "git switch --discard-changes main": "ask; lost --discard-changes; local git switch; config .",
  "git branch a": "ask; config .; local git branch",
  "git branch -v a": "ask; config .; local git branch",
  "git branch -D a": "ask; lost -D; config .; local git branch",
  "git tag v1": "ask; config .; local git tag",
  "git tag -s v1": "ask; option.unknown -s; config .; local git tag",
  "git stash": "ask; local git stash; config .",
  "git stash pop": "ask; local git stash pop; config .",
  "git stash drop": "ask; lost git stash drop; config .",
  "git reset HEAD~1": "ask; local git reset; config .",
  "git clean -d": "ask; config .; lost git clean",
  "git clean -nd --no-dry-run": "ask; lost --no-dry-run; config .",
  "git rm --cached -r .": "ask; config .; local git rm",
  "git mv a b": "ask; config .; local git mv; delete ./a; write ./b",
  "git worktree add ../a": "ask; write ~/a; local git worktree add; config .",
  "git worktree remove -f a": "ask; delete all forced ./a; config .; lost git worktree remove",
  "git merge a": "ask; local git merge; config .",
  "git bisect run git status": "ask; config .; local git bisect run; config .",
  "git gc": "ask; config .; local git gc",
  "git apply a.patch": "ask; read ./a.patch; config .; local git apply",
  "git init ../a": "ask; write ~/a; local git init; config .",
  "git difftool -x id": "ask; project .; config .",
  "git lfs ls-files": "allow; config .",
  "git gui": "ask; operand.unknown git gui",
};

const NEVER: Readonly<Record<string, string>> = {
  "git reset --hard": "deny; rewritten --hard; local git reset; config .",
  "git reset --har": "deny; rewritten --hard; local git reset; config .",
  "git clean -xdf": "deny; config .; rewritten git clean",
  "git gc --prune=now": "deny; config .; rewritten git gc",
  "git prune": "deny; config .; rewritten git prune",
  "git update-ref -d refs/heads/a": "deny; config .; rewritten git update-ref -d",
  "git reflog expire --all": "deny; config .; rewritten git reflog expire",
  "git filter-branch HEAD": "deny; rewritten git filter-branch; config .",
  "git filter-repo --path a": "deny; rewritten git filter-repo; config .",
  "git rm -rf .": "deny; config .; lost git rm; delete all forced .",
  "git mv a .git/hooks/b": "deny; config .; local git mv; delete ./a; write ./.git/hooks/b",
  "git rebase -x 'rm -rf /' main": "deny; delete all forced /; local git rebase; config .",
  "git submodule foreach 'git clean -f'":
    "deny; config .; operand.unknown git clean -f; config .; rewritten git clean",
  "git push origin +main": "deny; remote git push; config .; network; forced +main",
  "git push --force-with-l": "deny; forced --force-with-lease; remote git push; config .; network",
  "git push --mirror": "deny; forced --mirror; remote git push; config .; network",
  "git push -uf origin main": "deny; forced -f; remote git push; config .; network",
  "git lfs install": "deny; write ./.git/hooks",
};

const NETWORK: Readonly<Record<string, string>> = {
  "git push": "ask; remote git push; config .; network",
  "git push origin :a": "ask; remote git push; config .; network",
  "git push https://user@example.com/a HEAD": "ask; remote git push; config .; network example.com",
  "git push --receive-pack=id origin":
    "ask; option.unknown --receive-pack; remote git push; config .; network",
  "git fetch": "ask; config .; network",
  "git fetch 'ext::sh -c id'": "ask; config .; network; option.loads-code ext::sh -c id",
  "git pull --rebase": "ask; local git pull; config .; network",
  "git clone git@example.com:a/b ../b": "ask; write ~/b; local git clone; config .; network example.com",
  "git clone -c core.fsmonitor=id a b":
    "ask; option.unknown -c; write ./b; local git clone; config .; network",
  "git remote update": "ask; network; local git remote update; config .",
  "git remote show origin": "ask; config .; network",
  "git submodule update --init": "ask; network; local git submodule update; config .",
  "git send-email a": "ask; read ./a; network; config .",
};

test("changes of the repository are asked for, by what they cost", () => {
  assert.deepEqual(all(LOCAL), LOCAL);
});

test("what nothing brings back is denied", () => {
  assert.deepEqual(all(NEVER), NEVER);
});

test("what goes to other repositories reaches the network", () => {
  assert.deepEqual(all(NETWORK), NETWORK);
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
