import assert from "node:assert/strict";
import test from "node:test";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import { show } from "../../fixtures/policy-tree.ts";

type Table = readonly (readonly [text: string, tree: string])[];

function check(table: Table, spans = false): void {
  for (const [text, tree] of table)
    assert.deepEqual({ text, tree: show(readOwn(text), spans) }, { text, tree });
}

test("quotes and backslashes are removed", () => {
  check([
    ["git log --oneline -10", "[git log --oneline -10];"],
    [`r''m "-r"f a\\ b`, "[rm -rf a b];"],
    [`a '' "" ''""`, "[a '' '' ''];"],
    ['"a \\" \\$ \\` \\\\ \\n"', '[a " $ ` \\ \\n];'],
    ["'a\\' \"'\"", "[a\\ '];"],
    ["a\\\nb \\\n c", "[ab c];"],
    ["\"a\\\nb\" 'a\\\nb'", "[ab a\\\nb];"],
    ["$'a\\tb\\x41\\101\\u0042\\'\\q'", "[a\tbAAB'\\q];"],
    ['a $"b $(c)"', "[a <locale {[c];}>];"],
    ['a $ $. "$" b$', "[a $ $. $ b$];"],
    ["echo a#b #c", "[echo a#b];"],
    ["\\~ '~' \\* '*' \\{a,b}", "[~ ~ * * {a,b}];"],
  ]);
});

test("expansions become pieces that hold the commands run in them", () => {
  check([
    [
      '$a "$b" ${c} "${d}" $1 ${10} $@ $# $? $- $$ $! $_',
      '[<$a> "<$b>" <$c> "<$d>" <$1> <$10> <$@> <$#> <$?> <$-> <$$> <$!> <$_>];',
    ],
    ["$10 ${#} ${!} ${@}", "[<$1>0 <$#> <$!> <$@>];"],
    ["${#a} ${!a} ${a[1]} ${a:-b} ${a@P}", "[<parameter> <parameter> <parameter> <parameter> <parameter>];"],
    ["${a:-$(b)`c`${d:-$(e)}}", "[<parameter {[b];} {[c];} {[e];}>];"],
    ['${a:-"}$(b)"}c', "[<parameter {[b];}>c];"],
    ["${a:-'}$(b)'}c", "[<parameter>c];"],
    ['a $(b | c) "$(d "e")"', '[a <$( [b] | [c];> "<$( [d e];>"];'],
    ["a $() $(<b)", "[a <$( > <$( [<< b>];>];"],
    ["a <(b) >(c)d e<(f)", "[a <<( [b];> <>( [c];>d e<<( [f];>];"],
    ["a $((1 + $(b))) $[c[$(d)]]", "[a <arithmetic {[b];}> <arithmetic {[d];}>];"],
    ['a `b` "`c`"', '[a <` [b];> "<` [c];>"];'],
    ["a $(case b in c) d;; esac)", "[a <$( <case (b c) {[d];}>;>];"],
  ]);
});

test("the body of a backtick is read without its backslashes", () => {
  check([["a `b \\`c\\` \\$d \\\\e`", "[a <` [b <` [c];> <$d> e];>];"]]);
  check(
    [
      ["a `b c`", "[a@0-1 <` [b@3-4 c@5-6];>@2-7];"],
      ["a `b \\$c`", "[a@0-1 <` [b@2-9 <$c>@2-9];>@2-9];"],
    ],
    true,
  );
});

test("unquoted patterns and tildes become pieces", () => {
  check([
    ["a * b*c?d [a-z]* **/x", "[a ‹*› b‹*›c‹?›d ‹[a-z]*› ‹**›/x];"],
    ["[ a ] [] [!] []a] [[:alpha:]]x ]", "[[ a ] [] [!] ‹[]a]› ‹[[:alpha:]]›x ]];"],
    ["a ~ ~/b ~c/d ~+ b~ /~", "[a <home> <home>/b <tilde>/d <tilde> b~ /~];"],
    ["a b=~/c b=d:~/e --b=~/c", "[a b=<home>/c b=d:<home>/e --b=~/c];"],
    ["a=~:~/b:c~ d=e~", "[<set a=<home>:<home>/b:c~> <set d=e~>];"],
  ]);
});

test("braces expand to several words, each at the position of the original", () => {
  check([
    ["{rm,-rf,/}", "[rm -rf /];"],
    ["a b{c,d}e {f,{g,h}}", "[a bce bde f g h];"],
    ["a {1..3} {c..a} {01..9..4} {3..-3..-3}", "[a 1 2 3 c b a 01 05 09 3 0 -3];"],
    ["a {} {b} HEAD@{1} @{u}..b {b,c", "error: unsupported: unbalanced braces @29-30"],
    ["a {} {b} HEAD@{1} @{u}..b {{b,c}}", "[a {} {b} HEAD@{1} @{u}..b {b} {c}];"],
    ["a {$b,'c d',*} {,} {,e}", "[a <$b> c d ‹*› e];"],
    ["a={b,c} <<< {b,c} case", "[<set a={b,c}> case <<<< {b,c}>];"],
    ["{~,/x}/y", "[<home>/y /x/y];"],
  ]);
  check([["a b{c,d}", "[a@0-1 bc@2-8 bd@2-8];"]], true);
});

test("an array holds the words between its parentheses", () => {
  check([
    ["a=(b 'c d' *.e $f)", "[<set a=?(b c d ‹*›.e <$f>)>];"],
    ["a=(\nb # c\n) d", "[<set a=?(b)> d];"],
    ["a+=()", "[<set a+=?>];"],
  ]);
});

test("text that bash reads in more than one way is an error", () => {
  check([
    ["a ?(b)", "error: unsupported: a parenthesis in a command @3-4"],
    ["a $'\\xe9'", "error: unsupported: an escape for a character outside ASCII @4-5"],
    ["a $'\\0'", "error: unsupported: an escape for a character outside ASCII @4-5"],
    ['a ["b"]', "error: unsupported: quotes or an expansion in a bracket @6-7"],
    ['a ~"b"', "error: unsupported: a tilde before quotes or an expansion @5-6"],
    ["a {1..a}", "error: unsupported: this sequence @7-8"],
    ["a {1..100}", "error: unsupported: too many words from braces @9-10"],
    ["a > {b,c}", "error: unsupported: braces in a redirect's target @4-9"],
    ['"${a:-"b"}"', "error: unsupported: quotes or braces in an expansion @1-6"],
    ["${ a; }", "error: unsupported: this expansion @2-3"],
    ["$((a); (b))", "error: unsupported: an arithmetic expression that may be a subshell @0-4"],
    ["a $b\\\nc", "error: unsupported: a name over two lines @3-4"],
    ["i\\\nf a", "error: unsupported: a line continuation inside a word @0-4"],
    ["a &\\\n& b", "error: unsupported: an operator before a line continuation @3-4"],
    ["a \\", "error: unsupported: a backslash at the end @2-3"],
    ["a[1]=b", "error: unsupported: a subscript @0-1"],
    ["a=([0]=b)", "error: unsupported: this array @2-3"],
    ["a=(b;c)", "error: unsupported: this array @2-4"],
  ]);
});
