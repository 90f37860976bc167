import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";

const policy = new CommandPolicy();

/** The verdict of each text in workspace-write mode. */
function decided(texts: readonly string[]): readonly string[] {
  const context = { mode: "workspace-write", workspace: "/home/dev/project", home: "/home/dev" } as const;
  return texts.map((text) => `${policy.decide(text, context).decision} ${text}`);
}

const allows = (texts: readonly string[]): void =>
  assert.deepEqual(
    decided(texts),
    texts.map((text) => `allow ${text}`),
  );

const asks = (texts: readonly string[]): void =>
  assert.deepEqual(
    decided(texts),
    texts.map((text) => `ask ${text}`),
  );

test("the command after && or || is judged both for success and for failure of the one before", () => {
  allows(["x=-n; sort $x f", "cd src && cat a.ts", "cd src || exit 1; cat a.ts", "! grep -q x f && ls"]);
  asks(["x=-oout; false && x=-n; sort $x f", "x=-oout; true || x=-n || exit; sort $x f"]);
  asks(["cd ..; cd project || return; cat x/y", "cd ..; ! cd project && cat x/y"]);
});

test("a loop that changes the folder is judged in every folder that its rounds may start in", () => {
  allows(["while ls; do cat notes.txt; done", "for x in a b; do cat notes.txt; done"]);
  asks(["while ls; do cat notes.txt; cd ..; done", "for x in $(ls); do cat notes.txt; cd ..; done"]);
});

test("a redirect is judged in every folder where it may happen", () => {
  allows(["cd src; cat < a.ts"]);
  asks(["cd ..; cat < a.ts"]);
});

test("an unquoted value counts as one word only where that is certain", () => {
  allows(["x=src; cat $x/a.ts", 'for f in src/*.ts; do wc -l "$f"; done']);
  asks(["for f in src/*.ts; do sort $f; done", "x=; grep -e $x -e .env", "x=a; xb=.env; cat $x{b,c}"]);
});

test("text on stdin is known only to the one command that reads it", () => {
  allows(["echo a.ts | xargs cat"]);
  asks(["echo a-oout | { head -c1; xargs sort; }", "echo a-oout | CI=$(head -c1) xargs sort"]);
});

test("a minimal shell is trusted only where it reads the text as bash does", () => {
  allows(["sh -c 'cd src && ls | head'", "sh -c 'x=1; echo $x'", "bash -c '[[ -f x ]] && ls'"]);
  asks(["sh -c '[[ -f x ]] && ls'", "sh -c 'ls &>/dev/null'", "sh -c 'cat {a,b}'", "zsh -c ls"]);
});

test("shell options that change the meaning of words require confirmation", () => {
  allows(["set -euo pipefail; ls", "set -- a -k; ls", "bash -eu -o pipefail -c ls"]);
  asks(["set -k; ls", "set -o keyword; ls", "set -eo keyword; ls", "bash -O extglob -c ls"]);
});

test("an arithmetic test accepts only numbers", () => {
  allows(["[[ 1 -eq 2 ]]", "[[ x == y && -f z ]]"]);
  asks(["[[ x -eq 1 ]]", "[[ -v a[x] ]]", "[[ -f y || ! ( 1 -lt x ) ]]"]);
});
