import assert from "node:assert/strict";
import { test } from "node:test";
import { told } from "./told.ts";
const all = (table: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(table).map((command) => [command, told(command)]));

const OTHERS: Readonly<Record<string, string>> = {
  "gh --version": "allow",
  "gh pr view 1": "ask; network",
  "gh gist create .env": "ask; network; read ./.env",
  "gh extension install a/b": "ask; install gh extension install",
  "gh auth token": "ask; option.unknown gh auth",
  "gh alias list": "allow",
  "glab mr list": "ask; network",
  "hg st": "allow; config .",
  "hg --config a.b=c status": "ask; option.unknown --config; config .",
  "hg commit -m a": "ask; record hg commit; config .",
  "hg update -C tip": "ask; lost -C; local hg update; config .",
  "hg purge": "deny; rewritten hg purge; config .",
  "hg push": "ask; network; remote hg push; config .",
  "svn status": "allow; config .",
  "svn status -u": "ask; network; config .",
  "svn diff --diff-cmd id": "ask; option.unknown --diff-cmd; config .",
  "svn revert -R .": "ask; write .; lost svn revert; config .",
  "jj st": "allow; config .",
  "jj abandon": "ask; lost jj abandon; config .",
  "jj git push": "ask; network; remote jj git",
  "delta a b": "allow; read ./a; read ./b; config .",
  "delta --pager=id a b": "ask; option.unknown --pager; read ./a; read ./b; config .",
  "difft a /etc/passwd": "ask; read ./a; read /etc/passwd",
  "pre-commit run": "ask; network; project .; local pre-commit run",
  "pre-commit install": "deny; write ./.git/hooks",
  lazygit: "ask; local lazygit; config .",
  tig: "ask; local tig; config .",
  "git-lfs track '*.bin'": "ask; config .; write ./.gitattributes",
};

test("other version control is known by its commands too", () => {
  assert.deepEqual(all(OTHERS), OTHERS);
});
