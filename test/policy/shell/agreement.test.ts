// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { fc, part } from "../../fixtures/property.ts";
import { difference } from "../../../src/policy/shell/read-shell.ts";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import { readUnbash } from "../../../src/policy/shell/unbash-reader.ts";
import { judgedIn } from "../../fixtures/policy/corpus.ts";
import { show } from "../../fixtures/policy-tree.ts";
import { hereDocuments, scripts } from "../../fixtures/policy-scripts.ts";

const WRITTEN = [
  "cat <<'EOF' > a.txt\nit's $HOME\nEOF",
  'for f in src/*.ts; do wc -l "$f"; done',
  "[ -d dist ] && ls dist || echo none",
  "git show stash@{0}:src/a.ts",
  "awk -F, '{print $2}' a.csv | sort | uniq -c",
  'test -f a && echo "yes: $(date +%F)"',
  "printf '%s\\n' \"${x[@]}\"",
  'if [[ -n "$CI" ]]; then npm ci; else npm i; fi',
  'a=$(git rev-parse HEAD); echo "$a"',
  "ls {src,test}/**/*.ts",
  "echo $((2 + 3 * 4)) && (( $(a) ))",
  'while read -r l; do echo "$l"; done < in.txt',
  "diff <(sort a) <(sort b)",
  "case $1 in start) a;; stop|halt) b;; *) c;; esac",
];

/** Both trees as text where the readers differ, null where they agree or one reads nothing. */
function parted(text: string): { own: string; unbash: string } | null {
  const own = readOwn(text);
  const unbash = readUnbash(text);
  if (own.errors.length + unbash.errors.length > 0) return null;
  if (difference(own.tree, unbash.tree) === null) return null;
  return { own: show(own, true), unbash: show(unbash, true) };
}

test("both readers build the same tree for every command that should be allowed", () => {
  const commands = judgedIn("sample.jsonl", "benign/*.jsonl").filter(({ want }) => want === "allow");
  assert.ok(commands.length > 100);
  for (const { cmd } of commands) {
    const errors = [...readOwn(cmd).errors, ...readUnbash(cmd).errors];
    assert.deepEqual({ cmd, errors, parted: parted(cmd) }, { cmd, errors: [], parted: null });
  }
});

test("both readers build the same tree for every attack that both can read, except quoted static braces", () => {
  const commands = judgedIn("*/*.jsonl").filter(({ cmd }) => !/\{[^}]*["'$]/.test(cmd));
  for (const { cmd } of commands) assert.deepEqual({ cmd, parted: parted(cmd) }, { cmd, parted: null });
});

test("both readers build the same tree for what people write", () => {
  for (const text of WRITTEN) assert.deepEqual({ text, parted: parted(text) }, { text, parted: null });
});

test("both readers build the same tree for any script that both can read", () => {
  fc.assert(
    fc.property(scripts, (text) => assert.equal(parted(text), null)),
    { numRuns: part(250) },
  );
});

test("both readers build the same tree for here-documents", () => {
  fc.assert(
    fc.property(hereDocuments, (text) => assert.equal(parted(text), null)),
    { numRuns: part(250) },
  );
});

/** Texts that the first reader misreads or reads incompletely; the comparison turns each into an ask. */
const MISREAD: readonly (readonly [text: string, own: string, unbash: string])[] = [
  ["a=~/x:~/y", "[<set a=<home>/x:<home>/y>];", "[<set a=<home>/x:~/y>];"],
  ["echo a=~/x", "[echo a=<home>/x];", "[echo a=~/x];"],
  ["a={b,c}", "[<set a={b,c}>];", "[<set a=<parameter>>];"],
  ["echo {a,$x}", "[echo a <$x>];", "[echo <parameter>];"],
  ["echo {a,}", "[echo a];", "[echo a ''];"],
  ["a <(b)c", "[a <<( [b];>c];", "[a <<( [b];> c];"],
];

test("the comparison finds text that only one reader reads as bash does", () => {
  for (const [text, own, unbash] of MISREAD) {
    assert.equal(show(readOwn(text)), own);
    assert.equal(show(readUnbash(text)), unbash);
    assert.notEqual(parted(text), null);
  }
});

test("the comparison finds each kind of difference and its position", () => {
  const pairs: readonly (readonly [string, string, string, readonly [number, number]])[] = [
    ["a b", "a c", "text", [2, 3]],
    ["a b", "a  b", "extent of a word", [2, 3]],
    ["a b", "a", "number of words", [0, 3]],
    ["a; b", "a& b", "operator", [0, 1]],
    ["a; b", "a", "number of commands", [0, 4]],
    ["a | b", "a", "kind", [0, 5]],
    ["a >b", "a <b", "redirect", [2, 4]],
    ["a >b", "a", "number of redirects", [0, 4]],
    ["x=1 a", "y=1 a", "assignment", [0, 3]],
    ["x=1 a", "x=2 a", "text", [2, 3]],
    ["{ a; }", "( a  )", "kind of compound", [0, 6]],
    ["a $x", "a $y", "variable", [2, 4]],
    ["a *", "a ?", "text", [2, 3]],
    ["a *", "a x", "piece of a word", [2, 3]],
    ["a $(b)", "a `b `", "substitution", [2, 6]],
    ["a $(b)", "a $(c)", "text", [4, 5]],
    ['a "$x"', 'a  $x""'.slice(0, 6), "extent of a word", [2, 6]],
    ["for x in a; do b; done", "for y in a; do b; done", "name", [0, 22]],
  ];
  for (const [a, b, what, span] of pairs)
    assert.deepEqual(
      { a, b, found: difference(readOwn(a).tree, readOwn(b).tree) },
      { a, b, found: { what, span } },
    );
});
