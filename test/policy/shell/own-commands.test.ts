import assert from "node:assert/strict";
import test from "node:test";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import { show } from "../../fixtures/policy-tree.ts";

type Table = readonly (readonly [text: string, tree: string])[];

function check(table: Table, spans = false): void {
  for (const [text, tree] of table)
    assert.deepEqual({ text, tree: show(readOwn(text), spans) }, { text, tree });
}

test("lists and pipelines keep their operators", () => {
  check([
    ["", ""],
    [" \n# only a comment\n", ""],
    ["a && b || c; d & e\nf", "[a]&& [b]|| [c]; [d]& [e]; [f];"],
    ["a &&\n\n b;\n", "[a]&& [b];"],
    ["a | b |\n c", "[a] | [b] | [c];"],
    ["a |& { b; } |& c", "[a <2>& 1>] | <group {[b];} <2>& 1>> | [c];"],
    ["! a | b; time -p a; ! time c; time -- d", "[a] | [b]; [a]; <not {[c]}>; [d];"],
    ["a | time -p b", "[a] | [time -p b];"],
    ["a&b;c", "[a]& [b]; [c];"],
    ["# a\nb # c; d\ne", "[b]; [e];"],
  ]);
  check([["cd a && b 2>&1", "[cd@0-2 a@3-4]&& [b@8-9 <2>& 1@13-14>];"]], true);
});

test("assignments come before the words", () => {
  check([
    ["a=b c='d e' f=$g h= i", "[<set a=b> <set c=d e> <set f=<$g>> <set h=''> i];"],
    ["a+=b", "[<set a+=b>];"],
    ["a b=c", "[a b=c];"],
    ["a=* b=#c", "[<set a=‹*›> <set b=#c>];"],
    ["1a=b a-b=c", "[1a=b a-b=c];"],
    ["'a'=b", "[a=b];"],
  ]);
  check([["ab=c d", "[<set ab=c@3-4> d@5-6];"]], true);
});

test("redirects keep operator, descriptor and target", () => {
  check([
    ["a > b >> c < d <> e >| f", "[a <> b> <>> c> << d> <<> e> <>| f>];"],
    ["a 2>&1 >&2 2>&- <&3 3<&4-", "[a <2>& 1> <>& 2> <2>& -> <<& 3> <3<& 4->];"],
    ["a &> b &>> c", "[a <&> b> <&>> c>];"],
    ["> a b 2> c d", "[b d <> a> <2> c>];"],
    ["a 2 > b a2> c \\2> d", "[a 2 a2 2 <> b> <> c> <> d>];"],
    ["a {b}> c", "[a <b> c>];"],
    ['a <<< "b $c"', '[a <<<< b "<$c>">];'],
    ["a > >(b) < <(c)", "[a <> <>( [b];>> << <<( [c];>>];"],
    ["{ a; } > b 2>&1; (c) < d", "<group {[a];} <> b> <2>& 1>>; <subshell {[c];} << d>>;"],
  ]);
});

test("here-documents have their body as target", () => {
  check([
    ["cat <<E\na $b\nE\nc", '[cat <<< a "<$b>"\n>]; [c];'],
    ["cat <<'E'\na $b\nE", "[cat <<< a $b\n>];"],
    ["cat <<-E\n\ta\n\t\tb\n\tE", "[cat <<< a\nb\n>];"],
    ["cat <<A <<B; c\na\nA\nb\nB\nd", "[cat <<< a\n> <<< b\n>]; [c]; [d];"],
    ["cat <<E | b && c\n$(d)\nE", '[cat <<< "<$( [d];>"\n>] | [b]&& [c];'],
    ["cat <<E\nE", "[cat <<< ''>];"],
    ["cat <<E\na\\\nE\nE", "[cat <<< aE\n>];"],
    ["a $(cat <<E\nb\nE\n)", "[a <$( [cat <<< b\n>];>];"],
    ["cat <<E\na", "error: a here-document is not terminated @8-9"],
    ["cat <<E", "error: a here-document has no body @6-7"],
    ["a $(cat <<E)\nb\nE", "error: a here-document has no body @11-12"],
    ["cat <<E $(a\n)\nE", "error: unsupported: a newline inside a line with a here-document @11-12"],
    ["cat <<E\nE)\nE\\\nE", "error: a here-document is not terminated @8-9"],
  ]);
  check([["cat <<E\na b\nE", "[cat@0-3 <<< a b\n@8-12>];"]], true);
});

test("compound commands hold lists", () => {
  check([
    ["(a; b)", "<subshell {[a]; [b];}>;"],
    ["{ a; }", "<group {[a];}>;"],
    ["if a; then b; elif c; then d; else e; fi", "<if {[a];} {[b];} {[c];} {[d];} {[e];}>;"],
    ["while a; do b; done", "<while {[a];} {[b];}>;"],
    ["until a\ndo b\ndone", "<until {[a];} {[b];}>;"],
    ["for a in b {c,d}; do e; done", "<for a (b c d) {[e];}>;"],
    ["for a; do b; done", "<for a {[b];}>;"],
    ["for a\ndo b; done", "<for a {[b];}>;"],
    ["for a\nin b; do c; done", "error: unsupported: in on a line of its own @6-7"],
    ["for a in; do b; done", "<for a () {[b];}>;"],
    ["for ((i = 0; i < $(a); i++)); do b; done", "<for {[a];} {[b];}>;"],
    ["select a in b; do c; done", "<select a (b) {[c];}>;"],
    ["case $a in b|'c') d;; (*) e;& f) ;; esac", "<case (<$a> b c ‹*› f) {[d];} {[e];} {}>;"],
    ["case a in esac", "<case (a)>;"],
    ["f() { a; } > b", "<function f {<group {[a];} <> b>>}>;"],
    [
      "function f { a; }; function g() (b)",
      "<function f {<group {[a];}>}>; <function g {<subshell {[b];}>}>;",
    ],
    ["[[ -f a && ! $b == c* || ( d -nt e ) ]]", "<test (a <$b> c‹*› d e)>;"],
    ["(( a[$(b)]++ ))", "<arithmetic {[b];}>;"],
    [":(){ :|:& };:", "<function : {<group {[:] | [:]&}>}>; [:];"],
  ]);
});

test("reserved words apply only where a command begins, and only unquoted", () => {
  check([
    ["echo if then } done", "[echo if then } done];"],
    ["'if' a; \\while b; i''f", "[if a]; [while b]; [if];"],
    ["a=b if c", "[<set a=b> if c];"],
    ["> a while", "[while <> a>];"],
    ["iff; fix; {a; }a", "[iff]; [fix]; [{a]; [}a];"],
  ]);
});

test("a syntax error is reported, and the commands before it are kept", () => {
  check([
    ["a;; b", "error: this is not allowed here @1-2"],
    ["a && ", "error: a command is missing @4-5"],
    ["| a", "error: a command is missing @0-1"],
    ["a | | b", "error: a command is missing @4-5"],
    ["(a", "error: a parenthesis is not closed @0-2"],
    ["a)", "error: this is not allowed here @1-2"],
    ["{ a }", "error: } is missing @4-5"],
    ["if a; fi", "error: then is missing @6-7"],
    ["then a", "error: this is not allowed here @0-1"],
    ["a >", "error: a redirect has no target @2-3"],
    ["a > | b", "error: a redirect has no target @4-5"],
    ["a 'b", "error: a single quote is not closed @2-3"],
    ["a $(b", "error: a substitution is not closed @2-5"],
    ["{ a; } b", "error: an operator is missing @7-8"],
    ["f() a", "error: a function has no body @4-5"],
    ["coproc a", "error: unsupported: coproc @0-1"],
  ]);
  const { tree } = readOwn("rm -rf / | b 'c");
  assert.equal(show({ tree, errors: [] }), "[rm -rf /] | [b ''];");
});
